//! Receivers: servers that accept telemetry and submit it to pipelines.

use std::{future::Future, pin::Pin};

mod body_buffer;
mod body_timeout;
mod connection_activity;
mod cors;
mod discard;
mod grpc_calls;
#[cfg(feature = "receiver-opencensus")]
pub mod opencensus;
#[cfg(feature = "receiver-otlp")]
pub mod otlp;
mod protocol_server;
mod rpc_status;
mod sender_shares;
mod submitter;

pub trait Receiver: Send + Sync {
    /// Stops accepting requests; requests under way may finish.
    fn shutdown(&self);

    /// Aborts the requests that are still under way.
    fn abort(&self);

    /// Resolves when the last connection is closed.
    fn wait_closed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}
