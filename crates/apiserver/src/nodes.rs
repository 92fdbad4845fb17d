//! What only nodes know of pods: their output.
//!
//! kube-apiserver asks the kubelet over HTTPS. Nodes of an embedded cluster live in the same process, and are asked directly: no second
//! port, no second set of certificates.

use std::{fmt, future::Future, pin::Pin};

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::api::Status;
pub use crate::codec::query::{LogOptions, Since};

/// The output of a container, piece by piece. It ends when its sender is dropped.
pub type Output = mpsc::Receiver<Bytes>;

/// Knows the nodes.
pub trait Nodes: fmt::Debug + Send + Sync {
    /// The output of a container of a pod that is bound to a node. The container is one of the pod's.
    fn logs(&self, request: LogRequest) -> Pin<Box<dyn Future<Output = Result<Output, Status>> + Send + '_>>;
}

/// Whose output, and how much of it.
#[derive(Clone, Debug)]
pub struct LogRequest {
    /// The node that the pod is bound to.
    pub node: String,
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub pod: String,
    /// The pod's UID: another pod of the same name has other output.
    pub uid: String,
    /// The container.
    pub container: String,
    /// How much of it.
    pub options: LogOptions,
}
