//! Pod templates, their hashes, and the ReplicaSets that have them.

use std::sync::Arc;

use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    core::v1::PodTemplateSpec,
};
use kube::api::ObjectMeta;

use crate::controller::hash;

/// The label that distinguishes the pods of different ReplicaSets.
pub(super) const POD_TEMPLATE_HASH_LABEL: &str = "pod-template-hash";
/// The longest name of an object.
const MAX_NAME_LENGTH: usize = 253;

/// The template of new pods.
pub(super) fn current_template(deployment: &Deployment) -> PodTemplateSpec {
    deployment.spec.as_ref().map(|spec| spec.template.clone()).unwrap_or_default()
}

/// The oldest set with the template.
pub(super) fn find_replica_set<'a>(
    template: &PodTemplateSpec,
    sets: &'a [Arc<ReplicaSet>],
) -> Option<&'a Arc<ReplicaSet>> {
    sets.iter().find(|set| has_template(set, template))
}

/// Whether the set has this template, apart from the hash label.
pub(super) fn has_template(set: &ReplicaSet, template: &PodTemplateSpec) -> bool {
    let own = set.spec.as_ref().and_then(|spec| spec.template.as_ref());
    own.is_some_and(|own| own.spec == template.spec && metadata(own) == metadata(template))
}

fn metadata(template: &PodTemplateSpec) -> ObjectMeta {
    let mut metadata = template.metadata.clone().unwrap_or_default();
    if let Some(labels) = &mut metadata.labels {
        labels.remove(POD_TEMPLATE_HASH_LABEL);
    }
    metadata.labels = metadata.labels.filter(|labels| !labels.is_empty());
    metadata
}

/// A hash of the template.
pub(super) fn template_hash(template: &PodTemplateSpec, collisions: Option<i32>) -> String {
    // The template came as JSON, so it serializes. Otherwise its hash would be that of nothing, and collisions
    // are handled.
    let serialized = serde_json::to_vec(template).unwrap_or_default();
    hash::short(&serialized, collisions.unwrap_or(0))
}

/// The name of the ReplicaSet for a hash.
pub(super) fn replica_set_name(deployment: &str, hash: &str) -> String {
    let kept: String = deployment.chars().take(MAX_NAME_LENGTH.saturating_sub(1 + hash.len())).collect();
    format!("{kept}-{hash}")
}
