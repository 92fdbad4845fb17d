//! The next changes of a DaemonSet's pods. No I/O.
//!
//! First the placement is corrected: a pod on each node where one should run, none where none may. Once the
//! placement is right, pods of old revisions are replaced: without surge by deleting as many as may be
//! unavailable, with surge by creating the new pod beside the old one.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use super::snapshot::{DaemonSetSnapshot, NodeEligibility, has_ended, is_terminating};
use crate::controller::pods;

#[derive(Debug, Default)]
pub struct DaemonSetPlan {
    /// Nodes that need a pod.
    pub create: Vec<String>,
    pub delete: Vec<Arc<Pod>>,
    /// Pods that ended by themselves; they are deleted, subject to the backoff.
    pub ended: Vec<Arc<Pod>>,
}

impl<'a> DaemonSetSnapshot<'a> {
    pub fn plan(&self) -> DaemonSetPlan {
        let strategy = self.spec.update_strategy.as_ref().and_then(|strategy| strategy.type_.as_deref());
        let DaemonSetPlan { create: make, delete, mut ended } = self.plan_placement();
        if strategy == Some("OnDelete") || !make.is_empty() || !delete.is_empty() {
            return DaemonSetPlan { create: make, delete, ended };
        }
        let rolled = self.plan_rolling_update();
        ended.retain(|pod| !rolled.delete.iter().any(|other| Arc::ptr_eq(pod, other)));
        DaemonSetPlan { ended, ..rolled }
    }

    fn plan_placement(&self) -> DaemonSetPlan {
        let mut plan = DaemonSetPlan::default();
        for (node, standing) in &self.nodes {
            let pods = self.pods_on_node(node);
            match standing {
                NodeEligibility::ShouldRun if pods.is_empty() => plan.create.push(node.clone()),
                NodeEligibility::ShouldRun | NodeEligibility::MayContinue => {
                    self.plan_node(node, *standing, pods, &mut plan)
                }
                NodeEligibility::MustNotRun => {
                    plan.delete.extend(pods.iter().filter(|pod| !is_terminating(pod)).map(|pod| Arc::clone(pod)))
                }
            }
        }
        plan.delete.extend(self.pods_of_missing_nodes());
        plan
    }

    /// Pending pods of nodes that no longer exist: nothing else would delete them.
    fn pods_of_missing_nodes(&self) -> impl Iterator<Item = Arc<Pod>> {
        let gone = self.pods.iter().filter(|(node, _)| !self.nodes.contains_key(**node));
        let waits = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref()).is_none_or(String::is_empty);
        gone.flat_map(|(_, pods)| pods).filter(move |pod| waits(pod) && !is_terminating(pod)).map(|pod| Arc::clone(pod))
    }

    /// A node has one pod; with surge an old and a new one until the new one is available.
    fn plan_node(&self, node: &str, standing: NodeEligibility, pods: &[&'a Arc<Pod>], plan: &mut DaemonSetPlan) {
        let alive = || pods.iter().copied().filter(|pod| !is_terminating(pod));
        plan.ended.extend(alive().filter(|pod| has_ended(pod)).cloned());
        let running: Vec<&Arc<Pod>> = alive().filter(|pod| !has_ended(pod)).collect();
        if self.max_surge() == 0 {
            return plan.delete.extend(running.into_iter().skip(1).cloned());
        }
        if alive().next().is_none() && standing == NodeEligibility::ShouldRun {
            // The old pod may still be terminating while the new one starts.
            return plan.create.push(node.to_owned());
        }
        let (new, old): (Vec<&Arc<Pod>>, Vec<&Arc<Pod>>) =
            running.into_iter().partition(|pod| self.has_newest_revision(pod));
        plan.delete.extend(new.iter().skip(1).chain(old.iter().skip(1)).map(|pod| Arc::clone(pod)));
        if let (Some(new), Some(old)) = (new.first(), old.first())
            && (!pods::is_ready(old) || self.is_available(new))
        {
            plan.delete.push(Arc::clone(old));
        }
    }
}

#[cfg(test)]
mod tests;
