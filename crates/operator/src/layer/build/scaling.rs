//! The collectors' autoscaler, disruption budgets and PodMonitor.

use kubewake_api::CollectorConfigs;
use serde_json::json;

use super::{BuildContext, namespaced_object, network::METRICS_LISTENER};
use crate::{
    model::{names, object_kind::ObjectKind},
    objects::apply::DesiredObject,
};

pub(super) fn scaling_objects(around: &BuildContext, layer: &CollectorConfigs) -> Vec<DesiredObject> {
    let budget = |name| {
        let spec = json!({"maxUnavailable": 1, "selector": {"matchLabels": names::selector_labels(name)}});
        namespaced_object(around, ObjectKind::PodDisruptionBudget, name, json!({"spec": spec}))
    };
    let mut objects = vec![budget(names::GATEWAY), autoscaler(around)];
    objects.extend(layer.sticky.iter().map(|_| budget(names::STICKY)));
    objects.push(pod_monitor(around));
    objects
}

/// Scales by CPU alone, which is what incoming traffic costs. Memory grows with a slow backend, for which
/// more collectors would do nothing.
fn autoscaler(around: &BuildContext) -> DesiredObject {
    let settings = &around.settings;
    let target = json!({"type": "Utilization", "averageUtilization": settings.cpu_utilization});
    let spec = json!({
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": names::GATEWAY},
        "minReplicas": settings.min_replicas,
        "maxReplicas": settings.max_replicas,
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
    });
    namespaced_object(around, ObjectKind::HorizontalPodAutoscaler, names::GATEWAY, json!({"spec": spec}))
}

pub(super) fn pod_monitor(around: &BuildContext) -> DesiredObject {
    let spec = json!({
        "selector": {"matchLabels": names::collector_labels()},
        "podMetricsEndpoints": [{"port": METRICS_LISTENER.name}],
    });
    namespaced_object(around, ObjectKind::PodMonitor, names::METRICS_SERVICE, json!({"spec": spec}))
}
