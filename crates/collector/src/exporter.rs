//! Exporters: deliver batches to backends, files or standard output.
//!
//! To add one, add its folder, its `mod` line and its row here; docs/adding-a-component.md is the recipe.

#[cfg(any(feature = "exporter-http", feature = "exporter-loki"))]
mod batch_delivery;
#[cfg(any(feature = "exporter-elasticsearch", feature = "exporter-opensearch"))]
mod bulk_index;
#[cfg(feature = "exporter-debug")]
mod debug;
#[cfg(feature = "exporter-elasticsearch")]
mod elasticsearch;
#[cfg(feature = "exporter-file")]
mod file;
#[cfg(feature = "exporter-http")]
mod http;
#[cfg(feature = "exporter-loadbalancing")]
mod loadbalancing;
#[cfg(any(feature = "exporter-http", feature = "exporter-loki"))]
#[cfg_attr(not(feature = "full"), allow(dead_code, reason = "a component uses the part that it needs"))]
mod log_source;
#[cfg(all(test, any(feature = "exporter-http", feature = "exporter-loki")))]
mod log_testing;
#[cfg(feature = "exporter-loki")]
mod loki;
#[cfg(any(feature = "exporter-elasticsearch", feature = "exporter-loki", feature = "exporter-opensearch"))]
#[cfg_attr(not(feature = "full"), allow(dead_code, reason = "a component uses the part that it needs"))]
mod name_resolver;
#[cfg(feature = "exporter-nop")]
mod nop;
#[cfg(feature = "exporter-opensearch")]
mod opensearch;
#[cfg(feature = "exporter-otlp")]
mod otlp_grpc;
#[cfg(feature = "exporter-otlphttp")]
mod otlp_http;
#[cfg(any(feature = "exporter-elasticsearch", feature = "exporter-http", feature = "exporter-opensearch"))]
#[cfg_attr(not(feature = "full"), allow(dead_code, unused_imports, reason = "a component uses the part that it needs"))]
mod record_json;

use kubewake_config::model::ExporterConfig;

use crate::components::{ExporterContext, PreparedExporter, component_table};

component_table! {
    fn prepare(ExporterConfig, ExporterContext<'_>) -> PreparedExporter;
    "exporter-otlp", OtlpGrpc => otlp_grpc;
    "exporter-otlphttp", OtlpHttp => otlp_http;
    "exporter-debug", Debug => debug;
    "exporter-file", File => file;
    "exporter-nop", Nop => nop;
    "exporter-loadbalancing", LoadBalancing => loadbalancing;
    "exporter-elasticsearch", Elasticsearch => elasticsearch;
    "exporter-opensearch", Opensearch => opensearch;
    "exporter-loki", Loki => loki;
    "exporter-http", Http => http;
}
