//! Receivers: take in telemetry and submit it to pipelines.
//!
//! To add one, add its folder, its `mod` line and its row here; docs/adding-a-component.md is the recipe.

#[cfg(feature = "server")]
#[cfg_attr(not(feature = "full"), allow(dead_code, reason = "a component uses the part that it needs"))]
mod body_buffer;
#[cfg(feature = "server")]
mod body_timeout;
#[cfg(feature = "server")]
mod connection_activity;
#[cfg(feature = "server")]
mod cors;
#[cfg(feature = "server")]
mod discard;
#[cfg(feature = "receiver-file-log")]
pub mod file_log;
#[cfg(feature = "server")]
#[cfg_attr(not(feature = "full"), allow(dead_code, reason = "a component uses the part that it needs"))]
mod grpc_calls;
#[cfg(feature = "receiver-opencensus")]
pub mod opencensus;
#[cfg(feature = "receiver-otlp")]
pub mod otlp;
#[cfg(feature = "server")]
mod protocol_server;
#[cfg(feature = "server")]
mod rpc_status;
#[cfg(feature = "server")]
mod sender_shares;
#[cfg(feature = "server")]
#[cfg_attr(not(feature = "full"), allow(dead_code, reason = "a component uses the part that it needs"))]
mod submitter;

use kubewake_config::model::ReceiverConfig;

use crate::components::{PreparedReceiver, ReceiverContext, component_table};

component_table! {
    fn prepare(ReceiverConfig, ReceiverContext<'_>) -> PreparedReceiver;
    "receiver-otlp", Otlp => otlp;
    "receiver-opencensus", OpenCensus => opencensus;
    "receiver-file-log", FileLog => file_log;
}
