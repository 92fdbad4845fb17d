//! Scores by the free resources of a node, with the pod on it.

use super::{MAX_NODE_SCORE, PodInfo, ScoringPlugin, proportional_score};
use crate::{
    cluster::NodeAllocation,
    resources::{CPU, MEMORY, ResourceList},
};

/// The assumed requests of a container without any, as in kube-scheduler; without them all such pods would get
/// the same node.
const DEFAULT_REQUESTS: [(&str, i64); 2] = [(CPU, 100), (MEMORY, 200 << 20)];

/// Prefers nodes with much free cpu and memory.
pub struct LeastAllocated;

impl ScoringPlugin for LeastAllocated {
    fn score_nodes(&self, pod: &PodInfo<'_>, nodes: &[&NodeAllocation]) -> Vec<i64> {
        let points =
            |node: &&NodeAllocation| utilization(pod, node).map(|used| MAX_NODE_SCORE - used).iter().sum::<i64>() / 2;
        nodes.iter().map(points).collect()
    }
}

/// Prefers nodes with little free cpu and memory, so that others stay empty.
pub struct MostAllocated;

impl ScoringPlugin for MostAllocated {
    fn score_nodes(&self, pod: &PodInfo<'_>, nodes: &[&NodeAllocation]) -> Vec<i64> {
        nodes.iter().map(|node| utilization(pod, node).iter().sum::<i64>() / 2).collect()
    }
}

/// Prefers nodes with an equal share of cpu and memory in use.
pub struct BalancedAllocation;

impl ScoringPlugin for BalancedAllocation {
    fn score_nodes(&self, pod: &PodInfo<'_>, nodes: &[&NodeAllocation]) -> Vec<i64> {
        let points = |node: &&NodeAllocation| {
            let [cpu, memory] = utilization(pod, node);
            // The standard deviation of two numbers is half of their difference.
            MAX_NODE_SCORE - (cpu - memory).abs() / 2
        };
        nodes.iter().map(points).collect()
    }
}

/// The used shares of cpu and memory, in percent. A resource of which the node has none counts as full.
fn utilization(pod: &PodInfo<'_>, node: &NodeAllocation) -> [i64; 2] {
    DEFAULT_REQUESTS.map(|(name, usual)| {
        let need = |resources: &ResourceList| match resources.get(name) {
            0 => usual,
            amount => amount,
        };
        let held = node.pod_requests.iter().map(need).fold(need(&pod.requests), i64::saturating_add);
        let has = node.allocatable.get(name);
        if has <= 0 { MAX_NODE_SCORE } else { proportional_score(held, has) }
    })
}
