//! How pods of old revisions are replaced.

use std::sync::Arc;

use k8s_openapi::{
    api::{apps::v1::RollingUpdateDaemonSet, core::v1::Pod},
    apimachinery::pkg::util::intstr::IntOrString,
};

use super::{
    plan::Plan,
    scene::{Scene, is_terminating},
};
use crate::controller::amount::{self, Rounding};

impl<'a> Scene<'a> {
    /// What is to be done when every node has what it should have, but for the revision.
    pub(super) fn roll(&self) -> Plan {
        if self.max_surge() == 0 { self.replace() } else { self.surge() }
    }

    /// On each node where a pod should run: the new one and the old one, or nothing if there is more than one of either.
    fn pairs(&self) -> impl Iterator<Item = (&str, Option<[Option<&'a Arc<Pod>>; 2]>)> {
        self.wanted().map(|node| {
            let alive = self.on(node).iter().copied().filter(|pod| !is_terminating(pod));
            let (new, old): (Vec<_>, Vec<_>) = alive.partition(|pod| self.is_new(pod));
            let clear = new.len() <= 1 && old.len() <= 1;
            (node, clear.then(|| [new.first().copied(), old.first().copied()]))
        })
    }

    /// Old pods that are unavailable anyway go at once, others as long as not too many are unavailable.
    fn replace(&self) -> Plan {
        let (mut unavailable, mut delete, mut candidates) = (0, Vec::new(), Vec::new());
        for (_, pair) in self.pairs() {
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
        Plan { delete, ..Plan::default() }
    }

    /// A new pod beside each old one that is unavailable anyway, and beside as many others as there may be more.
    fn surge(&self) -> Plan {
        let (mut surging, mut make, mut candidates, mut delete) = (0, Vec::new(), Vec::new(), Vec::new());
        for (node, pair) in self.pairs() {
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
        Plan { make, delete, ended: Vec::new() }
    }

    fn share(&self, of: impl Fn(&RollingUpdateDaemonSet) -> Option<&IntOrString>, default: i32) -> usize {
        let rolling = self.spec.update_strategy.as_ref().and_then(|strategy| strategy.rolling_update.as_ref());
        let all = i32::try_from(self.wanted().count()).unwrap_or(i32::MAX);
        let number = rolling.and_then(of).map_or(default, |given| amount::of(given, all, Rounding::Up));
        usize::try_from(number).unwrap_or(0)
    }

    pub(super) fn max_surge(&self) -> usize {
        self.share(|rolling| rolling.max_surge.as_ref(), 0)
    }

    /// If neither surge nor unavailability were allowed, nothing would ever be updated.
    fn max_unavailable(&self) -> usize {
        self.share(|rolling| rolling.max_unavailable.as_ref(), 1).max(usize::from(self.max_surge() == 0))
    }
}
