//! The nodes as others know them: the API server asks them for logs, the autoscaler for what pods use.

use std::{collections::HashMap, future::Future, pin::Pin, sync::OnceLock};

use futures_util::{Stream, StreamExt};
use http::StatusCode;
use kubewake_apiserver::{
    api::Status,
    nodes::{self, LogRequest, Output},
};
use tokio::sync::mpsc;

use crate::{
    key::Key,
    kubelet::{Kubelet, logs::LogError},
    usage::{PodUsage, Usage},
};

/// Pieces of a log that are on their way to somebody.
const AHEAD: usize = 4;

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
            Ok(passed_on(kubelet.logs().open(&request).map_err(refusal)?))
        })
    }
}

fn refusal(error: LogError) -> Status {
    match error {
        LogError::Read(_) => Status::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", error.to_string()),
        LogError::NotStarted { .. } | LogError::NoPrevious { .. } => Status::bad_request(error.to_string()),
    }
}

/// Reads on as long as somebody listens.
fn passed_on(log: impl Stream<Item = bytes::Bytes> + Send + 'static) -> Output {
    let (sender, receiver) = mpsc::channel(AHEAD);
    tokio::spawn(async move {
        let mut log = std::pin::pin!(log);
        loop {
            let piece = tokio::select! {
                piece = log.next() => piece,
                () = sender.closed() => None,
            };
            let Some(piece) = piece else { break };
            if sender.send(piece).await.is_err() {
                break;
            }
        }
    });
    receiver
}

impl Usage for Nodes {
    fn of(&self, pod: &Key) -> Option<PodUsage> {
        self.all().find_map(|kubelet| kubelet.usage(pod))
    }
}
