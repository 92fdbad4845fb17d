//! What a Deployment says of its pods and of its rollout.

use std::{sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::{Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet};
use kube::ResourceExt;

use super::{
    conditions::{self, AVAILABLE, DONE, FAILURE, PROGRESSING, TIMED_OUT, UPDATED},
    limits::Limits,
};
use crate::controller::replicaset::wanted;

/// After a deadline, so that clocks of different grain agree that it has passed.
const GRAIN: Duration = Duration::from_millis(10);

/// The ReplicaSets of a Deployment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sets<'a> {
    pub new: Option<&'a Arc<ReplicaSet>>,
    pub old: &'a [Arc<ReplicaSet>],
}

impl<'a> Sets<'a> {
    fn all(self) -> impl Iterator<Item = &'a Arc<ReplicaSet>> {
        self.old.iter().chain(self.new)
    }

    fn sum(self, of: impl Fn(&ReplicaSet) -> i32) -> i64 {
        self.all().map(|set| i64::from(of(set))).sum()
    }
}

/// The counts, and whether enough is available. Other conditions are those of `draft`.
pub(super) fn count(
    deployment: &Deployment,
    draft: &DeploymentStatus,
    sets: Sets<'_>,
    now: Timestamp,
) -> DeploymentStatus {
    let limits = Limits::of(deployment);
    let available = sets.sum(available);
    let missing = (sets.sum(wanted) - available).max(0);
    let mut status = DeploymentStatus {
        observed_generation: deployment.metadata.generation,
        replicas: some(sets.sum(actual)),
        updated_replicas: some(sets.new.map_or(0, |set| i64::from(actual(set)))),
        ready_replicas: some(sets.sum(|set| set.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or(0))),
        available_replicas: some(available),
        unavailable_replicas: some(missing),
        terminating_replicas: terminating(sets),
        collision_count: draft.collision_count,
        conditions: draft.conditions.clone(),
    };
    let condition = if available >= limits.fewest() {
        ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    } else {
        ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    };
    let (state, reason, message) = condition;
    conditions::set(&mut status, conditions::new(AVAILABLE, state, reason, message.to_owned(), now));
    status
}

/// Zero is written by leaving the field out.
fn some(number: i64) -> Option<i32> {
    Some(i32::try_from(number).unwrap_or(i32::MAX)).filter(|number| *number != 0)
}

/// As many pods as there are.
pub(super) fn actual(set: &ReplicaSet) -> i32 {
    set.status.as_ref().map_or(0, |status| status.replicas)
}

/// As many pods as are ready for long enough.
pub(super) fn available(set: &ReplicaSet) -> i32 {
    set.status.as_ref().and_then(|status| status.available_replicas).unwrap_or(0)
}

/// Not known if a set that was looked at does not say.
fn terminating(sets: Sets<'_>) -> Option<i32> {
    sets.all().try_fold(0_i32, |sum, set| {
        let status = set.status.clone().unwrap_or_default();
        match status.terminating_replicas {
            Some(number) => Some(sum.saturating_add(number)),
            None if status.observed_generation.is_none() => Some(sum),
            None => None,
        }
    })
}

/// What becomes of the rollout: `status` has the counts of now, the Deployment's own those of before.
pub(super) fn progress(deployment: &Deployment, status: &mut DeploymentStatus, sets: Sets<'_>, now: Timestamp) {
    let Some(deadline) = deadline(deployment) else {
        conditions::remove(status, PROGRESSING);
        return failures(status, sets);
    };
    let held = conditions::get(status, PROGRESSING).cloned();
    let was_done = status.replicas == status.updated_replicas && conditions::is(held.as_ref(), DONE);
    let who = sets.new.map_or_else(
        || format!("Deployment {:?}", deployment.name_any()),
        |set| format!("ReplicaSet {:?}", set.name_any()),
    );
    if was_done {
        // Pods come and go since, but there is no rollout.
    } else if is_complete(deployment, status) {
        let message = format!("{who} has successfully progressed.");
        conditions::set(status, conditions::new(PROGRESSING, "True", DONE, message, now));
    } else if has_progressed(deployment.status.as_ref(), status) {
        let message = format!("{who} is progressing.");
        conditions::renew(status, conditions::new(PROGRESSING, "True", UPDATED, message, now));
    } else if has_timed_out(held.as_ref(), deadline, now) {
        let message = format!("{who} has timed out progressing.");
        conditions::set(status, conditions::new(PROGRESSING, "False", TIMED_OUT, message, now));
    }
    failures(status, sets);
}

/// The deadline, unless it is so far away that it is none.
pub(super) fn deadline(deployment: &Deployment) -> Option<SignedDuration> {
    let seconds = deployment.spec.as_ref()?.progress_deadline_seconds.filter(|seconds| *seconds != i32::MAX)?;
    Some(SignedDuration::from_secs(seconds.into()))
}

/// All pods are new, available, and as many as are asked for.
pub(super) fn is_complete(deployment: &Deployment, status: &DeploymentStatus) -> bool {
    let replicas = some(Limits::of(deployment).replicas);
    status.updated_replicas == replicas
        && status.replicas == replicas
        && status.available_replicas == replicas
        && status.observed_generation >= deployment.metadata.generation
}

/// More new pods, fewer old ones, more that are ready or available.
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
        _ if conditions::is(held, DONE) => false,
        _ if conditions::is(held, TIMED_OUT) => true,
        Some(held) => held.last_update_time.as_ref().is_some_and(|since| now.duration_since(since.0) > deadline),
        None => false,
    }
}

/// When to look whether a rollout that does not move has timed out.
pub(super) fn next_check(deployment: &Deployment, status: &DeploymentStatus, now: Timestamp) -> Option<Duration> {
    let deadline = deadline(deployment)?;
    let held = conditions::get(status, PROGRESSING)?;
    if is_complete(deployment, status) || [DONE, TIMED_OUT].iter().any(|reason| conditions::is(Some(held), reason)) {
        return None;
    }
    let passed = now.duration_since(held.last_update_time.as_ref()?.0);
    Some(Duration::try_from(deadline.saturating_sub(passed)).unwrap_or_default() + GRAIN)
}

/// What keeps a ReplicaSet from making pods, the new one's troubles first.
fn failures(status: &mut DeploymentStatus, sets: Sets<'_>) {
    let sets = sets.new.into_iter().chain(sets.old);
    let mut found = sets.filter_map(|set| {
        let conditions = set.status.as_ref()?.conditions.as_ref()?;
        conditions.iter().find(|condition| condition.type_ == FAILURE)
    });
    match found.next() {
        Some(failure) => conditions::set(
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
        None => conditions::remove(status, FAILURE),
    }
}

#[cfg(test)]
mod tests;
