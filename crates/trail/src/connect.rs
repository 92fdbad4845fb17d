//! Finds the cluster of a program, with errors that name the broken file.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use kube::{
    Config,
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError},
};

/// The reason why no cluster could be found.
#[derive(Debug, thiserror::Error)]
pub enum ClusterConnectError {
    /// A kubeconfig cannot be read.
    #[error("failed to read kubeconfig {}", file.display())]
    Read {
        /// The path of the kubeconfig.
        file: PathBuf,
        /// The error of the read.
        source: std::io::Error,
    },
    /// A kubeconfig does not yield a usable configuration.
    #[error("failed to load kubeconfig {file}")]
    Invalid {
        /// The path of the kubeconfig, or several paths as in `KUBECONFIG`.
        file: String,
        /// The error of kube.
        source: KubeconfigError,
    },
    /// There is no kubeconfig, and the program does not run in a pod.
    #[error("no cluster found: set --kubeconfig or KUBECONFIG")]
    NoCluster,
}

/// A cluster and how it was found.
#[derive(Clone, Debug)]
pub struct DiscoveredCluster {
    /// The client configuration for the cluster.
    pub config: Config,
    /// The origin of the configuration.
    pub source: ClusterSource,
}

/// The origin of a client configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterSource {
    /// A kubeconfig named by the caller.
    File(PathBuf),
    /// A context of kubectl's own kubeconfig.
    Context(String),
    /// The service account of the pod in which the program runs.
    Pod,
}

impl fmt::Display for ClusterSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(file) => write!(f, "{}", file.display()),
            Self::Context(context) => write!(f, "context {context}"),
            Self::Pod => write!(f, "the pod's service account"),
        }
    }
}

/// The given kubeconfig, else the one that kubectl would use, else the service account of the pod.
///
/// # Errors
/// Where none of these leads to a cluster.
pub async fn config(kubeconfig: Option<&Path>) -> Result<Config, ClusterConnectError> {
    Ok(find(kubeconfig, None).await?.config)
}

/// The same with its origin, and with the given context instead of the current one.
///
/// # Errors
/// Where nothing leads to a cluster. A kubeconfig or context that was named explicitly is never skipped because
/// it is invalid.
pub async fn find(kubeconfig: Option<&Path>, context: Option<&str>) -> Result<DiscoveredCluster, ClusterConnectError> {
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    let Some(file) = kubeconfig else { return discover_default(&options).await };
    let named = |source| error(file.display().to_string(), source);
    let read = Kubeconfig::read_from(file).map_err(named)?;
    let config = Config::from_custom_kubeconfig(read, &options).await.map_err(named)?;
    Ok(DiscoveredCluster { config, source: ClusterSource::File(file.to_owned()) })
}

async fn discover_default(options: &KubeConfigOptions) -> Result<DiscoveredCluster, ClusterConnectError> {
    let named = std::env::var("KUBECONFIG").ok().filter(|files| !files.is_empty());
    let found = from_kubeconfig(options).await;
    found.or_else(|source| in_cluster_or_error(options, named, source, || Config::incluster().ok()))
}

/// The service account of the pod, unless a kubeconfig or context was named: then its error is returned.
fn in_cluster_or_error(
    options: &KubeConfigOptions,
    named: Option<String>,
    source: KubeconfigError,
    pod: impl FnOnce() -> Option<Config>,
) -> Result<DiscoveredCluster, ClusterConnectError> {
    if named.is_none()
        && options.context.is_none()
        && let Some(config) = pod()
    {
        return Ok(DiscoveredCluster { config, source: ClusterSource::Pod });
    }
    let home = || {
        let file = Path::new(&std::env::var_os("HOME")?).join(".kube/config");
        file.exists().then(|| file.display().to_string())
    };
    Err(named.or_else(home).map_or(ClusterConnectError::NoCluster, |file| error(file, source)))
}

async fn from_kubeconfig(options: &KubeConfigOptions) -> Result<DiscoveredCluster, KubeconfigError> {
    let file = Kubeconfig::read()?;
    let context = options.context.clone().or_else(|| file.current_context.clone()).unwrap_or_default();
    let config = Config::from_custom_kubeconfig(file, options).await?;
    Ok(DiscoveredCluster { config, source: ClusterSource::Context(context) })
}

fn error(file: String, source: KubeconfigError) -> ClusterConnectError {
    match source {
        KubeconfigError::ReadConfig(source, file) => ClusterConnectError::Read { file, source },
        source => ClusterConnectError::Invalid { file, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error_chain;

    const GOOD: &str = "{apiVersion: v1, kind: Config, current-context: a, users: [{name: a, user: {}}], \
        contexts: [{name: a, context: {cluster: a, user: a}}], clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}]}";

    #[tokio::test]
    async fn a_kubeconfig_that_is_no_good_is_named_once() {
        let directory = std::env::temp_dir().join(format!("trail-connect-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let file = directory.join("kubeconfig");
        let said = async |text: &str| {
            std::fs::write(&file, text).unwrap();
            config(Some(&file)).await.map(|config| config.cluster_url.to_string()).map_err(|error| error_chain(&error))
        };
        let name = file.display();
        assert_eq!(said(GOOD).await.as_deref(), Ok("https://127.0.0.1:1/"));
        let no_context = said(&GOOD.replace("current-context: a", "current-context: b")).await;
        assert_eq!(no_context, Err(format!("failed to load kubeconfig {name}: failed to load current context: b")));
        let broken = said("{").await.unwrap_err();
        assert!(broken.starts_with(&format!("failed to load kubeconfig {name}: ")), "{broken}");
        assert!(broken.contains("line 1") && !broken.contains('\n'), "{broken}");
        let other = find(Some(&file), Some("b")).await.map_err(|error| error_chain(&error));
        assert!(other.is_err(), "it has no such context");
        std::fs::write(&file, GOOD).unwrap();
        let found = find(Some(&file), Some("a")).await.unwrap();
        assert_eq!(found.source.to_string(), name.to_string());
        let gone = directory.join("gone");
        let gone = error_chain(&config(Some(&gone)).await.unwrap_err());
        assert_eq!(
            gone,
            format!(
                "failed to read kubeconfig {}: No such file or directory (os error 2)",
                directory.join("gone").display()
            )
        );
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn what_somebody_names_is_not_passed_by_in_a_pod() {
        let in_pod = |context: Option<&str>, named: Option<&str>| {
            let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
            let pod = || Some(Config::new("https://10.0.0.1".parse().unwrap()));
            in_cluster_or_error(&options, named.map(str::to_owned), KubeconfigError::CurrentContextNotSet, pod)
        };
        assert_eq!(in_pod(None, None).unwrap().source, ClusterSource::Pod);
        assert!(in_pod(Some("prod"), None).is_err(), "no kubeconfig has that context");
        let error = error_chain(&in_pod(None, Some("/gone")).unwrap_err());
        assert!(error.starts_with("failed to load kubeconfig /gone"), "{error}");
    }
}
