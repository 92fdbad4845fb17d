//! What is to be done for a StatefulSet now, and in which order. No I/O.
//!
//! With `OrderedReady` pods are made in the order of their ordinals, each when all before it are available, and go in the
//! opposite order; at most one is made or goes at a time. With `Parallel` nobody waits for anybody. Scaling comes before updates.

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
    amount::{self, Rounding},
    pods, revision,
};

/// More are made when these are seen: `replicas` may be any number.
const MOST_AT_ONCE: usize = 500;

/// One thing to do.
#[derive(Clone, Debug)]
pub enum Step {
    /// Make the pod of an ordinal.
    Make(i32),
    /// See that the labels and claims of a pod are right. The pod may be one too many.
    Tend(Arc<Pod>, bool),
    /// Delete a pod.
    Delete(Arc<Pod>),
}

/// Steps in stages: a stage is begun when the one before has succeeded, and what is in one can be done at once.
#[derive(Debug, Default)]
pub struct Plan {
    /// The stages.
    pub stages: Vec<Vec<Step>>,
    /// When a pod becomes available by the passing of time.
    pub again: Option<Duration>,
}

/// The plan for these pods, which are all of the set's. `newest` is the name of the revision that they should have.
pub fn plan(set: &StatefulSet, pods: &[Arc<Pod>], newest: &str, now: Timestamp) -> Plan {
    let Some(spec) = set.spec.as_ref() else { return Plan::default() };
    let members = Members::new(set, spec, pods, now);
    let mut plan = Plan { stages: Vec::new(), again: members.soonest() };
    let go_on = members.keep_up(&mut plan) && members.scale_down(&mut plan);
    if go_on {
        plan.stages.push(members.update(newest));
    }
    plan.stages.retain(|stage| !stage.is_empty());
    plan
}

/// The ordinals that the set should have.
pub fn ordinals(spec: &StatefulSetSpec) -> Range<i32> {
    let start = spec.ordinals.as_ref().and_then(|ordinals| ordinals.start).unwrap_or(0);
    start..start.saturating_add(spec.replicas.unwrap_or(1))
}

/// How many of the lowest ordinals keep their revision in a rolling update.
pub fn partition(spec: &StatefulSetSpec) -> Option<i32> {
    spec.update_strategy.as_ref()?.rolling_update.as_ref()?.partition
}

/// Whether pods are replaced only when somebody deletes them.
pub fn is_on_delete(spec: &StatefulSetSpec) -> bool {
    spec.update_strategy.as_ref().and_then(|strategy| strategy.type_.as_deref()) == Some("OnDelete")
}

/// Whether a pod is on its way out.
pub fn is_terminating(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// Whether all that ran in it has ended. A set wants pods that run for ever, however they ended.
fn has_ended(pod: &Pod) -> bool {
    matches!(pods::phase(pod), "Failed" | "Succeeded")
}

/// The pods of a set by ordinal.
struct Members<'a> {
    spec: &'a StatefulSetSpec,
    ordered: bool,
    now: Timestamp,
    wanted: BTreeMap<i32, &'a Arc<Pod>>,
    condemned: BTreeMap<i32, &'a Arc<Pod>>,
}

impl<'a> Members<'a> {
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

    fn soonest(&self) -> Option<Duration> {
        let pods = self.wanted.values().chain(self.condemned.values());
        pods.filter_map(|pod| self.availability(pod).err().flatten()).min()
    }

    /// Makes what is missing. Answers whether more can be done now.
    fn keep_up(&self, plan: &mut Plan) -> bool {
        let (mut stage, mut made, mut go_on) = (Vec::new(), 0, true);
        for ordinal in ordinals(self.spec) {
            let step = match self.wanted.get(&ordinal) {
                None => Step::Make(ordinal),
                Some(pod) if has_ended(pod) && !is_terminating(pod) => Step::Delete(Arc::clone(pod)),
                Some(pod) => Step::Tend(Arc::clone(pod), false),
            };
            made += usize::from(matches!(step, Step::Make(_)));
            let holds_up = self.wanted.get(&ordinal).is_none_or(|pod| !self.is_available(pod));
            stage.push(step);
            go_on = !(self.ordered && holds_up) && made < MOST_AT_ONCE;
            if !go_on {
                break;
            }
        }
        plan.stages.push(stage);
        go_on
    }

    /// Deletes what is too much. Answers whether more can be done now.
    fn scale_down(&self, plan: &mut Plan) -> bool {
        plan.stages.push(self.condemned.values().map(|pod| Step::Tend(Arc::clone(pod), true)).collect());
        let first_unhealthy =
            self.condemned.iter().find(|(_, pod)| !self.is_available(pod)).map(|(ordinal, _)| *ordinal);
        let (mut stage, mut go_on) = (Vec::new(), true);
        for (ordinal, pod) in self.condemned.iter().rev() {
            let waits = self.ordered && !self.is_available(pod) && first_unhealthy != Some(*ordinal);
            if !is_terminating(pod) && !waits {
                stage.push(Step::Delete(Arc::clone(pod)));
            }
            go_on = !self.ordered;
            if !go_on {
                break;
            }
        }
        plan.stages.push(stage);
        go_on
    }

    /// Deletes pods of old revisions, from the last ordinal down, as many as may be unavailable. What is unavailable
    /// anyway costs nothing.
    fn update(&self, newest: &str) -> Vec<Step> {
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
                && pod.labels().get(revision::POD_LABEL).is_none_or(|of| of != newest)
        });
        let mut stage = Vec::new();
        for (ordinal, pod) in old {
            if available.contains(ordinal) {
                let Some(left) = budget.checked_sub(1) else { continue };
                budget = left;
            }
            stage.push(Step::Delete(Arc::clone(pod)));
        }
        stage
    }

    /// At least one, or nothing would ever be updated.
    fn max_unavailable(&self) -> usize {
        let rolling = self.spec.update_strategy.as_ref().and_then(|strategy| strategy.rolling_update.as_ref());
        let given = rolling.and_then(|rolling| rolling.max_unavailable.as_ref());
        let number = given.map_or(1, |given| amount::of(given, self.spec.replicas.unwrap_or(1), Rounding::Down));
        usize::try_from(number.max(1)).unwrap_or(1)
    }
}

#[cfg(test)]
mod tests;
