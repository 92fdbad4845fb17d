//! What is there before anybody has written anything.

use serde_json::{Value, json};

use crate::{
    api::{
        GroupResource, ObjectKey, identity,
        meta::{Meta, set_meta},
    },
    auth::policy,
    core::Core,
    store::WriteError,
};

/// The namespaces that every cluster has.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Writes what is not there yet.
pub async fn write(core: &Core) -> Result<(), WriteError> {
    for name in NAMESPACES {
        put(core, GroupResource::new("", "namespaces"), namespace(name)).await?;
    }
    for class in priority_classes() {
        put(core, GroupResource::new("scheduling.k8s.io", "priorityclasses"), class).await?;
    }
    for (resource, object) in policy::objects() {
        put(core, resource, object).await?;
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

/// The classes of pods that a cluster cannot do without.
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

/// The object with what every stored one has.
pub fn complete(core: &Core, mut object: Value) -> Value {
    set_meta(&mut object, "uid", identity::uid());
    set_meta(&mut object, "creationTimestamp", core.now());
    object
}

async fn put(core: &Core, resource: GroupResource, object: Value) -> Result<(), WriteError> {
    let key = ObjectKey::new(resource, object.namespace(), object.name());
    match core.store.create(key, complete(core, object)).await {
        Ok(_) | Err(WriteError::Exists) => Ok(()),
        Err(error) => Err(error),
    }
}
