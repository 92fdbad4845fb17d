//! The `load_balancing` exporter.

use std::time::Duration;

use super::exporter::{OtlpGrpcExporter, Queue, Retry};

/// `load_balancing`, `loadbalancing`
#[derive(Clone, Debug, PartialEq)]
pub struct LoadBalancingExporter {
    /// `protocol: otlp`: how each peer is sent to. Its endpoint is empty; the resolver says where peers are.
    pub otlp: OtlpGrpcExporter,
    /// `resolver`
    pub resolver: Resolver,
    /// `routing_key`, with `routing_attributes`; `None`: the trace id for traces, the service for the others.
    pub routing: Option<RoutingKey>,
    /// `timeout`: how long a request may wait for a peer that has room; `None`: no limit.
    pub timeout: Option<Duration>,
    /// `retry_on_failure`: for how long what a live peer did not take is offered to the others; `None`: it is not.
    pub retry: Option<Retry>,
    /// `sending_queue`: what may wait for a peer that has room; `None`: nothing, senders are refused.
    pub queue: Option<Queue>,
}

/// What stays together: all records that agree in this go to one peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoutingKey {
    /// `traceID`
    TraceId,
    /// `service`: the resource attribute `service.name`
    Service,
    /// `resource`: all resource attributes
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

/// `resolver`: where the peers are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolver {
    /// `static`: `hostnames`, each `host:port`, at least one.
    Static(Vec<String>),
    /// `dns`
    Dns(DnsResolver),
    /// `k8s`
    Kubernetes(ServiceResolver),
}

/// `resolver: dns`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsResolver {
    /// `hostname`: all its addresses are peers.
    pub hostname: String,
    /// `port`
    pub port: u16,
    /// `interval`: how often to ask.
    pub interval: Duration,
    /// `timeout` of one question.
    pub timeout: Duration,
}

/// `resolver: k8s`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceResolver {
    /// The name in `service`.
    pub name: String,
    /// The namespace in `service`; `None`: that of the collector.
    pub namespace: Option<String>,
    /// `ports`: each makes a peer of every address.
    pub ports: Vec<u16>,
    /// `timeout`: how long one watch lasts.
    pub timeout: Duration,
    /// `return_hostnames`: peers by name, as a StatefulSet gives them, instead of by address.
    pub return_hostnames: bool,
}
