//! What is to be done for a DaemonSet now. No I/O.
//!
//! First every node gets what it should have: a pod where one should run, none where none may. When all have, pods of old revisions
//! are replaced: without surge by deleting as many as may be unavailable, with surge by making the new one beside the old.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use super::scene::{Scene, Standing, has_ended, is_terminating};
use crate::controller::pods;

/// What to do.
#[derive(Debug, Default)]
pub struct Plan {
    /// Nodes that get a pod.
    pub make: Vec<String>,
    /// Pods that go.
    pub delete: Vec<Arc<Pod>>,
    /// Pods that ended by themselves, and go if they do not end too often.
    pub ended: Vec<Arc<Pod>>,
}

impl<'a> Scene<'a> {
    /// What is to be done now.
    pub fn plan(&self) -> Plan {
        let strategy = self.spec.update_strategy.as_ref().and_then(|strategy| strategy.type_.as_deref());
        let Plan { make, delete, mut ended } = self.manage();
        if strategy == Some("OnDelete") || !make.is_empty() || !delete.is_empty() {
            return Plan { make, delete, ended };
        }
        let rolled = self.roll();
        ended.retain(|pod| !rolled.delete.iter().any(|other| Arc::ptr_eq(pod, other)));
        Plan { ended, ..rolled }
    }

    fn manage(&self) -> Plan {
        let mut plan = Plan::default();
        for (node, standing) in &self.nodes {
            let pods = self.on(node);
            match standing {
                Standing::Runs if pods.is_empty() => plan.make.push(node.clone()),
                Standing::Runs | Standing::MayStay => self.tidy(node, *standing, pods, &mut plan),
                Standing::Never => {
                    plan.delete.extend(pods.iter().filter(|pod| !is_terminating(pod)).map(|pod| Arc::clone(pod)))
                }
            }
        }
        plan.delete.extend(self.lost());
        plan
    }

    /// Pods that wait for a node that is not there: nobody else would delete them.
    fn lost(&self) -> impl Iterator<Item = Arc<Pod>> {
        let gone = self.pods.iter().filter(|(node, _)| !self.nodes.contains_key(**node));
        let waits = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref()).is_none_or(String::is_empty);
        gone.flat_map(|(_, pods)| pods).filter(move |pod| waits(pod) && !is_terminating(pod)).map(|pod| Arc::clone(pod))
    }

    /// A node has one pod; with surge an old and a new one until the new one is available.
    fn tidy(&self, node: &str, standing: Standing, pods: &[&'a Arc<Pod>], plan: &mut Plan) {
        let alive = || pods.iter().copied().filter(|pod| !is_terminating(pod));
        plan.ended.extend(alive().filter(|pod| has_ended(pod)).cloned());
        let running: Vec<&Arc<Pod>> = alive().filter(|pod| !has_ended(pod)).collect();
        if self.max_surge() == 0 {
            return plan.delete.extend(running.into_iter().skip(1).cloned());
        }
        if alive().next().is_none() && standing == Standing::Runs {
            // The old pod may go on ending while the new one begins.
            return plan.make.push(node.to_owned());
        }
        let (new, old): (Vec<&Arc<Pod>>, Vec<&Arc<Pod>>) = running.into_iter().partition(|pod| self.is_new(pod));
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
