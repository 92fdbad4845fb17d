//! The objects of the collector layer. Pure and infallible: the same pipelines make the same objects.
//!
//! Documents and secrets reach the collectors through volumes, and nothing of them is in a pod template: a change of either is read in place, and only a
//! change of how collectors run rolls them. How many there are is the autoscaler's, so `replicas` of the gateway is in none of them.
//!
//! *Guaranteed*: every namespaced object is owned by one of them, the anchor. That one and everything of no namespace is owned by the pipelines that keep the layer, so that the
//! garbage collector removes all of it after the last of these, whether an operator runs or not.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kubewake_api::{Layer, Settings};
use serde_json::{Map, Value, json};

use crate::{
    apply::Desired,
    kind::Kind,
    names::{self, Part},
};

mod access;
mod network;
mod pods;
mod scale;
mod texts;

#[cfg(test)]
mod tests;

pub use texts::{CONFIG, secret, staying};

/// What objects have to know beside the documents.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// What owns all of it.
    pub anchor: OwnerReference,
    /// The pipelines that own that.
    pub keepers: Vec<OwnerReference>,
    /// How collectors run.
    pub settings: Settings,
    /// Their image, unless the settings name one.
    pub image: String,
}

/// What owns everything else.
pub fn anchor(namespace: &str, keepers: &[OwnerReference]) -> Desired {
    let mut metadata = metadata(names::LAYER, keepers);
    metadata.insert("namespace".to_owned(), namespace.into());
    desired(Kind::ConfigMap, names::LAYER, metadata, Value::Null)
}

/// Everything but documents, secrets and the anchor, in the order in which it is applied. While nothing flows that is the address that senders know.
pub fn objects(around: &Surroundings, layer: &Layer) -> Vec<Desired> {
    if layer.gateway.is_none() {
        return vec![network::address(around)];
    }
    let mut objects = access::objects(around, layer);
    objects.extend(network::objects(around, layer));
    objects.push(pods::gateway(around));
    objects.extend(layer.sticky.iter().map(|_| pods::sticky(around)));
    objects.extend(scale::objects(around, layer));
    objects.sort_by_key(|desired| desired.kind);
    objects
}

/// The documents, each for the collectors of one name.
pub fn documents(around: &Surroundings, layer: &Layer) -> Vec<Desired> {
    let all = [(names::GATEWAY, &layer.gateway), (names::STICKY, &layer.sticky)];
    let all = all.into_iter().filter_map(|(name, document)| Some((name, document.as_ref()?)));
    all.map(|(name, document)| texts::document(around, name, document)).collect()
}

/// An object of a namespace.
fn namespaced(around: &Surroundings, kind: Kind, name: &str, rest: Value) -> Desired {
    let mut metadata = metadata(name, std::slice::from_ref(&around.anchor));
    metadata.insert("namespace".to_owned(), around.settings.namespace.clone().into());
    desired(kind, name, metadata, rest)
}

/// An object of the cluster.
fn of_cluster(around: &Surroundings, kind: Kind, name: &str, rest: Value) -> Desired {
    desired(kind, name, metadata(name, &around.keepers), rest)
}

fn metadata(name: &str, owners: &[OwnerReference]) -> Map<String, Value> {
    let mut metadata = Map::new();
    metadata.insert("name".to_owned(), name.into());
    metadata.insert("labels".to_owned(), json!(names::labels(name, Part::Layer)));
    metadata.insert("ownerReferences".to_owned(), json!(owners));
    metadata
}

fn desired(kind: Kind, name: &str, metadata: Map<String, Value>, rest: Value) -> Desired {
    let resource = kind.resource();
    let mut value = Map::new();
    value.insert("apiVersion".to_owned(), resource.api_version.into());
    value.insert("kind".to_owned(), resource.kind.into());
    value.insert("metadata".to_owned(), Value::Object(metadata));
    if let Value::Object(rest) = rest {
        value.extend(rest);
    }
    Desired { kind, name: name.to_owned(), value: Value::Object(value) }
}
