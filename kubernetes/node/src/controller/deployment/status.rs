//! The status of a Deployment: counts, availability, progress.

use std::{sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::{Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet};
use kube::ResourceExt;

use super::{
    conditions::{
        self, AVAILABLE, NEW_REPLICA_SET_AVAILABLE, PROGRESS_DEADLINE_EXCEEDED, PROGRESSING, REPLICA_FAILURE,
        REPLICA_SET_UPDATED,
    },
    limits::RolloutLimits,
};
use crate::controller::replicaset::desired_replicas;

/// Added to a deadline, so that clocks of different resolution agree that it has passed.
const DEADLINE_MARGIN: Duration = Duration::from_millis(10);

#[derive(Clone, Copy, Debug)]
pub(super) struct OwnedReplicaSets<'a> {
    pub new: Option<&'a Arc<ReplicaSet>>,
    pub old: &'a [Arc<ReplicaSet>],
}

impl<'a> OwnedReplicaSets<'a> {
    fn all(self) -> impl Iterator<Item = &'a Arc<ReplicaSet>> {
        self.old.iter().chain(self.new)
    }

    fn sum(self, of: impl Fn(&ReplicaSet) -> i32) -> i64 {
        self.all().map(|set| i64::from(of(set))).sum()
    }
}

/// Updates the counts and the condition `Available`. Other conditions are those of `draft`.
pub(super) fn count_replicas(
    deployment: &Deployment,
    draft: &DeploymentStatus,
    sets: OwnedReplicaSets<'_>,
    now: Timestamp,
) -> DeploymentStatus {
    let limits = RolloutLimits::for_deployment(deployment);
    let available = sets.sum(available_replicas);
    let missing = (sets.sum(desired_replicas) - available).max(0);
    let mut status = DeploymentStatus {
        observed_generation: deployment.metadata.generation,
        replicas: non_zero(sets.sum(actual_replicas)),
        updated_replicas: non_zero(sets.new.map_or(0, |set| i64::from(actual_replicas(set)))),
        ready_replicas: non_zero(
            sets.sum(|set| set.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or(0)),
        ),
        available_replicas: non_zero(available),
        unavailable_replicas: non_zero(missing),
        terminating_replicas: terminating_replicas(sets),
        collision_count: draft.collision_count,
        conditions: draft.conditions.clone(),
    };
    let condition = if available >= limits.min_available() {
        ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    } else {
        ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    };
    let (state, reason, message) = condition;
    conditions::set_condition(
        &mut status,
        conditions::new_condition(AVAILABLE, state, reason, message.to_owned(), now),
    );
    status
}

/// Zero is omitted.
fn non_zero(number: i64) -> Option<i32> {
    Some(i32::try_from(number).unwrap_or(i32::MAX)).filter(|number| *number != 0)
}

/// The existing pods.
pub(super) fn actual_replicas(set: &ReplicaSet) -> i32 {
    set.status.as_ref().map_or(0, |status| status.replicas)
}

/// The pods that have been ready for long enough.
pub(super) fn available_replicas(set: &ReplicaSet) -> i32 {
    set.status.as_ref().and_then(|status| status.available_replicas).unwrap_or(0)
}

/// None if one of the sets does not report it.
fn terminating_replicas(sets: OwnedReplicaSets<'_>) -> Option<i32> {
    sets.all().try_fold(0_i32, |sum, set| {
        let status = set.status.clone().unwrap_or_default();
        match status.terminating_replicas {
            Some(number) => Some(sum.saturating_add(number)),
            None if status.observed_generation.is_none() => Some(sum),
            None => None,
        }
    })
}

