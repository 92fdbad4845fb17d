//! Who the collectors are, and what they may see: nothing, unless they say which pod sent something or spread traces over a tier.

use kubewake_api::Layer;
use serde_json::{Value, json};

use super::{Surroundings, namespaced, of_cluster};
use crate::{apply::Desired, kind::Kind, names};

const RBAC: &str = "rbac.authorization.k8s.io";

pub(super) fn objects(around: &Surroundings, layer: &Layer) -> Vec<Desired> {
    let account = |name| namespaced(around, Kind::ServiceAccount, name, json!({"automountServiceAccountToken": false}));
    let mut objects = vec![account(names::GATEWAY)];
    if layer.sticky.is_some() {
        objects.push(account(names::STICKY));
        // The gateway finds the collectors of the tier by them.
        let rules = rules("discovery.k8s.io", &["endpointslices"]);
        objects.push(namespaced(around, Kind::Role, names::GATEWAY, rules));
        objects.push(namespaced(around, Kind::RoleBinding, names::GATEWAY, binding(around, "Role")));
    }
    if layer.enriched {
        objects.push(of_cluster(around, Kind::ClusterRole, names::GATEWAY, rules("", &["pods", "namespaces"])));
        objects.push(of_cluster(around, Kind::ClusterRoleBinding, names::GATEWAY, binding(around, "ClusterRole")));
    }
    objects
}

fn rules(group: &str, resources: &[&str]) -> Value {
    json!({"rules": [{"apiGroups": [group], "resources": resources, "verbs": ["get", "list", "watch"]}]})
}

/// Only the gateway reads anything.
fn binding(around: &Surroundings, kind: &str) -> Value {
    json!({
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": names::GATEWAY},
        "subjects": [{"kind": "ServiceAccount", "name": names::GATEWAY, "namespace": around.settings.namespace}],
    })
}
