//! The collectors' ServiceAccounts and rights: none, unless they look up the pods that sent something or
//! spread traces over the sticky tier.

use kubewake_api::CollectorConfigs;
use serde_json::{Value, json};

use super::{BuildContext, cluster_object, namespaced_object};
use crate::{
    model::{names, object_kind::ObjectKind},
    objects::apply::DesiredObject,
};

pub(super) const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

pub(super) fn rbac_objects(around: &BuildContext, layer: &CollectorConfigs) -> Vec<DesiredObject> {
    let account = |name| {
        namespaced_object(around, ObjectKind::ServiceAccount, name, json!({"automountServiceAccountToken": false}))
    };
    let mut objects = vec![account(names::GATEWAY)];
    if layer.sticky.is_some() {
        objects.push(account(names::STICKY));
        // The gateway finds the collectors of the sticky tier by EndpointSlices.
        let rules = policy_rules("discovery.k8s.io", &["endpointslices"]);
        objects.push(namespaced_object(around, ObjectKind::Role, names::GATEWAY, rules));
        objects.push(namespaced_object(around, ObjectKind::RoleBinding, names::GATEWAY, role_binding(around, "Role")));
    }
    if layer.enriched {
        objects.push(cluster_object(
            around,
            ObjectKind::ClusterRole,
            names::GATEWAY,
            policy_rules("", &["pods", "namespaces"]),
        ));
        objects.push(cluster_object(
            around,
            ObjectKind::ClusterRoleBinding,
            names::GATEWAY,
            role_binding(around, "ClusterRole"),
        ));
    }
    objects
}

pub(super) fn policy_rules(group: &str, resources: &[&str]) -> Value {
    json!({"rules": [{"apiGroups": [group], "resources": resources, "verbs": ["get", "list", "watch"]}]})
}

/// Only the gateway has rights to read.
fn role_binding(around: &BuildContext, kind: &str) -> Value {
    json!({
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": kind, "name": names::GATEWAY},
        "subjects": [{"kind": "ServiceAccount", "name": names::GATEWAY, "namespace": around.namespace}],
    })
}