/// Updates the condition `Progressing`: `status` has the current counts, the Deployment the previous ones.
pub(super) fn update_progress(
    deployment: &Deployment,
    status: &mut DeploymentStatus,
    sets: OwnedReplicaSets<'_>,
    now: Timestamp,
) {
    let Some(deadline) = progress_deadline(deployment) else {
        conditions::remove_condition(status, PROGRESSING);
        return update_failure_condition(status, sets);
    };
    let held = conditions::get_condition(status, PROGRESSING).cloned();
    let was_done =
        status.replicas == status.updated_replicas && conditions::has_reason(held.as_ref(), NEW_REPLICA_SET_AVAILABLE);
    let who = sets.new.map_or_else(
        || format!("Deployment {:?}", deployment.name_any()),
        |set| format!("ReplicaSet {:?}", set.name_any()),
    );
    if was_done {
        // The counts may change later, but that is no rollout.
    } else if is_complete(deployment, status) {
        let message = format!("{who} has successfully progressed.");
        conditions::set_condition(
            status,
            conditions::new_condition(PROGRESSING, "True", NEW_REPLICA_SET_AVAILABLE, message, now),
        );
    } else if has_progressed(deployment.status.as_ref(), status) {
        let message = format!("{who} is progressing.");
        conditions::replace_condition(
            status,
            conditions::new_condition(PROGRESSING, "True", REPLICA_SET_UPDATED, message, now),
        );
    } else if has_timed_out(held.as_ref(), deadline, now) {
        let message = format!("{who} has timed out progressing.");
        conditions::set_condition(
            status,
            conditions::new_condition(PROGRESSING, "False", PROGRESS_DEADLINE_EXCEEDED, message, now),
        );
    }
    update_failure_condition(status, sets);
}

/// The progress deadline, unless it is so far away that it means none.
pub(super) fn progress_deadline(deployment: &Deployment) -> Option<SignedDuration> {
    let seconds = deployment.spec.as_ref()?.progress_deadline_seconds.filter(|seconds| *seconds != i32::MAX)?;
    Some(SignedDuration::from_secs(seconds.into()))
}

/// Whether all pods are new, available, and as many as desired.
pub(super) fn is_complete(deployment: &Deployment, status: &DeploymentStatus) -> bool {
    let replicas = non_zero(RolloutLimits::for_deployment(deployment).replicas);
    status.updated_replicas == replicas
        && status.replicas == replicas
        && status.available_replicas == replicas
        && status.observed_generation >= deployment.metadata.generation
}

/// Whether there are more new, fewer old, more ready or more available pods.
fn has_progressed(old: Option<&DeploymentStatus>, new: &DeploymentStatus) -> bool {
    let old = old.cloned().unwrap_or_default();
    let outdated = |status: &DeploymentStatus| status.replicas.unwrap_or(0) - status.updated_replicas.unwrap_or(0);
    new.updated_replicas > old.updated_replicas
        || outdated(new) < outdated(&old)
        || new.ready_replicas > old.ready_replicas
        || new.available_replicas > old.available_replicas
}

fn has_timed_out(held: Option<&DeploymentCondition>, deadline: SignedDuration, now: Timestamp) -> bool {
    match held {
        _ if conditions::has_reason(held, NEW_REPLICA_SET_AVAILABLE) => false,
        _ if conditions::has_reason(held, PROGRESS_DEADLINE_EXCEEDED) => true,
        Some(held) => held.last_update_time.as_ref().is_some_and(|since| now.duration_since(since.0) > deadline),
        None => false,
    }
}

/// The time until a stalled rollout may have exceeded its deadline.
pub(super) fn next_deadline_check(
    deployment: &Deployment,
    status: &DeploymentStatus,
    now: Timestamp,
) -> Option<Duration> {
    let deadline = progress_deadline(deployment)?;
    let held = conditions::get_condition(status, PROGRESSING)?;
    if is_complete(deployment, status)
        || [NEW_REPLICA_SET_AVAILABLE, PROGRESS_DEADLINE_EXCEEDED]
            .iter()
            .any(|reason| conditions::has_reason(Some(held), reason))
    {
        return None;
    }
    let passed = now.duration_since(held.last_update_time.as_ref()?.0);
    Some(Duration::try_from(deadline.saturating_sub(passed)).unwrap_or_default() + DEADLINE_MARGIN)
}

/// Sets the condition `ReplicaFailure` from the ReplicaSets, the new one first.
fn update_failure_condition(status: &mut DeploymentStatus, sets: OwnedReplicaSets<'_>) {
    let sets = sets.new.into_iter().chain(sets.old);
    let mut found = sets.filter_map(|set| {
        let conditions = set.status.as_ref()?.conditions.as_ref()?;
        conditions.iter().find(|condition| condition.type_ == REPLICA_FAILURE)
    });
    match found.next() {
        Some(failure) => conditions::set_condition(
            status,
            DeploymentCondition {
                type_: failure.type_.clone(),
                status: failure.status.clone(),
                reason: failure.reason.clone(),
                message: failure.message.clone(),
                last_update_time: failure.last_transition_time.clone(),
                last_transition_time: failure.last_transition_time.clone(),
            },
        ),
        None => conditions::remove_condition(status, REPLICA_FAILURE),
    }
}

#[cfg(test)]
mod tests;
