//! The nodes as others know them: the API server asks them for logs, the autoscaler for what pods use.

use std::{collections::HashMap, future::Future, pin::Pin, sync::OnceLock};

use http::StatusCode;
use kubewake_apiserver::{
    api::Status,
    nodes::{self, LogRequest, Output},
};

use crate::{
    key::Key,
    kubelet::Kubelet,
    usage::{PodUsage, Usage},
};

/// The nodes of a cluster. There are none until they have started.
#[derive(Debug, Default)]
pub(super) struct Nodes(OnceLock<HashMap<String, Kubelet>>);

impl Nodes {
    /// These are the nodes. Only the first call counts.
    pub(super) fn are(&self, kubelets: &[Kubelet]) {
        let _ = self.0.set(kubelets.iter().map(|kubelet| (kubelet.name().to_owned(), kubelet.clone())).collect());
    }

    fn all(&self) -> impl Iterator<Item = &Kubelet> {
        self.0.get().into_iter().flat_map(HashMap::values)
    }
}

impl nodes::Nodes for Nodes {
    fn logs(&self, request: LogRequest) -> Pin<Box<dyn Future<Output = Result<Output, Status>> + Send + '_>> {
        Box::pin(async move {
            let kubelet = self.0.get().and_then(|nodes| nodes.get(&request.node));
            let kubelet = kubelet.ok_or_else(|| {
                let message = format!("node {:?} of pod {} does not answer", request.node, request.pod);
                Status::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message)
            })?;
            kubelet.log(request)
        })
    }
}

impl Usage for Nodes {
    fn of(&self, pod: &Key) -> Option<PodUsage> {
        self.all().find_map(|kubelet| kubelet.of(pod))
    }
}
