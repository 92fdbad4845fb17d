//! Replaces pods of old revisions.

use std::sync::Arc;

use k8s_openapi::{
    api::{apps::v1::RollingUpdateDaemonSet, core::v1::Pod},
    apimachinery::pkg::util::intstr::IntOrString,
};

use super::{
    plan::DaemonSetPlan,
    snapshot::{DaemonSetSnapshot, is_terminating},
};
use crate::controller::int_or_percent::{self, Rounding};

impl<'a> DaemonSetSnapshot<'a> {
    /// The next changes once the placement is right.
    pub(super) fn plan_rolling_update(&self) -> DaemonSetPlan {
        if self.max_surge() == 0 { self.plan_replacement() } else { self.plan_surge() }
    }

    /// The new and the old pod of each node where a pod should run; none if there is more than one of either.
    fn old_and_new_pods(&self) -> impl Iterator<Item = (&str, Option<[Option<&'a Arc<Pod>>; 2]>)> {
        self.eligible_nodes().map(|node| {
            let alive = self.pods_on_node(node).iter().copied().filter(|pod| !is_terminating(pod));
            let (new, old): (Vec<_>, Vec<_>) = alive.partition(|pod| self.has_newest_revision(pod));
            let clear = new.len() <= 1 && old.len() <= 1;
            (node, clear.then(|| [new.first().copied(), old.first().copied()]))
        })
    }

    /// Deletes old pods that are unavailable at once, and others as long as not too many are unavailable.
    fn plan_replacement(&self) -> DaemonSetPlan {
        let mut unavailable = 0;
        let mut delete = Vec::new();
        let mut candidates = Vec::new();
        for (_, pair) in self.old_and_new_pods() {
            match pair {
                Some([Some(new), None]) => unavailable += usize::from(!self.is_available(new)),
                Some([None, Some(old)]) if self.is_available(old) => candidates.push(Arc::clone(old)),
                Some([None, Some(old)]) => {
                    delete.push(Arc::clone(old));
                    unavailable += 1;
                }
                _ => unavailable += 1,
            }
        }
        candidates.truncate(self.max_unavailable().saturating_sub(unavailable));
        delete.extend(candidates);
        DaemonSetPlan { delete, ..DaemonSetPlan::default() }
    }

    /// Creates a new pod beside each old one that is unavailable, and beside as many others as the surge
    /// allows.
    fn plan_surge(&self) -> DaemonSetPlan {
        let mut surging = 0;
        let mut make = Vec::new();
        let mut candidates = Vec::new();
        let mut delete = Vec::new();
        for (node, pair) in self.old_and_new_pods() {
            match pair {
                None => surging += 1,
                Some([_, None]) => {}
                Some([None, Some(old)]) if self.is_available(old) => candidates.push(node.to_owned()),
                Some([None, Some(_)]) => make.push(node.to_owned()),
                Some([Some(new), Some(old)]) if self.is_available(new) => delete.push(Arc::clone(old)),
                Some([Some(_), Some(_)]) => surging += 1,
            }
        }
        candidates.truncate(self.max_surge().saturating_sub(surging));
        make.extend(candidates);
        DaemonSetPlan { create: make, delete, ended: Vec::new() }
    }

    fn scaled_value(&self, of: impl Fn(&RollingUpdateDaemonSet) -> Option<&IntOrString>, default: i32) -> usize {
        let rolling = self.spec.update_strategy.as_ref().and_then(|strategy| strategy.rolling_update.as_ref());
        let all = i32::try_from(self.eligible_nodes().count()).unwrap_or(i32::MAX);
        let number =
            rolling.and_then(of).map_or(default, |given| int_or_percent::scaled_value(given, all, Rounding::Up));
        usize::try_from(number).unwrap_or(0)
    }

    pub(super) fn max_surge(&self) -> usize {
        self.scaled_value(|rolling| rolling.max_surge.as_ref(), 0)
    }

    /// At least one without surge, or nothing would ever be updated.
    fn max_unavailable(&self) -> usize {
        self.scaled_value(|rolling| rolling.max_unavailable.as_ref(), 1).max(usize::from(self.max_surge() == 0))
    }
}
