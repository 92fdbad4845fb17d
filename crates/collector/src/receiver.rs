//! Receivers: take in telemetry and submit it to pipelines.
//!
//! To add one, add its folder, its `mod` line and its row here; docs/adding-a-component.md is the recipe.

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

use kubewake_config::model::ReceiverConfig;

use crate::components::{PreparedReceiver, ReceiverContext, component_table};

component_table! {
    fn prepare(ReceiverConfig, ReceiverContext<'_>) -> PreparedReceiver;
    "receiver-otlp", Otlp => otlp;
    "receiver-opencensus", OpenCensus => opencensus;
}
