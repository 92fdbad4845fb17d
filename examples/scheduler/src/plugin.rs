//! Filter and score plugins, with kube-scheduler's names where it has them.
//!
//! A plugin is pure: it sees the pod and the nodes, and nothing else. [`FILTER_PLUGINS`] and [`SCORE_PLUGINS`]
//! list them all.

mod affinity;
mod allocation;
mod fit;
mod node_label;
mod taints;

use k8s_openapi::api::core::v1::PodSpec;

pub use self::node_label::LabelPreference;
use crate::{cluster::NodeAllocation, resources::ResourceList};

/// The most points that a plugin gives to a node.
pub const MAX_NODE_SCORE: i64 = 100;

/// A pod to be scheduled.
#[derive(Debug)]
pub struct PodInfo<'p> {
    pub spec: &'p PodSpec,
    pub requests: ResourceList,
}

pub trait FilterPlugin: Send + Sync {
    /// The reasons against the node, in kube-scheduler's words; none if the pod may run there.
    fn rejection_reasons(&self, pod: &PodInfo<'_>, node: &NodeAllocation) -> Vec<String>;
}

pub trait ScoringPlugin: Send + Sync {
    /// 0 to [`MAX_NODE_SCORE`] points for each node, in the order of the nodes.
    fn score_nodes(&self, pod: &PodInfo<'_>, nodes: &[&NodeAllocation]) -> Vec<i64>;
}

/// All filter plugins, in their usual order.
pub const FILTER_PLUGINS: [(&str, &dyn FilterPlugin); 4] = [
    ("NodeUnschedulable", &taints::NodeUnschedulable),
    ("TaintToleration", &taints::TaintToleration),
    ("NodeAffinity", &affinity::NodeAffinity),
    ("NodeResourcesFit", &fit::NodeResourcesFit),
];

/// The filter plugin that also runs as pre-filter, since it adds up the requests of the pod.
pub const NODE_RESOURCES_FIT: &str = "NodeResourcesFit";

/// All score plugins without an argument.
pub const SCORE_PLUGINS: [(&str, &dyn ScoringPlugin); 5] = [
    ("LeastAllocated", &allocation::LeastAllocated),
    ("MostAllocated", &allocation::MostAllocated),
    ("BalancedAllocation", &allocation::BalancedAllocation),
    ("NodeAffinity", &affinity::NodeAffinity),
    ("TaintToleration", &taints::TaintToleration),
];

/// The score plugin that takes a label as its argument.
pub const NODE_LABEL: &str = "NodeLabel";

/// All points for the largest number, none for zero.
fn normalize_scores(numbers: impl Iterator<Item = i64>) -> Vec<i64> {
    let numbers: Vec<i64> = numbers.collect();
    let largest = numbers.iter().copied().max().unwrap_or(0);
    numbers.into_iter().map(|number| proportional_score(number, largest)).collect()
}

/// All points for zero, none for the largest number.
fn normalize_scores_reversed(numbers: impl Iterator<Item = i64>) -> Vec<i64> {
    let numbers: Vec<i64> = numbers.collect();
    let largest = numbers.iter().copied().max().unwrap_or(0);
    numbers
        .into_iter()
        .map(|number| if largest == 0 { MAX_NODE_SCORE } else { proportional_score(largest - number, largest) })
        .collect()
}

/// Points in proportion to a part of a whole; none if the whole is zero.
fn proportional_score(part: i64, whole: i64) -> i64 {
    if whole <= 0 {
        return 0;
    }
    let points = i128::from(part.clamp(0, whole)) * i128::from(MAX_NODE_SCORE) / i128::from(whole);
    i64::try_from(points).unwrap_or(MAX_NODE_SCORE)
}

#[cfg(test)]
mod tests;
