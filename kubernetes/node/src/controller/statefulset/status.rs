//! The status of a StatefulSet.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::{StatefulSet, StatefulSetStatus},
    core::v1::Pod,
};
use kube::ResourceExt;

use super::plan::{is_on_delete, is_terminating};
use crate::controller::{pods, revision};

/// The current and the newest revision, and the number of name collisions.
#[derive(Clone, Debug)]
pub struct RevisionNames<'a> {
    /// The revision of pods that are not updated yet.
    pub current: &'a str,
    /// The revision of the current template.
    pub newest: &'a str,
    /// Name collisions of revisions.
    pub collisions: i32,
}

/// The status of a set with these pods.
pub fn calculate_status(
    set: &StatefulSet,
    pods: &[Arc<Pod>],
    revisions: &RevisionNames<'_>,
    now: Timestamp,
) -> StatefulSetStatus {
    let spec = set.spec.clone().unwrap_or_default();
    let count = |counts: &dyn Fn(&Pod) -> bool| -> i32 {
        i32::try_from(pods.iter().filter(|pod| counts(pod)).count()).unwrap_or(i32::MAX)
    };
    let is_ready = |pod: &Pod| pods::phase(pod) == "Running" && pods::is_ready(pod);
    let min_ready = spec.min_ready_seconds.unwrap_or(0);
    let is_available = |pod: &Pod| is_ready(pod) && pods::is_available(pod, min_ready, now).is_ok();
    let has = |pod: &Pod, name: &str| {
        !is_terminating(pod) && pod.labels().get(revision::POD_REVISION_HASH_LABEL).is_some_and(|of| of == name)
    };
    let replicas = count(&|_| true);
    let ready = count(&is_ready);
    let mut current = count(&|pod| has(pod, revisions.current));
    let updated = count(&|pod| has(pod, revisions.newest));
    let wanted = spec.replicas.unwrap_or(1);
    let complete = !is_on_delete(&spec) && [replicas, ready, updated] == [wanted; 3];
    if complete {
        current = updated;
    }
    let some = |count: i32| (count > 0).then_some(count);
    StatefulSetStatus {
        observed_generation: set.metadata.generation,
        replicas,
        ready_replicas: some(ready),
        available_replicas: Some(count(&is_available)),
        current_replicas: some(current),
        updated_replicas: some(updated),
        current_revision: Some(if complete { revisions.newest } else { revisions.current }.to_owned()),
        update_revision: Some(revisions.newest.to_owned()),
        collision_count: Some(revisions.collisions),
        conditions: set.status.as_ref().and_then(|status| status.conditions.clone()),
    }
}
