//! The collectors' Services and network policies.

use kubewake_api::{
    CollectorConfigs,
    render::{HEALTH_PORT, METRICS_PORT, OPENCENSUS_PORT, OTLP_GRPC_PORT, OTLP_HTTP_PORT},
};
use serde_json::{Value, json};

use super::{BuildContext, namespaced_object};
use crate::{
    model::{names, object_kind::ObjectKind},
    objects::apply::DesiredObject,
};

pub(super) struct CollectorPort {
    pub(super) name: &'static str,
    pub(super) number: u16,
    /// `appProtocol`, for meshes and gateways.
    protocol: &'static str,
}

const OTLP_GRPC_LISTENER: CollectorPort = CollectorPort { name: "otlp-grpc", number: OTLP_GRPC_PORT, protocol: "grpc" };
const OTLP_HTTP_LISTENER: CollectorPort = CollectorPort { name: "otlp-http", number: OTLP_HTTP_PORT, protocol: "http" };
const OPENCENSUS_LISTENER: CollectorPort =
    CollectorPort { name: "opencensus", number: OPENCENSUS_PORT, protocol: "grpc" };
pub(super) const METRICS_LISTENER: CollectorPort =
    CollectorPort { name: "metrics", number: METRICS_PORT, protocol: "http" };
pub(super) const HEALTH_LISTENER: CollectorPort =
    CollectorPort { name: "health", number: HEALTH_PORT, protocol: "http" };
/// The label of pods in other namespaces that may read the collectors' metrics.
const SCRAPER_LABEL: &str = "telemetry.kubewake.io/metrics-scraping";

impl CollectorPort {
    fn to_service_port(&self) -> Value {
        json!({
            "name": self.name, "port": self.number, "targetPort": self.name,
            "protocol": "TCP", "appProtocol": self.protocol,
        })
    }

    fn to_policy_port(&self) -> Value {
        json!({"port": self.number, "protocol": "TCP"})
    }
}

/// The ports on which the gateway receives.
pub(super) fn gateway_ports(around: &BuildContext) -> Vec<CollectorPort> {
    let opencensus = around.settings.opencensus.then_some(OPENCENSUS_LISTENER);
    [OTLP_GRPC_LISTENER, OTLP_HTTP_LISTENER].into_iter().chain(opencensus).collect()
}

/// The ports on which a collector of the sticky tier receives.
pub(super) fn sticky_ports() -> Vec<CollectorPort> {
    vec![OTLP_GRPC_LISTENER]
}

pub(super) fn network_objects(around: &BuildContext, layer: &CollectorConfigs) -> Vec<DesiredObject> {
    let mut objects = services(around, layer);
    objects.extend(policies(around, layer));
    objects
}

pub(super) fn otlp_service(around: &BuildContext) -> DesiredObject {
    service(
        around,
        names::OTLP_SERVICE,
        json!({"selector": names::selector_labels(names::GATEWAY), "ports": service_ports(&gateway_ports(around))}),
    )
}

/// The metrics of all collectors of a namespace. Each has counters of its own, so scrapers need the address of each.
pub(super) fn metrics_service(around: &BuildContext) -> DesiredObject {
    let selector = names::collector_labels();
    let spec = json!({"clusterIP": "None", "selector": selector, "ports": service_ports(&[METRICS_LISTENER])});
    service(around, names::METRICS_SERVICE, spec)
}

/// Pods in any namespace that may read metrics.
pub(super) fn labelled_scrapers() -> Value {
    json!({"namespaceSelector": {}, "podSelector": {"matchLabels": {SCRAPER_LABEL: "allowed"}}})
}

fn service(around: &BuildContext, name: &str, spec: Value) -> DesiredObject {
    namespaced_object(around, ObjectKind::Service, name, json!({"spec": spec}))
}

fn service_ports(ports: &[CollectorPort]) -> Vec<Value> {
    ports.iter().map(CollectorPort::to_service_port).collect()
}

fn services(around: &BuildContext, layer: &CollectorConfigs) -> Vec<DesiredObject> {
    let mut services = vec![otlp_service(around), metrics_service(around)];
    if layer.sticky.is_some() {
        let selector = names::selector_labels(names::STICKY);
        let peers = json!({"clusterIP": "None", "selector": selector, "ports": service_ports(&sticky_ports())});
        services.push(service(around, names::STICKY, peers));
    }
    services
}

/// Any pod may send to the gateway, and only the gateway may send to the sticky tier. Egress is not
/// restricted: backends are the users' choice.
fn policies(around: &BuildContext, layer: &CollectorConfigs) -> Vec<DesiredObject> {
    let ports = |ports: &[CollectorPort]| ports.iter().map(CollectorPort::to_policy_port).collect::<Vec<_>>();
    let policy = |name, selector: Value, rule: Value| {
        let spec = json!({"podSelector": {"matchLabels": selector}, "policyTypes": ["Ingress"], "ingress": [rule]});
        namespaced_object(around, ObjectKind::NetworkPolicy, name, json!({"spec": spec}))
    };
    let scrapers = json!([{"podSelector": {}}, labelled_scrapers()]);
    let mut policies = vec![
        policy(
            names::GATEWAY,
            json!(names::selector_labels(names::GATEWAY)),
            json!({"ports": ports(&gateway_ports(around))}),
        ),
        policy(
            names::METRICS_SERVICE,
            json!(names::collector_labels()),
            json!({"ports": ports(&[METRICS_LISTENER, HEALTH_LISTENER]), "from": scrapers}),
        ),
    ];
    if layer.sticky.is_some() {
        let gateway = json!([{"podSelector": {"matchLabels": names::selector_labels(names::GATEWAY)}}]);
        let rule = json!({"ports": ports(&sticky_ports()), "from": gateway});
        policies.push(policy(names::STICKY, json!(names::selector_labels(names::STICKY)), rule));
    }
    policies
}
