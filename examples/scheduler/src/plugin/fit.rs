//! The resources that a pod requests.

use super::{FilterPlugin, PodInfo};
use crate::{cluster::NodeAllocation, resources::PODS};

/// Rejects nodes with less free than the pod requests.
pub struct NodeResourcesFit;

impl FilterPlugin for NodeResourcesFit {
    fn rejection_reasons(&self, pod: &PodInfo<'_>, node: &NodeAllocation) -> Vec<String> {
        let lacks =
            |name: &str, amount: i64| node.allocatable.get(name).saturating_sub(node.requested.get(name)) < amount;
        let lacking = pod.requests.iter().filter(|(name, amount)| *amount > 0 && lacks(name, *amount));
        let say = |name: &str| if name == PODS { "Too many pods".to_owned() } else { format!("Insufficient {name}") };
        lacking.map(|(name, _)| say(name)).collect()
    }
}
