//! How many collectors there are, how many may go at once, and who scrapes them.

use kubewake_api::Layer;
use serde_json::json;

use super::{Surroundings, namespaced, network::METRICS};
use crate::{apply::Desired, kind::Kind, names};

pub(super) fn objects(around: &Surroundings, layer: &Layer) -> Vec<Desired> {
    let budget = |name| {
        let spec = json!({"maxUnavailable": 1, "selector": {"matchLabels": names::selector(name)}});
        namespaced(around, Kind::PodDisruptionBudget, name, json!({"spec": spec}))
    };
    let mut objects = vec![budget(names::GATEWAY), autoscaler(around)];
    objects.extend(layer.sticky.iter().map(|_| budget(names::STICKY)));
    objects.push(monitor(around));
    objects
}

/// By CPU alone, which is what incoming traffic costs. Memory grows with a slow backend, for which more collectors would do nothing.
fn autoscaler(around: &Surroundings) -> Desired {
    let settings = &around.settings;
    let target = json!({"type": "Utilization", "averageUtilization": settings.cpu_utilization});
    let spec = json!({
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": names::GATEWAY},
        "minReplicas": settings.min_replicas,
        "maxReplicas": settings.max_replicas,
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
    });
    namespaced(around, Kind::HorizontalPodAutoscaler, names::GATEWAY, json!({"spec": spec}))
}

fn monitor(around: &Surroundings) -> Desired {
    let spec = json!({
        "selector": {"matchLabels": names::collectors()},
        "podMetricsEndpoints": [{"port": METRICS.name}],
    });
    namespaced(around, Kind::PodMonitor, names::METRICS, json!({"spec": spec}))
}
