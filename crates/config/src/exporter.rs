//! Exporters, which send data on.

mod bulk_index;
mod debug;
mod elasticsearch;
mod file;
mod http;
mod http_export;
mod loadbalancing;
mod loki;
mod nop;
mod opensearch;
mod otlp_grpc;
mod otlp_http;

use kubewake_otlp::Signal;

pub use self::{
    bulk_index::{BulkAction, BulkIndexConfig, BulkLogin, Dedot, DocumentIds, MappingMode, is_index_character},
    debug::{DebugExporter, DebugVerbosity},
    elasticsearch::ElasticsearchExporter,
    file::{FileExporter, FileFormat, GroupBy, RotationConfig},
    http::{DateNotation, HttpExporter, HttpFormat, HttpMethod},
    http_export::HttpExportConfig,
    loadbalancing::{DnsResolver, LoadBalancingExporter, PeerResolver, RoutingKey, ServiceResolver},
    loki::{LOKI_MAX_TENANT_BYTES, LokiExporter, LongLineBehavior, StructuredMetadataConfig, is_tenant_character},
    nop::NopExporter,
    opensearch::OpensearchExporter,
    otlp_grpc::OtlpGrpcExporter,
    otlp_http::{BodyEncoding, OtlpHttpExporter},
};
use crate::{
    component::{ExporterSettings, PipelinePlace, PlaceProblem, component_table},
    decode::foreign_names,
};

component_table! {
    pub enum ExporterConfig: ExporterSettings {
        section: "exporters",
        noun: "exporter",
        foreign_names: foreign_names::EXPORTERS,
    }
    OtlpGrpc(OtlpGrpcExporter) = ["otlp", "otlp_grpc"], feature "exporter-otlp";
    OtlpHttp(OtlpHttpExporter) = ["otlphttp", "otlp_http"], feature "exporter-otlphttp";
    Debug(DebugExporter) = ["debug"], feature "exporter-debug";
    File(FileExporter) = ["file"], feature "exporter-file";
    Nop(NopExporter) = ["nop"], feature "exporter-nop";
    LoadBalancing(LoadBalancingExporter) in Box = ["load_balancing", "loadbalancing"],
        feature "exporter-loadbalancing";
    Elasticsearch(ElasticsearchExporter) in Box = ["elasticsearch"], feature "exporter-elasticsearch";
    Opensearch(OpensearchExporter) in Box = ["opensearch"], feature "exporter-opensearch";
    Loki(LokiExporter) in Box = ["loki"], feature "exporter-loki";
    Http(HttpExporter) in Box = ["http"], feature "exporter-http";
}

impl ExporterConfig {
    /// The signals of the pipelines that it may be part of.
    pub fn signals(&self) -> &'static [Signal] {
        self.settings().signals()
    }

    /// Checks its place in a pipeline.
    pub(crate) fn check_place(&self, place: &PipelinePlace<'_>) -> Vec<PlaceProblem> {
        self.settings().check_place(place)
    }
}
