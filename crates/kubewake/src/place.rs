//! Where things are: the cluster, and the viewer.
//!
//! `kubewake up` writes down where it is ([`Notice`]), on its machine and in its cluster, so that nobody has to say so. What is said by an argument or a
//! variable wins.

use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use http::Uri;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client, Config};
use kubewake_trail::connect;

use crate::up::notice::{self, Notice};

/// Where `up` and `viewer` show the page unless they say otherwise.
const PAGE: &str = "http://127.0.0.1:16686";
/// Names the viewer for all commands.
const VIEWER: &str = "KUBEWAKE_VIEWER";
/// Nobody at a terminal waits longer to learn that there is nothing.
const CONNECT: std::time::Duration = std::time::Duration::from_secs(5);
/// Lists of thousands of objects come within this.
const READ: std::time::Duration = std::time::Duration::from_secs(20);

/// How to reach the cluster.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct KubeconfigArgs {
    /// How to reach the cluster [default: $KUBECONFIG, ~/.kube/config, the pod's own account, or `kubewake up` on this machine]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig [default: its current one]
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
}

/// The cluster, and where Kubewake is in it.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ClusterArgs {
    #[command(flatten)]
    pub(crate) reach: KubeconfigArgs,
    /// Where the operator and the collectors run
    #[arg(long, value_name = "NAMESPACE", default_value = "kubewake-system")]
    pub(crate) namespace: String,
}

/// How to reach the viewer.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ViewerArgs {
    /// Where the viewer is [default: $KUBEWAKE_VIEWER, `kubewake up` on this machine, or http://127.0.0.1:16686]
    #[arg(long, value_name = "URL")]
    pub(crate) viewer: Option<String>,
}

/// A cluster, which may answer or not.
#[derive(Clone)]
pub(crate) struct Cluster {
    pub(crate) client: Client,
    /// Where its API server is.
    pub(crate) server: String,
    /// Who says so, in words.
    pub(crate) source: String,
}

/// Where the viewer is, and whether somebody said so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Viewer {
    /// Without a slash at the end.
    pub(crate) url: String,
    /// If not, it may well be that there is none.
    pub(crate) is_named: bool,
}

impl ClusterArgs {
    /// The cluster. Nothing is asked yet.
    pub(crate) async fn cluster(&self) -> anyhow::Result<Cluster> {
        let (mut config, source) = self.reach.config().await?;
        config.connect_timeout = Some(CONNECT);
        config.read_timeout = Some(READ);
        let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        Ok(Cluster { client: Client::try_from(config)?, server, source })
    }
}

impl KubeconfigArgs {
    /// How it is reached, and who says so, in words.
    pub(crate) async fn config(&self) -> anyhow::Result<(Config, String)> {
        let context = self.context.as_deref();
        let found = match connect::find(self.kubeconfig.as_deref(), context).await {
            Err(connect::Error::Nowhere) => {
                let Some(up) = Notice::find() else {
                    bail!("there is no cluster: name one by --kubeconfig or KUBECONFIG, or start one by `kubewake up`")
                };
                return Ok((connect::find(Some(&up.kubeconfig), context).await?.config, "kubewake up".to_owned()));
            }
            found => found?,
        };
        Ok((found.config, found.source.to_string()))
    }
}

impl ViewerArgs {
    /// Where it should be.
    pub(crate) fn viewer(&self) -> anyhow::Result<Viewer> {
        let named = self.viewer.clone().or_else(|| std::env::var(VIEWER).ok().filter(|url| !url.is_empty()));
        let is_named = named.is_some();
        let url = named.or_else(|| Notice::find().map(|up| up.page)).unwrap_or_else(|| PAGE.to_owned());
        Ok(Viewer { url: checked(&url).with_context(|| format!("the viewer's address {url:?}"))?, is_named })
    }
}

impl Viewer {
    /// That of the cluster, where there is one and nobody named another: `up` says in its cluster where it is.
    pub(crate) async fn or_of(self, client: &Client) -> Self {
        if self.is_named {
            return self;
        }
        let map = Api::<ConfigMap>::namespaced(client.clone(), notice::NAMESPACE).get_opt(notice::NAME).await;
        let page = map.ok().flatten().and_then(|map| map.data?.remove("page"));
        page.and_then(|page| checked(&page).ok()).map_or(self, |url| Self { url, is_named: false })
    }
}

/// The address without its last slash.
fn checked(url: &str) -> anyhow::Result<String> {
    let uri: Uri = url.parse().context("is no URL")?;
    ensure!(
        uri.scheme_str() == Some("http") && uri.authority().is_some(),
        "must begin with http:// and a host; behind TLS use `kubectl port-forward`"
    );
    ensure!(uri.query().is_none(), "may have no query");
    Ok(url.trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_http_and_a_host() {
        assert_eq!(checked("http://127.0.0.1:16686/").unwrap(), "http://127.0.0.1:16686");
        assert_eq!(checked("http://viewer:80/base").unwrap(), "http://viewer:80/base");
        for bad in ["127.0.0.1:16686", "https://viewer", "/x", "", "http://a/?b"] {
            assert!(checked(bad).is_err(), "{bad}");
        }
    }
}
