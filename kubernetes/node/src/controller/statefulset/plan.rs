//! The next changes of a StatefulSet's pods, in order. No I/O.
//!
//! With `OrderedReady` pods are created in the order of their ordinals, each when all before it are available,
//! and deleted in the opposite order; at most one is created or deleted at a time. With `Parallel` no pod waits
//! for another. Scaling comes before updates.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::{StatefulSet, StatefulSetSpec},
    core::v1::Pod,
};
use kube::ResourceExt;

use super::identity::ordinal_of;
use crate::controller::{
    int_or_percent::{self, Rounding},
    pods, revision,
};

/// The most pods per sync, since `replicas` may be any number; more follow in the next sync.
const MAX_PODS_PER_SYNC: usize = 500;

#[derive(Clone, Debug)]
pub enum PodAction {
    Create(i32),
    /// Repair the labels and claims of a pod. The flag says whether the pod is surplus.
    Repair(Arc<Pod>, bool),
    Delete(Arc<Pod>),
}

/// Actions in stages: a stage begins after the previous one has succeeded; the actions of a stage are
/// independent.
#[derive(Debug, Default)]
pub struct StatefulSetPlan {
    pub stages: Vec<Vec<PodAction>>,
    /// The time until the next pod becomes available.
    pub requeue_after: Option<Duration>,
}

/// The plan for these pods, which are all pods of the set. `newest` is the name of their desired revision.
pub fn plan(set: &StatefulSet, pods: &[Arc<Pod>], newest: &str, now: Timestamp) -> StatefulSetPlan {
    let Some(spec) = set.spec.as_ref() else { return StatefulSetPlan::default() };
    let members = OrdinalPods::new(set, spec, pods, now);
    let mut plan = StatefulSetPlan { stages: Vec::new(), requeue_after: members.next_availability() };
    let go_on = members.create_missing(&mut plan) && members.scale_down(&mut plan);
    if go_on {
        plan.stages.push(members.delete_outdated(newest));
    }
    plan.stages.retain(|stage| !stage.is_empty());
    plan
}

/// The desired ordinals.
pub fn ordinals(spec: &StatefulSetSpec) -> Range<i32> {
    let start = spec.ordinals.as_ref().and_then(|ordinals| ordinals.start).unwrap_or(0);
    start..start.saturating_add(spec.replicas.unwrap_or(1))
}

/// The number of the lowest ordinals that keep their revision in a rolling update.
pub fn partition(spec: &StatefulSetSpec) -> Option<i32> {
    spec.update_strategy.as_ref()?.rolling_update.as_ref()?.partition
}

/// Whether outdated pods are replaced only after somebody deletes them.
pub fn is_on_delete(spec: &StatefulSetSpec) -> bool {
    spec.update_strategy.as_ref().and_then(|strategy| strategy.type_.as_deref()) == Some("OnDelete")
}

pub fn is_terminating(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// Whether the pod has ended. A set replaces pods whether they failed or succeeded.
fn has_ended(pod: &Pod) -> bool {
    matches!(pods::phase(pod), "Failed" | "Succeeded")
}

struct OrdinalPods<'a> {
    spec: &'a StatefulSetSpec,
    ordered: bool,
    now: Timestamp,
    wanted: BTreeMap<i32, &'a Arc<Pod>>,
    condemned: BTreeMap<i32, &'a Arc<Pod>>,
}

impl<'a> OrdinalPods<'a> {
    fn new(set: &StatefulSet, spec: &'a StatefulSetSpec, pods: &'a [Arc<Pod>], now: Timestamp) -> Self {
        let range = ordinals(spec);
        let by_ordinal = pods.iter().filter_map(|pod| Some((ordinal_of(set, &pod.name_any())?, pod)));
        let (wanted, condemned) = by_ordinal.partition(|(ordinal, _)| range.contains(ordinal));
        Self { spec, ordered: spec.pod_management_policy.as_deref() != Some("Parallel"), now, wanted, condemned }
    }

    fn availability(&self, pod: &Pod) -> Result<(), Option<Duration>> {
        let running = pods::phase(pod) == "Running" && !is_terminating(pod);
        if running { pods::is_available(pod, self.spec.min_ready_seconds.unwrap_or(0), self.now) } else { Err(None) }
    }

