//! The document as types, with the Collector's field names and defaults.
//!
//! Every type here is plain data. A [`CollectorDocument`] from [`load`](crate::load()) has passed all checks.
//! Programs that write documents use [`document_builder`](crate::document_builder) instead.

mod attributes;
mod balancing;
mod exporter;
mod extension;
mod filter;
mod kubernetes;
mod matching;
mod network;
mod processor;
mod receiver;
mod redaction;
mod sampler;
mod service;
mod tail_sampling;

use std::collections::BTreeMap;

pub use attributes::{
    AttributeAction, AttributeValueSource, AttributesProcessor, ContextKey, ConvertedType, KeySelector,
    ResourceProcessor,
};
pub use balancing::{DnsResolver, LoadBalancingExporter, PeerResolver, RoutingKey, ServiceResolver};
pub use exporter::{
    BodyEncoding, DebugExporter, DebugVerbosity, FileExporter, FileFormat, GroupBy, NopExporter, OtlpGrpcExporter,
    OtlpHttpExporter, QueueBatch, QueueConfig, QueueSizer, RetryConfig, RotationConfig,
};
pub use extension::{
    BasicAuth, BasicClientCredentials, BearerTokenAuth, HealthBodies, HealthCheck, Htpasswd, OAuth2Client,
    PipelineCheck,
};
pub use filter::{FilterProcessor, RecordSelection};
pub use kubernetes::{
    AssociationSource, ClusterAuth, ExtractFrom, ExtractKey, Field, FieldExtract, KubernetesAttributesProcessor,
    PodFilter, RelayServiceAccount, ServiceAccountFiles, VerifySenders,
};
pub use matching::{AttributeMatch, LibraryMatch, MatchProperties, SeverityNumber, TextMatcher, ValueMatch};
pub use network::{
    ClientKeepalive, ClientTls, CompressionType, KeyPair, PemSource, ServerKeepalive, ServerTls, TlsVersion,
};
pub use processor::{BatchProcessor, MemoryLimit, MemoryLimiter};
pub use receiver::{CorsConfig, GrpcServer, HttpServer, OpenCensusReceiver, OtlpReceiver};
pub use redaction::{HashFunction, RedactionProcessor, SummaryLevel};
pub use sampler::{AttributeSource, ProbabilisticSampler, SamplerMode};
pub use service::{
    LogEncoding, LogLevel, LogsConfig, MetricsConfig, MetricsLevel, PipelineConfig, ServiceConfig, TelemetryConfig,
};
pub use tail_sampling::{
    PolicyRateLimit, SamplingPolicy, SamplingRule, SamplingStrategy, TailSamplingProcessor, TextValues,
};

use crate::ComponentId;
pub use crate::{
    exporter::ExporterConfig, extension::ExtensionConfig, processor::ProcessorConfig, receiver::ReceiverConfig,
};

#[derive(Clone, Debug, PartialEq, Default)]
pub struct CollectorDocument {
    pub receivers: BTreeMap<ComponentId, ReceiverConfig>,
    /// Processors, which change, group or limit data.
    pub processors: BTreeMap<ComponentId, ProcessorConfig>,
    pub exporters: BTreeMap<ComponentId, ExporterConfig>,
    /// Services of the collector itself, such as health and credentials.
    pub extensions: BTreeMap<ComponentId, ExtensionConfig>,
    /// Which of these are enabled, and how they are connected.
    pub service: ServiceConfig,
}
