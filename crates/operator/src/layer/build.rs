//! The objects of the collector layer. Pure and infallible: the same pipelines make the same objects.
//!
//! Documents and secrets reach the collectors through volumes, and no part of them is in a pod template. A
//! change of either is read in place; only a change of the settings rolls the collectors. The number of
//! collectors is the autoscaler's, so no object here has `replicas` of the gateway.
//!
//! *Guaranteed*: every namespaced object is owned by the anchor of its namespace, a ConfigMap. The anchors and all
//! cluster-scoped objects are owned by the pipelines that keep the layer. Owners in another namespace do not count,
//! so the agents' namespace has an anchor of its own, which the pipelines own that read logs of containers. So the
//! garbage collector removes all of it after the last of these, whether an operator runs or not.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kubewake_api::{CollectorConfigs, CollectorSettings};
use serde_json::{Map, Value, json};

use crate::{
    model::{
        names::{self, ManagedPart},
        object_kind::ObjectKind,
    },
    objects::apply::DesiredObject,
};

mod agents;
mod documents;
mod network;
mod rbac;
mod scaling;
mod workloads;

#[cfg(test)]
mod tests;

pub use agents::{agent_objects, agent_rights};
pub use documents::{document_config_map, retained_values, values_secret};

/// The input of all objects besides the documents.
#[derive(Clone, Debug)]
pub struct BuildContext {
    /// The namespace of the objects: the operator's, or that of the agents.
    pub namespace: String,
    /// The anchor as an owner.
    pub anchor: OwnerReference,
    /// The pipelines that own the anchor.
    pub anchor_owners: Vec<OwnerReference>,
    pub settings: CollectorSettings,
    /// The collectors' image, unless the settings name one.
    pub image: String,
}

pub fn anchor_object(namespace: &str, keepers: &[OwnerReference]) -> DesiredObject {
    let mut metadata = metadata(names::LAYER_CONFIG_MAP, keepers);
    metadata.insert("namespace".to_owned(), namespace.into());
    desired_object(ObjectKind::ConfigMap, names::LAYER_CONFIG_MAP, metadata, Value::Null)
}

/// All objects of the operator's namespace but documents, secrets and the anchor, in the order in which they are
/// applied. While no pipeline receives what is sent, only the Service that senders use.
pub fn layer_objects(around: &BuildContext, layer: &CollectorConfigs) -> Vec<DesiredObject> {
    if layer.gateway.is_none() {
        return vec![network::otlp_service(around)];
    }
    let mut objects = rbac::rbac_objects(around, layer);
    objects.extend(network::network_objects(around, layer));
    objects.push(workloads::gateway_deployment(around));
    objects.extend(layer.sticky.iter().map(|_| workloads::sticky_stateful_set(around)));
    objects.extend(scaling::scaling_objects(around, layer));
    objects.sort_by_key(|desired| desired.kind);
    objects
}

/// One ConfigMap for each document of the operator's namespace.
pub fn document_objects(around: &BuildContext, layer: &CollectorConfigs) -> Vec<DesiredObject> {
    let all = [(names::GATEWAY, &layer.gateway), (names::STICKY, &layer.sticky)];
    let all = all.into_iter().filter_map(|(name, document)| Some((name, document.as_ref()?)));
    all.map(|(name, document)| documents::document_config_map(around, name, document)).collect()
}

fn namespaced_object(around: &BuildContext, kind: ObjectKind, name: &str, rest: Value) -> DesiredObject {
    let mut metadata = metadata(name, std::slice::from_ref(&around.anchor));
    metadata.insert("namespace".to_owned(), around.namespace.clone().into());
    desired_object(kind, name, metadata, rest)
}

fn cluster_object(around: &BuildContext, kind: ObjectKind, name: &str, rest: Value) -> DesiredObject {
    desired_object(kind, name, metadata(name, &around.anchor_owners), rest)
}

fn metadata(name: &str, owners: &[OwnerReference]) -> Map<String, Value> {
    let mut metadata = Map::new();
    metadata.insert("name".to_owned(), name.into());
    metadata.insert("labels".to_owned(), json!(names::managed_labels(name, ManagedPart::Layer)));
    metadata.insert("ownerReferences".to_owned(), json!(owners));
    metadata
}

fn desired_object(kind: ObjectKind, name: &str, metadata: Map<String, Value>, rest: Value) -> DesiredObject {
    let resource = kind.api_resource();
    let mut value = Map::new();
    value.insert("apiVersion".to_owned(), resource.api_version.into());
    value.insert("kind".to_owned(), resource.kind.into());
    value.insert("metadata".to_owned(), Value::Object(metadata));
    if let Value::Object(rest) = rest {
        value.extend(rest);
    }
    DesiredObject { kind, name: name.to_owned(), value: Value::Object(value) }
}
