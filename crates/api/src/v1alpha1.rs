//! `telemetry.kubewake.io/v1alpha1`: the resources as they are written and served.
//!
//! The schema and its rules come from these types, and so do the descriptions that `kubectl explain` shows. Whatever is text is kept as text: an
//! object that was stored is always read, and [`validate`](crate::validate()) says what is wrong with it.

mod filter;
mod input;
mod output;
mod pipelines;
mod policy;
mod sampling;
mod sending;
mod telemetry;
mod value;

pub use filter::{Attribute, LogFilter, MatchType, MetricFilter, Severity, SpanFilter, SpanKind, StatusCode};
pub use input::{Input, Inputs, NamespaceSelector, OtlpInput, Workload, WorkloadKind, WorkloadSelector};
pub use output::{Authentication, Basic, Bearer, Compression, Header, OAuth2, Otlp, Output, Protocol, Tls};
pub use pipelines::{
    LogPipeline, LogPipelineSpec, MetricPipeline, MetricPipelineSpec, PipelineStatus, ShutdownDrops, TracePipeline,
    TracePipelineSpec,
};
pub use policy::{
    Always, AndPart, AndPolicy, BooleanAttribute, BytesLimiting, CompositePart, CompositePolicy, DropPolicy, Latency,
    NotPart, NotPolicy, NumericAttribute, Plain, Policy, Probabilistic, RateAllocation, RateLimiting, SpanCount,
    Status, StringAttribute, TraceFlags, TraceState,
};
pub use sampling::{DecisionCache, Sampling, Tail};
pub use sending::{Batch, Defaults, Queue, Retry};
pub use telemetry::{
    Endpoints, Enrichment, LogLevel, OpenCensus, OtlpEndpoints, PullSecret, Quantity, Receivers, Replicas, Resources,
    Scaling, Slots, Sticky, Telemetry, TelemetrySpec, TelemetryStatus, TrustedRelay,
};
pub use value::{KeyRef, ValueFrom, ValueType};
