//! How a program finds its cluster, with errors that name the file that is no good.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use kube::{
    Config,
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError},
};

/// Why there is no way to a cluster.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A kubeconfig cannot be read.
    #[error("cannot read {}", file.display())]
    Read {
        /// Which one.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A kubeconfig says nothing that can be used.
    #[error("the kubeconfig {file} cannot be used")]
    Use {
        /// Which one, or several as `KUBECONFIG` has them.
        file: String,
        /// Why.
        source: KubeconfigError,
    },
    /// There is none, and no cluster around.
    #[error("there is no cluster: name one by --kubeconfig or KUBECONFIG")]
    Nowhere,
}

/// A way to a cluster.
#[derive(Clone, Debug)]
pub struct Found {
    /// How to reach it.
    pub config: Config,
    /// Who says so.
    pub source: Source,
}

/// Who says where a cluster is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A kubeconfig that was named.
    File(PathBuf),
    /// A context of kubectl's own kubeconfig.
    Context(String),
    /// The account of the pod in which this runs.
    Pod,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(file) => write!(f, "{}", file.display()),
            Self::Context(context) => write!(f, "context {context}"),
            Self::Pod => write!(f, "the pod's own account"),
        }
    }
}

/// By the given kubeconfig, else as kubectl finds it, else as a pod does.
///
/// # Errors
/// Where nothing leads to a cluster.
pub async fn config(kubeconfig: Option<&Path>) -> Result<Config, Error> {
    Ok(find(kubeconfig, None).await?.config)
}

/// The same with who says so, by another context than the current one if that is named.
///
/// # Errors
/// Where nothing leads to a cluster. A kubeconfig or a context that somebody names is not passed by because it is wrong.
pub async fn find(kubeconfig: Option<&Path>, context: Option<&str>) -> Result<Found, Error> {
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    let Some(file) = kubeconfig else { return usual(&options).await };
    let named = |source| error(file.display().to_string(), source);
    let read = Kubeconfig::read_from(file).map_err(named)?;
    let config = Config::from_custom_kubeconfig(read, &options).await.map_err(named)?;
    Ok(Found { config, source: Source::File(file.to_owned()) })
}

async fn usual(options: &KubeConfigOptions) -> Result<Found, Error> {
    let named = std::env::var("KUBECONFIG").ok().filter(|files| !files.is_empty());
    let found = as_kubectl(options).await;
    found.or_else(|source| otherwise(options, named, source, || Config::incluster().ok()))
}

/// The account of the pod, unless somebody named a kubeconfig or a context: then that is what is wrong.
fn otherwise(
    options: &KubeConfigOptions,
    named: Option<String>,
    source: KubeconfigError,
    pod: impl FnOnce() -> Option<Config>,
) -> Result<Found, Error> {
    if named.is_none()
        && options.context.is_none()
        && let Some(config) = pod()
    {
        return Ok(Found { config, source: Source::Pod });
    }
    let home = || {
        let file = Path::new(&std::env::var_os("HOME")?).join(".kube/config");
        file.exists().then(|| file.display().to_string())
    };
    Err(named.or_else(home).map_or(Error::Nowhere, |file| error(file, source)))
}

async fn as_kubectl(options: &KubeConfigOptions) -> Result<Found, KubeconfigError> {
    let file = Kubeconfig::read()?;
    let context = options.context.clone().or_else(|| file.current_context.clone()).unwrap_or_default();
    let config = Config::from_custom_kubeconfig(file, options).await?;
    Ok(Found { config, source: Source::Context(context) })
}

fn error(file: String, source: KubeconfigError) -> Error {
    match source {
        KubeconfigError::ReadConfig(source, file) => Error::Read { file, source },
        source => Error::Use { file, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::in_words;

    const GOOD: &str = "{apiVersion: v1, kind: Config, current-context: a, users: [{name: a, user: {}}], \
        contexts: [{name: a, context: {cluster: a, user: a}}], clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}]}";

    #[tokio::test]
    async fn a_kubeconfig_that_is_no_good_is_named_once() {
        let directory = std::env::temp_dir().join(format!("trail-connect-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let file = directory.join("kubeconfig");
        let said = async |text: &str| {
            std::fs::write(&file, text).unwrap();
            config(Some(&file)).await.map(|config| config.cluster_url.to_string()).map_err(|error| in_words(&error))
        };
        let name = file.display();
        assert_eq!(said(GOOD).await.as_deref(), Ok("https://127.0.0.1:1/"));
        let no_context = said(&GOOD.replace("current-context: a", "current-context: b")).await;
        assert_eq!(no_context, Err(format!("the kubeconfig {name} cannot be used: failed to load current context: b")));
        let broken = said("{").await.unwrap_err();
        assert!(broken.starts_with(&format!("the kubeconfig {name} cannot be used: ")), "{broken}");
        assert!(broken.contains("line 1") && !broken.contains('\n'), "{broken}");
        let other = find(Some(&file), Some("b")).await.map_err(|error| in_words(&error));
        assert!(other.is_err(), "it has no such context");
        std::fs::write(&file, GOOD).unwrap();
        let found = find(Some(&file), Some("a")).await.unwrap();
        assert_eq!(found.source.to_string(), name.to_string());
        let gone = directory.join("gone");
        let gone = in_words(&config(Some(&gone)).await.unwrap_err());
        assert_eq!(
            gone,
            format!("cannot read {}: No such file or directory (os error 2)", directory.join("gone").display())
        );
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn what_somebody_names_is_not_passed_by_in_a_pod() {
        let in_pod = |context: Option<&str>, named: Option<&str>| {
            let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
            let pod = || Some(Config::new("https://10.0.0.1".parse().unwrap()));
            otherwise(&options, named.map(str::to_owned), KubeconfigError::CurrentContextNotSet, pod)
        };
        assert_eq!(in_pod(None, None).unwrap().source, Source::Pod);
        assert!(in_pod(Some("prod"), None).is_err(), "no kubeconfig has that context");
        let error = in_words(&in_pod(None, Some("/gone")).unwrap_err());
        assert!(error.starts_with("the kubeconfig /gone cannot be used"), "{error}");
    }
}
