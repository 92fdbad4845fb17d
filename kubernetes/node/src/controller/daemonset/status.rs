//! The status of a DaemonSet.

use std::collections::BTreeSet;

use k8s_openapi::api::{apps::v1::DaemonSetStatus, core::v1::Pod};

use super::snapshot::DaemonSetSnapshot;
use crate::controller::pods;

impl DaemonSetSnapshot<'_> {
    /// Updates the counts of a status.
    pub fn status(&self, mut status: DaemonSetStatus) -> DaemonSetStatus {
        let count = |nodes: &BTreeSet<&str>| i32::try_from(nodes.len()).unwrap_or(i32::MAX);
        let oldest = |node: &&str| self.pods.get(*node).and_then(|pods| pods.first()).copied();
        let wanted: BTreeSet<&str> = self.eligible_nodes().collect();
        let having = |counts: &dyn Fn(&Pod) -> bool| -> i32 {
            count(&wanted.iter().copied().filter(|node| oldest(node).is_some_and(|pod| counts(pod))).collect())
        };
        let elsewhere =
            self.nodes.keys().map(String::as_str).filter(|node| !wanted.contains(node) && self.pods.contains_key(node));
        let available = having(&|pod| self.is_available(pod));
        let some = |count: i32| (count > 0).then_some(count);
        status.desired_number_scheduled = count(&wanted);
        status.current_number_scheduled = having(&|_| true);
        status.number_misscheduled = count(&elsewhere.collect());
        status.number_ready = having(&|pod| pods::is_ready(pod));
        status.updated_number_scheduled = some(having(&|pod| self.has_newest_revision(pod)));
        status.number_available = some(available);
        status.number_unavailable = some(status.desired_number_scheduled - available);
        status
    }
}
