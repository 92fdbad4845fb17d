//! The `load_balancing` exporter.

use std::time::Duration;

use super::{
    exporter::{OtlpGrpcExporter, QueueConfig, RetryConfig},
    kubernetes::ServiceAccountFiles,
};

#[derive(Clone, Debug, PartialEq)]
pub struct LoadBalancingExporter {
    /// `protocol: otlp`: the client for each peer. Its endpoint is empty; the resolver finds the peers.
    pub otlp: OtlpGrpcExporter,
    pub resolver: PeerResolver,
    /// `routing_key`, with `routing_attributes`; `None`: the trace id for traces, the service for the others.
    pub routing: Option<RoutingKey>,
    /// `timeout`: how long a request may wait for a peer that has room; `None`: no limit.
    pub timeout: Option<Duration>,
    /// `retry_on_failure`: for how long data that a live peer refused is offered to others; `None`: never.
    pub retry: Option<RetryConfig>,
    /// `sending_queue`: data that may wait until a peer has room; `None`: none, senders are refused.
    pub queue: Option<QueueConfig>,
}

/// The routing key: records with the same value go to the same peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoutingKey {
    TraceId,
    /// `service`: the resource attribute `service.name`
    Service,
    Resource,
    /// `metric`: the name of the metric
    Metric,
    /// `streamID`: resource, scope, metric and the attributes of the data point
    StreamId,
    /// `attributes`: the values of `routing_attributes`, never empty
    Attributes(Vec<String>),
}

impl RoutingKey {
    /// The word in the document.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::TraceId => "traceID",
            Self::Service => "service",
            Self::Resource => "resource",
            Self::Metric => "metric",
            Self::StreamId => "streamID",
            Self::Attributes(_) => "attributes",
        }
    }
}

/// `resolver`: how peers are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerResolver {
    /// `static`: `hostnames`, each `host:port`, at least one.
    Static(Vec<String>),
    Dns(DnsResolver),
    /// `k8s`
    Kubernetes(ServiceResolver),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsResolver {
    /// `hostname`: all its addresses are peers.
    pub hostname: String,
    pub port: u16,
    /// `interval`: the interval of lookups.
    pub interval: Duration,
    pub timeout: Duration,
}

/// `resolver: k8s`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceResolver {
    pub name: String,
    /// The namespace in `service`; `None`: that of the collector.
    pub namespace: Option<String>,
    /// `ports`: each makes a peer of every address.
    pub ports: Vec<u16>,
    /// `timeout`: the duration of one watch.
    pub timeout: Duration,
    /// `return_hostnames`: peers by name, as a StatefulSet gives them, instead of by address.
    pub return_hostnames: bool,
    /// No setting: where a pod has its credentials.
    pub service_account: ServiceAccountFiles,
}
