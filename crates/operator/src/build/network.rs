//! How the collectors are reached, and by whom.

use kubewake_api::{
    Layer,
    render::{HEALTH_PORT, METRICS_PORT, OPENCENSUS_PORT, OTLP_GRPC_PORT, OTLP_HTTP_PORT},
};
use serde_json::{Value, json};

use super::{Surroundings, namespaced};
use crate::{apply::Desired, kind::Kind, names};

/// A port of a collector.
pub(super) struct Port {
    pub(super) name: &'static str,
    pub(super) number: u16,
    /// What is spoken there, for meshes and gateways.
    protocol: &'static str,
}

const OTLP_GRPC: Port = Port { name: "otlp-grpc", number: OTLP_GRPC_PORT, protocol: "grpc" };
const OTLP_HTTP: Port = Port { name: "otlp-http", number: OTLP_HTTP_PORT, protocol: "http" };
const OPENCENSUS: Port = Port { name: "opencensus", number: OPENCENSUS_PORT, protocol: "grpc" };
pub(super) const METRICS: Port = Port { name: "metrics", number: METRICS_PORT, protocol: "http" };
pub(super) const HEALTH: Port = Port { name: "health", number: HEALTH_PORT, protocol: "http" };
/// The label of pods in other namespaces that may read the collectors' metrics.
const SCRAPER: &str = "telemetry.kubewake.io/metrics-scraping";

impl Port {
    fn of_service(&self) -> Value {
        json!({
            "name": self.name, "port": self.number, "targetPort": self.name,
            "protocol": "TCP", "appProtocol": self.protocol,
        })
    }

    fn of_policy(&self) -> Value {
        json!({"port": self.number, "protocol": "TCP"})
    }
}

/// What the gateway receives on.
pub(super) fn received(around: &Surroundings) -> Vec<Port> {
    let opencensus = around.settings.opencensus.then_some(OPENCENSUS);
    [OTLP_GRPC, OTLP_HTTP].into_iter().chain(opencensus).collect()
}

/// What a collector of the sticky tier receives on.
pub(super) fn received_by_sticky() -> Vec<Port> {
    vec![OTLP_GRPC]
}

pub(super) fn objects(around: &Surroundings, layer: &Layer) -> Vec<Desired> {
    let mut objects = services(around, layer);
    objects.extend(policies(around, layer));
    objects
}

/// Where senders send to.
pub(super) fn address(around: &Surroundings) -> Desired {
    service(
        around,
        names::OTLP,
        json!({"selector": names::selector(names::GATEWAY), "ports": ports(&received(around))}),
    )
}

fn service(around: &Surroundings, name: &str, spec: Value) -> Desired {
    namespaced(around, Kind::Service, name, json!({"spec": spec}))
}

fn ports(ports: &[Port]) -> Vec<Value> {
    ports.iter().map(Port::of_service).collect()
}

fn services(around: &Surroundings, layer: &Layer) -> Vec<Desired> {
    // Every collector counts for itself, so that scrapers need each of their addresses.
    let metrics = json!({"clusterIP": "None", "selector": names::collectors(), "ports": ports(&[METRICS])});
    let mut services = vec![address(around), service(around, names::METRICS, metrics)];
    if layer.sticky.is_some() {
        let selector = names::selector(names::STICKY);
        let peers = json!({"clusterIP": "None", "selector": selector, "ports": ports(&received_by_sticky())});
        services.push(service(around, names::STICKY, peers));
    }
    services
}

/// Everybody may send to the gateway, and the gateway alone to the tier behind it. Where collectors send to is for their users to say.
fn policies(around: &Surroundings, layer: &Layer) -> Vec<Desired> {
    let ports = |ports: &[Port]| ports.iter().map(Port::of_policy).collect::<Vec<_>>();
    let policy = |name, selector: Value, rule: Value| {
        let spec = json!({"podSelector": {"matchLabels": selector}, "policyTypes": ["Ingress"], "ingress": [rule]});
        namespaced(around, Kind::NetworkPolicy, name, json!({"spec": spec}))
    };
    let scrapers = json!([
        {"podSelector": {}},
        {"namespaceSelector": {}, "podSelector": {"matchLabels": {SCRAPER: "allowed"}}},
    ]);
    let mut policies = vec![
        policy(names::GATEWAY, json!(names::selector(names::GATEWAY)), json!({"ports": ports(&received(around))})),
        policy(
            names::METRICS,
            json!(names::collectors()),
            json!({"ports": ports(&[METRICS, HEALTH]), "from": scrapers}),
        ),
    ];
    if layer.sticky.is_some() {
        let gateway = json!([{"podSelector": {"matchLabels": names::selector(names::GATEWAY)}}]);
        let rule = json!({"ports": ports(&received_by_sticky()), "from": gateway});
        policies.push(policy(names::STICKY, json!(names::selector(names::STICKY)), rule));
    }
    policies
}
