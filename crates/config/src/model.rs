//! The document as types: what a checked configuration says, with the Collector's field names and defaults.
//!
//! Every type here is plain data. A value of [`Document`] made by the parser has passed all checks; one that is built
//! in code (by the operator) is checked by the same rules.

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

pub use attributes::{Action, Attributes, Context, ConvertedType, Keys, Resource, Source};
pub use balancing::{DnsResolver, LoadBalancingExporter, Resolver, RoutingKey, ServiceResolver};
pub use exporter::{
    DebugExporter, Encoding, Exporter, FileExporter, FileFormat, GroupBy, OtlpGrpcExporter, OtlpHttpExporter, Queue,
    QueueBatch, Retry, Rotation, Sizer, Verbosity,
};
pub use extension::{
    BasicAuth, BearerTokenAuth, ClientCredentials, Extension, HealthBodies, HealthCheck, Htpasswd, OAuth2Client,
    PipelineCheck,
};
pub use filter::{Filter, Selection};
pub use kubernetes::{
    ClusterAuth, Extract, ExtractKey, Field, KubernetesAttributes, Owner, PodFilter, Source as KubernetesSource,
    TrustedRelay, VerifySenders,
};
pub use matching::{AttributeMatch, Library, Match, SeverityNumber, Texts, ValueMatch};
pub use network::{
    ClientKeepalive, ClientTls, Compression, KeyPair, PemSource, ServerKeepalive, ServerTls, TlsVersion,
};
pub use processor::{Batch, MemoryLimit, MemoryLimiter, Processor};
pub use receiver::{Cors, GrpcServer, HttpServer, OpenCensusReceiver, OtlpReceiver, Receiver};
pub use redaction::{HashFunction, Redaction, Summary};
pub use sampler::{AttributeSource, ProbabilisticSampler, SamplerMode};
pub use service::{Level, LogEncoding, LogLevel, Logs, Metrics, Pipeline, Service, Telemetry};
pub use tail_sampling::{Allowed, SamplingPolicy, SamplingRule, SamplingStrategy, TailSampling, TextValues};

use crate::ComponentId;

/// A whole configuration.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Document {
    /// What takes data in.
    pub receivers: BTreeMap<ComponentId, Receiver>,
    /// What changes, groups or limits it.
    pub processors: BTreeMap<ComponentId, Processor>,
    /// What sends it on.
    pub exporters: BTreeMap<ComponentId, Exporter>,
    /// What serves the collector itself: health, credentials.
    pub extensions: BTreeMap<ComponentId, Extension>,
    /// Which of these run, and how they are wired.
    pub service: Service,
}
