//! Conditions of a Deployment, in kube-controller-manager's words.

use jiff::Timestamp;
use k8s_openapi::{
    api::apps::v1::{DeploymentCondition, DeploymentStatus},
    apimachinery::pkg::apis::meta::v1::Time,
};

pub(super) const AVAILABLE: &str = "Available";
pub(super) const PROGRESSING: &str = "Progressing";
pub(super) const REPLICA_FAILURE: &str = "ReplicaFailure";

pub(super) const NEW_REPLICA_SET_CREATED: &str = "NewReplicaSetCreated";
pub(super) const NEW_REPLICA_SET_FOUND: &str = "FoundNewReplicaSet";
pub(super) const REPLICA_SET_CREATE_ERROR: &str = "ReplicaSetCreateError";
pub(super) const REPLICA_SET_UPDATED: &str = "ReplicaSetUpdated";
pub(super) const NEW_REPLICA_SET_AVAILABLE: &str = "NewReplicaSetAvailable";
pub(super) const PROGRESS_DEADLINE_EXCEEDED: &str = "ProgressDeadlineExceeded";
pub(super) const DEPLOYMENT_PAUSED: &str = "DeploymentPaused";
pub(super) const DEPLOYMENT_RESUMED: &str = "DeploymentResumed";

/// A condition with the current time.
pub(super) fn new_condition(
    kind: &str,
    status: &str,
    reason: &str,
    message: String,
    now: Timestamp,
) -> DeploymentCondition {
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
pub(super) fn get_condition<'a>(status: &'a DeploymentStatus, kind: &str) -> Option<&'a DeploymentCondition> {
    status.conditions.iter().flatten().find(|condition| condition.type_ == kind)
}

/// Whether the condition exists with this reason.
pub(super) fn has_reason(condition: Option<&DeploymentCondition>, reason: &str) -> bool {
    condition.is_some_and(|condition| condition.reason.as_deref() == Some(reason))
}

/// Sets a condition. An existing one with the same status and reason is kept.
pub(super) fn set_condition(status: &mut DeploymentStatus, condition: DeploymentCondition) {
    let held = get_condition(status, &condition.type_);
    if held.is_some_and(|held| held.status == condition.status && held.reason == condition.reason) {
        return;
    }
    replace_condition(status, condition);
}

/// Sets a condition, also if the existing one has the same reason, with the current time.
pub(super) fn replace_condition(status: &mut DeploymentStatus, mut condition: DeploymentCondition) {
    let held = get_condition(status, &condition.type_).filter(|held| held.status == condition.status);
    if let Some(held) = held {
        condition.last_transition_time = held.last_transition_time.clone();
    }
    remove_condition(status, &condition.type_);
    status.conditions.get_or_insert_default().push(condition);
}

pub(super) fn remove_condition(status: &mut DeploymentStatus, kind: &str) {
    status.conditions.iter_mut().for_each(|conditions| conditions.retain(|condition| condition.type_ != kind));
}
