//! Access to what only nodes know about pods: the logs of containers.
//!
//! kube-apiserver calls the kubelet over HTTPS. The nodes of an embedded cluster live in the same process and
//! are called directly: no second port, no second set of certificates.

use std::{fmt, future::Future, pin::Pin};

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::api::StatusError;
pub use crate::codec::query::{LogOptions, LogSince};

/// The output of a container, in chunks. It ends when its sender is dropped.
pub type LogStream = mpsc::Receiver<Bytes>;

pub trait KubeletClient: fmt::Debug + Send + Sync {
    /// The output of one container of a pod that is bound to a node. The container belongs to the pod.
    fn logs(&self, request: LogRequest) -> Pin<Box<dyn Future<Output = Result<LogStream, StatusError>> + Send + '_>>;
}

/// Which container's output, and which part of it.
#[derive(Clone, Debug)]
pub struct LogRequest {
    pub node: String,
    pub namespace: String,
    pub pod: String,
    /// The pod's UID: another pod of the same name has other output.
    pub uid: String,
    pub container: String,
    pub options: LogOptions,
}
