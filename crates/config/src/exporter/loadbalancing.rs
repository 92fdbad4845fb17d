//! `load_balancing`, `loadbalancing`.

mod resolver;

use std::{path::PathBuf, time::Duration};

use kubewake_otlp::Signal;

use super::otlp_grpc::{self, OtlpGrpcExporter};
use crate::{
    ComponentId,
    component::{ComponentSettings, ExporterSettings, PipelinePlace, PlaceProblem},
    decode::{Cursor, DecodeReport, FieldReader, scalar},
    encode::YamlMap,
    sending::{self, QueueConfig, RetryConfig},
    service_account::ServiceAccountFiles,
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

impl Default for ServiceResolver {
    fn default() -> Self {
        Self {
            name: String::new(),
            namespace: None,
            ports: vec![resolver::DEFAULT_PEER_PORT],
            timeout: resolver::DEFAULT_WATCH_TIMEOUT,
            return_hostnames: false,
            service_account: ServiceAccountFiles::default(),
        }
    }
}

impl ComponentSettings for LoadBalancingExporter {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        let mut fields = FieldReader::new(at, report);
        let otlp = protocol(&mut fields);
        let resolver = resolver::read(&mut fields);
        let routing = routing(&mut fields);
        let timeout = fields.get("timeout", scalar::duration).filter(|timeout| !timeout.is_zero());
        let retry = sending::optional_retry(&mut fields);
        let queue = sending::optional_queue(&mut fields);
        check_queue_fields(&fields, queue.as_ref());
        fields.finish();
        Some(LoadBalancingExporter { otlp: otlp?, resolver: resolver?, routing, timeout, retry, queue })
    }

    fn encode(&self) -> YamlMap {
        let otlp = self.otlp.encode_client(YamlMap::default());
        let attributes = match &self.routing {
            Some(RoutingKey::Attributes(attributes)) => attributes.as_slice(),
            _ => &[],
        };
        YamlMap::default()
            .with_optional("routing_key", self.routing.as_ref().map(RoutingKey::name))
            .with_list("routing_attributes", attributes)
            .with_field("protocol", YamlMap::default().with_field("otlp", otlp))
            .with_field("resolver", self.resolver.encode())
            .with_optional("timeout", self.timeout)
            .with_optional("retry_on_failure", self.retry.as_ref().map(RetryConfig::encode))
            .with_optional("sending_queue", self.queue.as_ref().map(QueueConfig::encode))
    }

    fn files(&self) -> Vec<PathBuf> {
        self.otlp.tls.files()
    }

    fn auth_extension_ids(&self) -> Vec<&ComponentId> {
        self.otlp.auth.iter().collect()
    }
}

impl ExporterSettings for LoadBalancingExporter {
    fn signals(&self) -> &'static [Signal] {
        &Signal::ALL
    }

    /// Refuses a routing key that does not apply to the signal.
    fn check_place(&self, place: &PipelinePlace<'_>) -> Vec<PlaceProblem> {
        let PipelinePlace { signal, id, .. } = place;
        let known: &[&str] = match signal {
            Signal::Traces | Signal::Logs => &["traceID", "service", "resource", "attributes"],
            Signal::Metrics => &["service", "resource", "metric", "streamID", "attributes"],
        };
        let unknown = self.routing.iter().map(|key| key.name()).filter(|name| !known.contains(name));
        let describe = |name: &str| {
            PlaceProblem::error(
                format!("the exporter `{id}` cannot route {signal} by `{name}`"),
                format!("`routing_key` for {signal} is one of: {}", known.join(", ")),
            )
        };
        unknown.map(describe).collect()
    }
}

fn protocol(fields: &mut FieldReader<'_, '_>) -> Option<OtlpGrpcExporter> {
    let Some(at) = fields.find("protocol") else {
        fields.require("protocol", "the exporter needs a `protocol`", Some("write `protocol: {otlp: }`".into()));
        return None;
    };
    let mut protocol = FieldReader::new(&at, fields.report);
    let otlp = protocol.find_even_empty("otlp");
    if otlp.is_none() {
        protocol.require("otlp", "`protocol` must contain `otlp`", None);
    }
    protocol.finish();
    otlp.and_then(|at| otlp_grpc::template(&at, fields.report))
}

/// Refuses fields that belong to a peer's queue: that of the exporter holds requests as they come; they are
/// split and joined for each peer.
fn check_queue_fields(fields: &FieldReader<'_, '_>, queue: Option<&QueueConfig>) {
    let Some(queue) = queue else { return };
    let settings = [("wait_for_result", queue.wait_for_result), ("batch", queue.batch.is_some())];
    for (name, _) in settings.into_iter().filter(|(_, set)| *set) {
        let message = format!("`{name}` cannot be set for the exporter as a whole");
        let help = format!("set `{name}` in `protocol::otlp::sending_queue`, where it applies to each peer");
        fields.report.error(&fields.cursor_at("sending_queue"), message, Some(help));
    }
}

fn routing(fields: &mut FieldReader<'_, '_>) -> Option<RoutingKey> {
    const ROUTING_KEYS: [(&str, u8); 6] =
        [("traceID", 0), ("service", 1), ("resource", 2), ("metric", 3), ("streamID", 4), ("attributes", 5)];
    let key = match fields.find("routing_key") {
        Some(at) if scalar::text(&at, fields.report).is_some_and(|text| text.is_empty()) => None,
        Some(at) => Some(scalar::keyword(&at, fields.report, &ROUTING_KEYS)?),
        None => None,
    };
    let attributes = fields.get("routing_attributes", scalar::texts).unwrap_or_default();
    let by_attributes = key == Some(5);
    if by_attributes && attributes.is_empty() {
        let message = "`routing_key: attributes` needs `routing_attributes`";
        let help = "list the attributes to route by";
        fields.require("routing_attributes", message, Some(help.into()));
    }
    if !by_attributes && !attributes.is_empty() {
        let message = "`routing_attributes` needs `routing_key: attributes`";
        let help = "remove it, or set `routing_key: attributes`";
        fields.report.error(&fields.cursor_at("routing_attributes"), message, Some(help.into()));
    }
    Some(match key? {
        0 => RoutingKey::TraceId,
        1 => RoutingKey::Service,
        2 => RoutingKey::Resource,
        3 => RoutingKey::Metric,
        4 => RoutingKey::StreamId,
        _ => RoutingKey::Attributes(attributes),
    })
}
