//! The cluster's view: pipelines with their collectors, the owners of objects, and the trace that an object
//! names.
//!
//! The cluster is that of the viewer's kubeconfig, and is queried only while a page is open. It may come and
//! go: a failed query is reported as such, and the next request tries again.
//!
//! *Guaranteed.* Each query takes bounded time, and reads at most 500 objects and 32 MiB of a kind. Nothing is
//! written to the cluster, and nothing of a Secret is read, not even its annotations. Text that strangers
//! control, in a query or in a span, is used in a request only if it is a valid name. Requests carry a trace
//! context that is not sampled: an API server that trusts its caller's context adds no traces of the viewer
//! itself.

mod live_objects;
mod pipeline_series;
mod pipelines;
mod stamp;
mod ttl_cache;
mod validation;

use std::{collections::HashMap, path::PathBuf, sync::Arc};

use http::{HeaderName, HeaderValue, StatusCode, header};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
    core::{ApiResource, GroupVersionKind},
};
use kubewake_runtime::lock::Mutex;

pub(crate) use self::pipelines::PipelineView;
use self::{
    live_objects::{KindListing, KindQuery},
    pipelines::PipelineMonitor,
    ttl_cache::TtlCache,
};

const USER_AGENT_VALUE: &str = concat!("kubewake-viewer/", env!("CARGO_PKG_VERSION"));
/// A trace context that is not sampled.
const UNSAMPLED_TRACEPARENT: &str = "00-6b75626577616b656b75626577616b65-6b75626577616b65-00";

/// Why a query to the cluster failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClusterReadError {
    #[error("failed to read kubeconfig {0}: {1}")]
    Kubeconfig(PathBuf, #[source] kube::config::KubeconfigError),
    #[error("failed to load kubeconfig {0}: {1}")]
    Client(PathBuf, #[source] kube::Error),
    #[error("the request to the API server failed: {0}")]
    Request(#[from] kube::Error),
    #[error("the API server did not respond in time")]
    Timeout,
    #[error("the API server responded with status {0}")]
    Refused(StatusCode),
    #[error("the response of the API server is not a list, or the list is too long")]
    Unreadable,
    #[error("the cluster has no pipelines: the operator's custom resource definitions are not installed")]
    NotInstalled,
}

impl ClusterReadError {
    /// Whether the API server cannot be reached at all.
    fn is_unreachable(&self) -> bool {
        match self {
            Self::Kubeconfig(..) | Self::Client(..) | Self::Timeout => true,
            Self::Request(error) => !matches!(error, kube::Error::Api(_) | kube::Error::Discovery(_)),
            Self::Refused(_) | Self::Unreadable | Self::NotInstalled => false,
        }
    }
}

/// A client of the cluster, which may be unreachable.
#[derive(Clone)]
pub(crate) struct ClusterReader {
    kubeconfig: PathBuf,
    /// Namespace of the operator and the collectors.
    namespace: Arc<str>,
    state: Arc<ClusterReaderState>,
}

#[derive(Default)]
struct ClusterReaderState {
    client: Mutex<Option<Client>>,
    /// How each kind is served, and whether it is namespaced.
    kinds: Mutex<HashMap<GroupVersionKind, (ApiResource, bool)>>,
    lists: TtlCache<KindQuery, KindListing>,
    pipelines: PipelineMonitor,
}

impl std::fmt::Debug for ClusterReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("kubeconfig", &self.kubeconfig).finish_non_exhaustive()
    }
}

impl ClusterReader {
    /// Reads the cluster of this kubeconfig, which need not exist yet.
    pub(crate) fn new(kubeconfig: PathBuf, namespace: &str) -> Self {
        Self { kubeconfig, namespace: namespace.into(), state: Arc::default() }
    }

    /// The client, created on first use.
    async fn client(&self) -> Result<Client, ClusterReadError> {
        if let Some(client) = self.state.client.lock().clone() {
            return Ok(client);
        }
        let failed = |error| ClusterReadError::Kubeconfig(self.kubeconfig.clone(), error);
        let file = Kubeconfig::read_from(&self.kubeconfig).map_err(failed)?;
        let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.map_err(failed)?;
        config.headers.extend([
            (header::USER_AGENT, HeaderValue::from_static(USER_AGENT_VALUE)),
            (HeaderName::from_static("traceparent"), HeaderValue::from_static(UNSAMPLED_TRACEPARENT)),
        ]);
        let client =
            Client::try_from(config).map_err(|error| ClusterReadError::Client(self.kubeconfig.clone(), error))?;
        Ok(self.state.client.lock().insert(client).clone())
    }

    /// Drops the client: the kubeconfig may belong to a new cluster by now.
    fn forget_client(&self) {
        self.state.client.lock().take();
    }
}

#[cfg(test)]
mod tests;
