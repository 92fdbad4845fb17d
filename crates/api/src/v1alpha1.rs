//! `telemetry.kubewake.io/v1alpha1`: the resources as they are written and served.
//!
//! The schema and its rules come from these types, and so do the descriptions that `kubectl explain` shows.
//! Whatever is text is kept as text: an object that was stored is always read, and
//! [`validate`](crate::validate()) says what is wrong with it.

mod filter;
mod input;
mod log_output;
mod output;
mod pipelines;
mod policy;
mod sampling;
mod sending;
mod telemetry;
mod value;

pub use filter::{AttributeMatcher, LogFilter, LogSeverity, MatchType, MetricFilter, SpanFilter, SpanKind, StatusCode};
pub use input::{
    ContainerSelector, LineParsing, LogPipelineInputs, MultilineMode, NamespaceSelector, OtlpInput, PipelineInputs,
    RuntimeInput, RuntimeNamespaceSelector, TracePipelineInput, WorkloadKind, WorkloadReference, WorkloadSelector,
};
pub use log_output::{
    DataStreamOptions, DedotMode, DocumentOptions, ElasticsearchMapping, ElasticsearchOutput, HttpConnection,
    HttpOutput, HttpOutputCompression, HttpOutputFormat, LogPipelineOutput, LokiOutput, OpensearchMapping,
    OpensearchOutput,
};
pub use output::{
    AuthenticationOptions, BasicAuthOptions, BearerAuthOptions, OAuth2Options, OtlpCompression, OtlpOutput,
    OtlpProtocol, PipelineOutput, RequestHeader, TlsOptions,
};
pub use pipelines::{
    LogPipeline, LogPipelineSpec, MetricPipeline, MetricPipelineSpec, PipelineStatus, ShutdownDrops, TracePipeline,
    TracePipelineSpec,
};
pub use policy::{
    AlwaysSampleRule, AndPart, AndPolicy, BooleanAttributeRule, BytesLimitingRule, CompositePart, CompositePolicy,
    DropPolicy, LatencyRule, NotPart, NotPolicy, NumericAttributeRule, PlainRules, ProbabilisticRule, RateAllocation,
    RateLimitingRule, SpanCountRule, StatusCodeRule, StringAttributeRule, TailSamplingPolicy, TraceFlagsRule,
    TraceStateRule,
};
pub use sampling::{DecisionCacheOptions, SamplingOptions, TailSamplingOptions};
pub use sending::{BatchOptions, OutputDefaults, QueueOptions, RetryOptions};
pub use telemetry::{
    AgentOptions, CollectorEndpoints, CollectorLogLevel, ContainerResources, EnrichmentOptions, OpenCensusOptions,
    OtlpEndpoints, PipelineSlots, PullSecret, ReceiverOptions, ReplicaRange, ResourceQuantity, ScalingOptions,
    StickyTierOptions, Telemetry, TelemetrySpec, TelemetryStatus, TrustedRelay,
};
pub use value::{KeyRef, ValueFrom, ValueType};
