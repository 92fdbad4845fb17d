//! Where things are: the cluster, and the viewer.
//!
//! `kubewake up` writes down where it is ([`Up`]), so that on its machine nobody has to say so. What is said by an argument or a variable wins.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use http::Uri;
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde::Deserialize;

/// Where `up` and `viewer` show the page unless they say otherwise.
const PAGE: &str = "http://127.0.0.1:16686";
/// Names the viewer for all commands.
const VIEWER: &str = "KUBEWAKE_VIEWER";
/// What `up` leaves in its folder.
const FILE: &str = "up.json";
/// It has a few lines.
const LONGEST: u64 = 64 << 10;
/// Nobody at a terminal waits longer to learn that there is nothing.
const CONNECT: std::time::Duration = std::time::Duration::from_secs(5);
/// Lists of thousands of objects come within this.
const READ: std::time::Duration = std::time::Duration::from_secs(20);

/// How to reach the cluster.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ClusterArgs {
    /// How to reach the cluster [default: $KUBECONFIG, ~/.kube/config, the pod's own account, or `kubewake up` on this machine]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig [default: its current one]
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
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

/// What `kubewake up` says of itself.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Up {
    /// Where its page is.
    pub(crate) page: String,
    /// How its cluster is reached.
    pub(crate) kubeconfig: PathBuf,
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
        let (mut config, source) = self.config().await?;
        config.connect_timeout = Some(CONNECT);
        config.read_timeout = Some(READ);
        let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        Ok(Cluster { client: Client::try_from(config)?, server, source })
    }

    async fn config(&self) -> anyhow::Result<(Config, String)> {
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        if let Some(path) = &self.kubeconfig {
            return Ok((read(path, &options).await?, path.display().to_string()));
        }
        match Kubeconfig::read() {
            Ok(file) => {
                let context = self.context.clone().or_else(|| file.current_context.clone()).unwrap_or_default();
                let config = Config::from_custom_kubeconfig(file, &options).await;
                return Ok((
                    config.context("the kubeconfig names no cluster that can be used")?,
                    format!("context {context}"),
                ));
            }
            // A file that is there and wrong is not passed by.
            Err(error) if std::env::var_os("KUBECONFIG").is_some() => {
                return Err(error).context("$KUBECONFIG cannot be read");
            }
            Err(_) => {}
        }
        if let Ok(config) = Config::incluster() {
            return Ok((config, "the pod's own account".to_owned()));
        }
        let Some(up) = Up::find() else {
            bail!("there is no cluster: name one by --kubeconfig or KUBECONFIG, or start one by `kubewake up`")
        };
        Ok((read(&up.kubeconfig, &options).await?, "kubewake up".to_owned()))
    }
}

async fn read(path: &Path, options: &KubeConfigOptions) -> anyhow::Result<Config> {
    let file = Kubeconfig::read_from(path).with_context(|| format!("cannot read {}", path.display()))?;
    let config = Config::from_custom_kubeconfig(file, options).await;
    config.with_context(|| format!("{} names no cluster that can be used", path.display()))
}

impl ViewerArgs {
    /// Where it should be.
    pub(crate) fn viewer(&self) -> anyhow::Result<Viewer> {
        let named = self.viewer.clone().or_else(|| std::env::var(VIEWER).ok().filter(|url| !url.is_empty()));
        let is_named = named.is_some();
        let url = named.or_else(|| Up::find().map(|up| up.page)).unwrap_or_else(|| PAGE.to_owned());
        Ok(Viewer { url: checked(&url).with_context(|| format!("the viewer's address {url:?}"))?, is_named })
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

impl Up {
    /// What the last `kubewake up` of this user wrote down, if it did not end in good order.
    pub(crate) fn find() -> Option<Self> {
        Self::read(&folder()?.join(FILE))
    }

    fn read(path: &Path) -> Option<Self> {
        let short = std::fs::metadata(path).ok()?.len() <= LONGEST;
        short.then(|| std::fs::read(path).ok()).flatten().and_then(|text| serde_json::from_slice(&text).ok())
    }
}

/// Where `up` keeps its state unless it is told otherwise.
fn folder() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    Some(state.or_else(home)?.join("kubewake"))
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

    #[test]
    fn what_up_wrote_is_read_and_anything_else_passed_over() {
        let folder = std::env::temp_dir().join(format!("kubewake-place-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(FILE);
        assert!(Up::read(&path).is_none());
        let text =
            r#"{"page": "http://127.0.0.1:1", "kubeconfig": "/k", "otlp": {"grpc": "127.0.0.1:4317"}, "pid": 7}"#;
        std::fs::write(&path, text).unwrap();
        let up = Up::read(&path).unwrap();
        assert_eq!((up.page.as_str(), up.kubeconfig), ("http://127.0.0.1:1", PathBuf::from("/k")));
        std::fs::write(&path, "{").unwrap();
        assert!(Up::read(&path).is_none());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
