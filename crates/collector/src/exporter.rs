//! Exporters: deliver batches to backends, files or standard output.

#[cfg(feature = "exporter-debug")]
pub(crate) mod debug;
#[cfg(feature = "exporter-file")]
pub(crate) mod file;
#[cfg(feature = "exporter-loadbalancing")]
pub mod loadbalancing;
#[cfg(feature = "exporter-nop")]
pub(crate) mod nop;
#[cfg(feature = "exporter-otlp")]
pub(crate) mod otlp_grpc;
#[cfg(feature = "exporter-otlphttp")]
pub(crate) mod otlp_http;
