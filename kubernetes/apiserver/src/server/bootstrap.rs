//! The objects of a new server.

use serde_json::{Value, json};

use crate::{
    api::{
        GroupResource, ObjectKey, identity,
        meta::{MetaAccessor, set_meta},
    },
    auth::bootstrap_policy,
    server_state::ServerState,
    store::WriteError,
};

/// The namespaces that every cluster has.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Writes the objects that do not exist yet.
pub async fn write(core: &ServerState) -> Result<(), WriteError> {
    for name in NAMESPACES {
        create_if_absent(core, GroupResource::new("", "namespaces"), namespace(name)).await?;
    }
    for class in priority_classes() {
        create_if_absent(core, GroupResource::new("scheduling.k8s.io", "priorityclasses"), class).await?;
    }
    for (resource, object) in bootstrap_policy::bootstrap_objects() {
        create_if_absent(core, resource, object).await?;
    }
    Ok(())
}

fn namespace(name: &str) -> Value {
    json!({
        "metadata": { "name": name, "labels": { "kubernetes.io/metadata.name": name } },
        "spec": { "finalizers": ["kubernetes"] },
        "status": { "phase": "Active" },
    })
}

/// The priority classes that every cluster has.
fn priority_classes() -> [Value; 2] {
    let class = |name: &str, value: i64, description: &str| {
        json!({
            "metadata": { "name": name, "generation": 1 },
            "value": value,
            "description": description,
            "preemptionPolicy": "PreemptLowerPriority",
        })
    };
    let cluster =
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.";
    let node = "Used for system critical pods that must not be moved from their current node.";
    [class("system-cluster-critical", 2_000_000_000, cluster), class("system-node-critical", 2_000_001_000, node)]
}

/// Adds the metadata of stored objects.
pub fn set_create_metadata(core: &ServerState, mut object: Value) -> Value {
    set_meta(&mut object, "uid", identity::uid());
    set_meta(&mut object, "creationTimestamp", core.now());
    object
}

async fn create_if_absent(core: &ServerState, resource: GroupResource, object: Value) -> Result<(), WriteError> {
    let key = ObjectKey::new(resource, object.namespace(), object.name());
    match core.store.create(key, set_create_metadata(core, object)).await {
        Ok(_) | Err(WriteError::Exists) => Ok(()),
        Err(error) => Err(error),
    }
}
