//! The nodes as seen by others: the API server reads logs from them, the autoscaler the usage of pods.

use std::{collections::HashMap, future::Future, pin::Pin, sync::OnceLock};

use http::StatusCode;
use kubewake_apiserver::{
    api::StatusError,
    kubelet_client::{self, LogRequest, LogStream},
};

use crate::{
    key::NamespacedKey,
    kubelet::Kubelet,
    usage::{PodUsage, UsageProvider},
};

/// The nodes of a cluster; empty until they have started.
#[derive(Debug, Default)]
pub(super) struct NodeRegistry(OnceLock<HashMap<String, Kubelet>>);

impl NodeRegistry {
    /// Sets the nodes. Only the first call has an effect.
    pub(super) fn set_kubelets(&self, kubelets: &[Kubelet]) {
        let _ = self.0.set(kubelets.iter().map(|kubelet| (kubelet.name().to_owned(), kubelet.clone())).collect());
    }

    fn all(&self) -> impl Iterator<Item = &Kubelet> {
        self.0.get().into_iter().flat_map(HashMap::values)
    }
}

impl kubelet_client::KubeletClient for NodeRegistry {
    fn logs(&self, request: LogRequest) -> Pin<Box<dyn Future<Output = Result<LogStream, StatusError>> + Send + '_>> {
        Box::pin(async move {
            let kubelet = self.0.get().and_then(|nodes| nodes.get(&request.node));
            let kubelet = kubelet.ok_or_else(|| {
                let message = format!("node {:?} of pod {} does not respond", request.node, request.pod);
                StatusError::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message)
            })?;
            kubelet.open_log(request).await
        })
    }
}

impl UsageProvider for NodeRegistry {
    fn pod_usage(&self, pod: &NamespacedKey) -> Option<PodUsage> {
        self.all().find_map(|kubelet| kubelet.pod_usage(pod))
    }
}