    fn is_available(&self, pod: &Pod) -> bool {
        self.availability(pod).is_ok()
    }

    fn next_availability(&self) -> Option<Duration> {
        let pods = self.wanted.values().chain(self.condemned.values());
        pods.filter_map(|pod| self.availability(pod).err().flatten()).min()
    }

    /// Creates missing pods. Returns whether the plan may continue.
    fn create_missing(&self, plan: &mut StatefulSetPlan) -> bool {
        let mut stage = Vec::new();
        let mut made = 0;
        let mut go_on = true;
        for ordinal in ordinals(self.spec) {
            let step = match self.wanted.get(&ordinal) {
                None => PodAction::Create(ordinal),
                Some(pod) if has_ended(pod) && !is_terminating(pod) => PodAction::Delete(Arc::clone(pod)),
                Some(pod) => PodAction::Repair(Arc::clone(pod), false),
            };
            made += usize::from(matches!(step, PodAction::Create(_)));
            let holds_up = self.wanted.get(&ordinal).is_none_or(|pod| !self.is_available(pod));
            stage.push(step);
            go_on = !(self.ordered && holds_up) && made < MAX_PODS_PER_SYNC;
            if !go_on {
                break;
            }
        }
        plan.stages.push(stage);
        go_on
    }

    /// Deletes surplus pods. Returns whether the plan may continue.
    fn scale_down(&self, plan: &mut StatefulSetPlan) -> bool {
        plan.stages.push(self.condemned.values().map(|pod| PodAction::Repair(Arc::clone(pod), true)).collect());
        let first_unhealthy =
            self.condemned.iter().find(|(_, pod)| !self.is_available(pod)).map(|(ordinal, _)| *ordinal);
        let mut stage = Vec::new();
        let mut go_on = true;
        for (ordinal, pod) in self.condemned.iter().rev() {
            let waits = self.ordered && !self.is_available(pod) && first_unhealthy != Some(*ordinal);
            if !is_terminating(pod) && !waits {
                stage.push(PodAction::Delete(Arc::clone(pod)));
            }
            go_on = !self.ordered;
            if !go_on {
                break;
            }
        }
        plan.stages.push(stage);
        go_on
    }

    /// Deletes pods of old revisions, from the last ordinal down, as many as may be unavailable. Unavailable
    /// ones are free.
    fn delete_outdated(&self, newest: &str) -> Vec<PodAction> {
        if is_on_delete(self.spec) {
            return Vec::new();
        }
        let range = ordinals(self.spec);
        let updated_from = range.start.saturating_add(partition(self.spec).unwrap_or(0));
        let available: BTreeSet<i32> =
            self.wanted.iter().filter(|(_, pod)| self.is_available(pod)).map(|(ordinal, _)| *ordinal).collect();
        let unavailable = range.len().saturating_sub(available.len());
        let mut budget = self.max_unavailable().saturating_sub(unavailable);
        let old = self.wanted.range(updated_from..).rev().filter(|(_, pod)| {
            !is_terminating(pod)
                && !has_ended(pod)
                && pod.labels().get(revision::POD_REVISION_HASH_LABEL).is_none_or(|of| of != newest)
        });
        let mut stage = Vec::new();
        for (ordinal, pod) in old {
            if available.contains(ordinal) {
                let Some(left) = budget.checked_sub(1) else { continue };
                budget = left;
            }
            stage.push(PodAction::Delete(Arc::clone(pod)));
        }
        stage
    }

    /// At least one, or nothing would ever be updated.
    fn max_unavailable(&self) -> usize {
        let rolling = self.spec.update_strategy.as_ref().and_then(|strategy| strategy.rolling_update.as_ref());
        let given = rolling.and_then(|rolling| rolling.max_unavailable.as_ref());
        let number = given
            .map_or(1, |given| int_or_percent::scaled_value(given, self.spec.replicas.unwrap_or(1), Rounding::Down));
        usize::try_from(number.max(1)).unwrap_or(1)
    }
}

#[cfg(test)]
mod tests;
