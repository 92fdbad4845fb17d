//! Discovers the cluster and the viewer.
//!
//! `kubewake up` records its addresses ([`InstanceRecord`]) on its machine and in its cluster, so that other
//! commands need no arguments. Arguments and variables take precedence.

use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use http::Uri;
use kube::{Client, Config};
use kubewake_trail::{connect, error_chain};
use tokio::time::timeout;

use crate::{
    kube_client::without_tracing,
    up::instance_record::{self, AdvertisedViewer, InstanceRecord},
};

/// Where `up` and `viewer` show the page unless they say otherwise.
const DEFAULT_VIEWER_URL: &str = "http://127.0.0.1:16686";
/// Names the viewer for all commands.
const VIEWER_VARIABLE: &str = "KUBEWAKE_VIEWER";
/// Names the cluster, as for kubectl.
const KUBECONFIG_VARIABLE: &str = "KUBECONFIG";
/// Nobody at a terminal waits longer to learn that there is nothing.
const CONNECT_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(5);
/// Lists of thousands of objects come within this.
const READ_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(20);

/// How to reach the cluster.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct KubeconfigArgs {
    /// Kubeconfig of the cluster [default: $KUBECONFIG, ~/.kube/config, the pod's ServiceAccount, or `kubewake up`
    /// on this machine]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: the current context]
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
}

/// The cluster, and where Kubewake is in it.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ClusterArgs {
    #[command(flatten)]
    pub(crate) kubeconfig_args: KubeconfigArgs,
    /// Namespace of the operator and the collectors
    #[arg(long, value_name = "NAMESPACE", default_value = "kubewake-system")]
    pub(crate) namespace: String,
}

/// How to reach the viewer.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ViewerArgs {
    /// URL of the viewer [default: $KUBEWAKE_VIEWER, the cluster's viewer, `kubewake up` on this machine, or
    /// http://127.0.0.1:16686]
    #[arg(long, value_name = "URL")]
    pub(crate) viewer: Option<String>,
}

/// A cluster, which may answer or not.
#[derive(Clone)]
pub(crate) struct ClusterConnection {
    pub(crate) client: Client,
    /// Where its API server is.
    pub(crate) server: String,
    /// Who says so, in words.
    pub(crate) source: String,
}

/// Where the viewer is, and whether somebody said so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ViewerLocation {
    /// Without a slash at the end.
    pub(crate) url: String,
    /// If not, it may well be that there is none.
    pub(crate) is_named: bool,
}

impl ClusterArgs {
    /// The cluster. Nothing is asked yet.
    pub(crate) async fn resolve_cluster(&self) -> anyhow::Result<ClusterConnection> {
        let (mut config, source) = self.kubeconfig_args.load_config().await?;
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        config.read_timeout = Some(READ_TIMEOUT);
        let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        Ok(ClusterConnection { client: Client::try_from(config)?, server, source })
    }
}

impl KubeconfigArgs {
    /// Whether somebody said by an argument which one is meant.
    pub(crate) fn is_named(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some()
    }

    /// How it is reached, and who says so, in words.
    pub(crate) async fn load_config(&self) -> anyhow::Result<(Config, String)> {
        let context = self.context.as_deref();
        let found = match connect::find(self.kubeconfig.as_deref(), context).await {
            Err(connect::ClusterConnectError::NoCluster) => {
                let Some(up) = InstanceRecord::find_newest() else {
                    bail!("no cluster found: name one with --kubeconfig or KUBECONFIG, or start one with `kubewake up`")
                };
                return Ok((connect::find(Some(&up.kubeconfig), context).await?.config, "kubewake up".to_owned()));
            }
            found => found?,
        };
        Ok((found.config, found.source.to_string()))
    }
}

impl ViewerArgs {
    /// That of the cluster that is meant, for whoever wants nothing else of the cluster. It need not be there;
    /// that it does not answer is said.
    pub(crate) async fn discover_viewer(&self, reach: &KubeconfigArgs) -> anyhow::Result<ViewerLocation> {
        let viewer = self.configured_viewer()?;
        if viewer.is_named {
            return Ok(viewer);
        }
        let why = match reach.load_config().await {
            Ok((config, source)) => {
                let client =
                    Client::try_from(without_tracing(config)).context("failed to create a client for the cluster")?;
                match timeout(CONNECT_TIMEOUT, instance_record::fetch_advertised_viewer(&client)).await {
                    Ok(Ok(told)) => return Ok(viewer.or_advertised(told)),
                    // The cluster responds, but does not return the record.
                    Ok(Err(kube::Error::Api(_))) => return Ok(viewer),
                    Ok(Err(error)) => format!("{source}: {}", error_chain(&error)),
                    Err(_) => format!("{source}: timed out while waiting for the API server"),
                }
            }
            Err(error) if reach.is_named() => return Err(error),
            Err(error) if is_set(KUBECONFIG_VARIABLE) => error_chain(error.as_ref()),
            Err(_) => return Ok(viewer),
        };
        eprintln!("failed to get the viewer's address from the cluster ({why}): using {}", viewer.url);
        Ok(viewer)
    }

    /// Where it should be, whatever the cluster says.
    pub(crate) fn configured_viewer(&self) -> anyhow::Result<ViewerLocation> {
        let named = self.viewer.clone().or_else(|| std::env::var(VIEWER_VARIABLE).ok().filter(|url| !url.is_empty()));
        let is_named = named.is_some();
        let url = named
            .or_else(|| InstanceRecord::find_newest().map(|up| up.page))
            .unwrap_or_else(|| DEFAULT_VIEWER_URL.to_owned());
        Ok(ViewerLocation {
            url: validate_url(&url).with_context(|| format!("invalid address of the viewer {url:?}"))?,
            is_named,
        })
    }
}

impl ViewerLocation {
    /// That of the cluster, where there is one and nobody named another: `up` says in its cluster where it is.
    pub(crate) async fn or_discover(self, client: &Client) -> Self {
        if self.is_named {
            return self;
        }
        self.or_advertised(instance_record::fetch_advertised_viewer(client).await.ok().flatten())
    }

    fn or_advertised(self, told: Option<AdvertisedViewer>) -> Self {
        let page = told.and_then(|told| validate_url(&told.page).ok());
        page.map_or(self, |url| Self { url, is_named: false })
    }
}

fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty())
}

/// The address without its last slash.
fn validate_url(url: &str) -> anyhow::Result<String> {
    let uri: Uri = url.parse().context("not a URL")?;
    ensure!(
        uri.scheme_str() == Some("http") && uri.authority().is_some(),
        "the URL must begin with http:// and a host; use `kubectl port-forward` for a viewer behind TLS"
    );
    ensure!(uri.query().is_none(), "the URL must not have a query");
    Ok(url.trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_http_and_a_host() {
        assert_eq!(validate_url("http://127.0.0.1:16686/").unwrap(), "http://127.0.0.1:16686");
        assert_eq!(validate_url("http://viewer:80/base").unwrap(), "http://viewer:80/base");
        for bad in ["127.0.0.1:16686", "https://viewer", "/x", "", "http://a/?b"] {
            assert!(validate_url(bad).is_err(), "{bad}");
        }
    }
}
