//! What a StatefulSet says of itself.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::{StatefulSet, StatefulSetStatus},
    core::v1::Pod,
};
use kube::ResourceExt;

use super::plan::{is_on_delete, is_terminating};
use crate::controller::{pods, revision};

/// Names of the revisions that pods have and shall have, and how often a name was taken.
#[derive(Clone, Debug)]
pub struct Revisions<'a> {
    /// Of pods that are not updated yet.
    pub current: &'a str,
    /// What the set asks for.
    pub newest: &'a str,
    /// In making names of revisions.
    pub collisions: i32,
}

/// The status of a set with these pods.
pub fn status(set: &StatefulSet, pods: &[Arc<Pod>], revisions: &Revisions<'_>, now: Timestamp) -> StatefulSetStatus {
    let spec = set.spec.clone().unwrap_or_default();
    let count = |counts: &dyn Fn(&Pod) -> bool| -> i32 {
        i32::try_from(pods.iter().filter(|pod| counts(pod)).count()).unwrap_or(i32::MAX)
    };
    let is_ready = |pod: &Pod| pods::phase(pod) == "Running" && pods::is_ready(pod);
    let min_ready = spec.min_ready_seconds.unwrap_or(0);
    let is_available = |pod: &Pod| is_ready(pod) && pods::is_available(pod, min_ready, now).is_ok();
    let has = |pod: &Pod, name: &str| {
        !is_terminating(pod) && pod.labels().get(revision::POD_LABEL).is_some_and(|of| of == name)
    };
    let (replicas, ready) = (count(&|_| true), count(&is_ready));
    let (mut current, updated) = (count(&|pod| has(pod, revisions.current)), count(&|pod| has(pod, revisions.newest)));
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
