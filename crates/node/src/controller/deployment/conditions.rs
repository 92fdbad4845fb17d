//! Conditions of a Deployment, in kube-controller-manager's words.

use jiff::Timestamp;
use k8s_openapi::{
    api::apps::v1::{DeploymentCondition, DeploymentStatus},
    apimachinery::pkg::apis::meta::v1::Time,
};

/// The types.
pub(super) const AVAILABLE: &str = "Available";
pub(super) const PROGRESSING: &str = "Progressing";
pub(super) const FAILURE: &str = "ReplicaFailure";

/// Reasons of `Progressing`.
pub(super) const CREATED: &str = "NewReplicaSetCreated";
pub(super) const FOUND: &str = "FoundNewReplicaSet";
pub(super) const NOT_CREATED: &str = "ReplicaSetCreateError";
pub(super) const UPDATED: &str = "ReplicaSetUpdated";
pub(super) const DONE: &str = "NewReplicaSetAvailable";
pub(super) const TIMED_OUT: &str = "ProgressDeadlineExceeded";
pub(super) const PAUSED: &str = "DeploymentPaused";
pub(super) const RESUMED: &str = "DeploymentResumed";

/// A condition that begins now.
pub(super) fn new(kind: &str, status: &str, reason: &str, message: String, now: Timestamp) -> DeploymentCondition {
    DeploymentCondition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message),
        last_update_time: Some(Time(now)),
        last_transition_time: Some(Time(now)),
    }
}

/// The condition of a type.
pub(super) fn get<'a>(status: &'a DeploymentStatus, kind: &str) -> Option<&'a DeploymentCondition> {
    status.conditions.iter().flatten().find(|condition| condition.type_ == kind)
}

/// Whether the condition is there for this reason.
pub(super) fn is(condition: Option<&DeploymentCondition>, reason: &str) -> bool {
    condition.is_some_and(|condition| condition.reason.as_deref() == Some(reason))
}

/// One of the same status and reason stays as it is.
pub(super) fn set(status: &mut DeploymentStatus, condition: DeploymentCondition) {
    let held = get(status, &condition.type_);
    if held.is_some_and(|held| held.status == condition.status && held.reason == condition.reason) {
        return;
    }
    renew(status, condition);
}

/// Also one of the same reason is written again, with the time of now.
pub(super) fn renew(status: &mut DeploymentStatus, mut condition: DeploymentCondition) {
    let held = get(status, &condition.type_).filter(|held| held.status == condition.status);
    if let Some(held) = held {
        condition.last_transition_time = held.last_transition_time.clone();
    }
    remove(status, &condition.type_);
    status.conditions.get_or_insert_default().push(condition);
}

/// There is none of this type.
pub(super) fn remove(status: &mut DeploymentStatus, kind: &str) {
    status.conditions.iter_mut().for_each(|conditions| conditions.retain(|condition| condition.type_ != kind));
}
