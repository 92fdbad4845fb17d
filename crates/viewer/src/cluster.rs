//! What a cluster says: its pipelines with their collectors, who owns which object, and which trace it names.
//!
//! The cluster is that of the kubeconfig that the viewer was given, asked only while somebody looks. It may come and go: what cannot be asked is said to be so, and
//! asked again the next time.
//!
//! *Guaranteed.* Each question takes bounded time; of a kind 500 objects are read and 32 MiB. Nothing is written to the cluster, and nothing of a Secret is read, not even
//! its annotations.
//! What strangers can write, in a question or in a span, is only asked for if it can be a name.
//! Questions are of a trace that nobody records: where the API server believes its caller, they are not among the traces that are looked at.

mod ask;
mod names;
mod owners;
mod pipelines;
mod recent;
mod series;
mod stamp;

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use http::{HeaderName, HeaderValue, StatusCode, header};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
    core::{ApiResource, GroupVersionKind},
};

pub(crate) use self::pipelines::PipelineView;
use self::{
    owners::{Answer, Question},
    pipelines::Pipelines,
    recent::Recent,
};

/// Who asks.
const AGENT: &str = concat!("kubewake-viewer/", env!("CARGO_PKG_VERSION"));
/// Of a trace that nobody records.
const UNRECORDED: &str = "00-6b75626577616b656b75626577616b65-6b75626577616b65-00";

/// Why a cluster does not answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("the kubeconfig {0} cannot be read: {1}")]
    Kubeconfig(PathBuf, #[source] kube::config::KubeconfigError),
    #[error("the kubeconfig {0} cannot be used: {1}")]
    Client(PathBuf, #[source] kube::Error),
    #[error("the cluster does not answer: {0}")]
    Ask(#[from] kube::Error),
    #[error("the cluster does not answer in time")]
    Late,
    #[error("the cluster answers {0}")]
    Refused(StatusCode),
    #[error("the cluster answers with something else than a list, or with one that is too long")]
    Unreadable,
    #[error("the cluster has no pipelines: the operator's custom resources are not installed")]
    NoKinds,
}

impl Error {
    /// Whether nobody answers at all.
    fn is_silence(&self) -> bool {
        match self {
            Self::Kubeconfig(..) | Self::Client(..) | Self::Late => true,
            Self::Ask(error) => !matches!(error, kube::Error::Api(_) | kube::Error::Discovery(_)),
            Self::Refused(_) | Self::Unreadable | Self::NoKinds => false,
        }
    }
}

/// A cluster, as far as it can be reached.
#[derive(Clone)]
pub(crate) struct Cluster {
    kubeconfig: PathBuf,
    /// Where the operator and the collectors run.
    namespace: Arc<str>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    client: Mutex<Option<Client>>,
    /// What kinds are served as, and whether they have namespaces.
    kinds: Mutex<HashMap<GroupVersionKind, (ApiResource, bool)>>,
    lists: Recent<Question, Answer>,
    pipelines: Pipelines,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("kubeconfig", &self.kubeconfig).finish_non_exhaustive()
    }
}

impl Cluster {
    /// The cluster of this file, which need not be there yet.
    pub(crate) fn new(kubeconfig: PathBuf, namespace: &str) -> Self {
        Self { kubeconfig, namespace: namespace.into(), shared: Arc::default() }
    }

    /// A client, made when it is first needed.
    async fn client(&self) -> Result<Client, Error> {
        if let Some(client) = lock(&self.shared.client).clone() {
            return Ok(client);
        }
        let failed = |error| Error::Kubeconfig(self.kubeconfig.clone(), error);
        let file = Kubeconfig::read_from(&self.kubeconfig).map_err(failed)?;
        let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.map_err(failed)?;
        config.headers.extend([
            (header::USER_AGENT, HeaderValue::from_static(AGENT)),
            (HeaderName::from_static("traceparent"), HeaderValue::from_static(UNRECORDED)),
        ]);
        let client = Client::try_from(config).map_err(|error| Error::Client(self.kubeconfig.clone(), error))?;
        Ok(lock(&self.shared.client).insert(client).clone())
    }

    /// The file may be another one by now, of a cluster that was started anew.
    fn forget_client(&self) {
        lock(&self.shared.client).take();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
