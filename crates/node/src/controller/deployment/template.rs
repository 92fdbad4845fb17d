//! Templates of pods: which ReplicaSet has which.

use std::sync::Arc;

use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    core::v1::PodTemplateSpec,
};
use kube::api::ObjectMeta;

use crate::controller::hash;

/// Tells the pods of one ReplicaSet from those of another.
pub(super) const HASH: &str = "pod-template-hash";
/// The longest name that an object can have.
const LONGEST_NAME: usize = 253;

/// The template of what it makes now.
pub(super) fn current(deployment: &Deployment) -> PodTemplateSpec {
    deployment.spec.as_ref().map(|spec| spec.template.clone()).unwrap_or_default()
}

/// Of the sets, oldest first, the one that has the template.
pub(super) fn find<'a>(template: &PodTemplateSpec, sets: &'a [Arc<ReplicaSet>]) -> Option<&'a Arc<ReplicaSet>> {
    sets.iter().find(|set| has(set, template))
}

/// Whether the set makes pods of this template. It has the hash besides.
pub(super) fn has(set: &ReplicaSet, template: &PodTemplateSpec) -> bool {
    let own = set.spec.as_ref().and_then(|spec| spec.template.as_ref());
    own.is_some_and(|own| own.spec == template.spec && metadata(own) == metadata(template))
}

fn metadata(template: &PodTemplateSpec) -> ObjectMeta {
    let mut metadata = template.metadata.clone().unwrap_or_default();
    if let Some(labels) = &mut metadata.labels {
        labels.remove(HASH);
    }
    metadata.labels = metadata.labels.filter(|labels| !labels.is_empty());
    metadata
}

/// A hash of the template.
pub(super) fn hash(template: &PodTemplateSpec, collisions: Option<i32>) -> String {
    // What came as JSON goes as JSON; nothing else would come of it but a hash that others share, which is looked after.
    let serialized = serde_json::to_vec(template).unwrap_or_default();
    hash::short(&serialized, collisions.unwrap_or(0))
}

/// The name of the ReplicaSet for a hash.
pub(super) fn name(deployment: &str, hash: &str) -> String {
    let kept: String = deployment.chars().take(LONGEST_NAME.saturating_sub(1 + hash.len())).collect();
    format!("{kept}-{hash}")
}
