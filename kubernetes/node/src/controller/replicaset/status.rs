//! The status of a ReplicaSet.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use k8s_openapi::{
    api::{
        apps::v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetStatus},
        core::v1::Pod,
    },
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::ResourceExt;

use super::replicas::ReplicaFailure;
use crate::controller::{pods, status::non_zero};

const REPLICA_FAILURE: &str = "ReplicaFailure";

/// The status with these pods, none of which has ended.
pub(super) fn calculate_status(
    set: &ReplicaSet,
    pods: &[Arc<Pod>],
    failure: Option<&ReplicaFailure>,
    now: Timestamp,
) -> ReplicaSetStatus {
    let spec = set.spec.clone().unwrap_or_default();
    let labels = spec.template.and_then(|template| template.metadata?.labels).unwrap_or_default();
    let (active, terminating): (Vec<_>, Vec<_>) = pods.iter().partition(|pod| pods::is_active(pod));
    let number = |counts: &dyn Fn(&Pod) -> bool| active.iter().filter(|pod| counts(pod)).count();
    let min_ready = spec.min_ready_seconds.unwrap_or(0);
    ReplicaSetStatus {
        replicas: non_zero(active.len()).unwrap_or(0),
        fully_labeled_replicas: non_zero(number(&|pod| has_all(pod.labels(), &labels))),
        ready_replicas: non_zero(number(&pods::is_ready)),
        available_replicas: non_zero(number(&|pod| pods::is_available(pod, min_ready, now).is_ok())),
        terminating_replicas: i32::try_from(terminating.len()).ok(),
        observed_generation: set.metadata.generation,
        conditions: conditions(set, failure, now),
    }
}

fn has_all(labels: &BTreeMap<String, String>, wanted: &BTreeMap<String, String>) -> bool {
    wanted.iter().all(|(name, value)| labels.get(name) == Some(value))
}

/// The first failure is kept until there is none.
fn conditions(set: &ReplicaSet, failure: Option<&ReplicaFailure>, now: Timestamp) -> Option<Vec<ReplicaSetCondition>> {
    let held = set.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
    let (failed, mut conditions): (Vec<_>, Vec<_>) = held.into_iter().partition(|held| held.type_ == REPLICA_FAILURE);
    if let Some(failure) = failure {
        conditions.push(failed.into_iter().next().unwrap_or_else(|| ReplicaSetCondition {
            type_: REPLICA_FAILURE.to_owned(),
            status: "True".to_owned(),
            reason: Some(failure.reason.to_owned()),
            message: Some(failure.error.message()),
            last_transition_time: Some(Time(now)),
        }));
    }
    Some(conditions).filter(|conditions| !conditions.is_empty())
}
