//! Plugins: the rules by which nodes are left out and compared. They have kube-scheduler's names where it has them.
//!
//! A plugin is pure: it sees the pod and the nodes, and nothing else. [`FILTERS`] and [`SCORES`] are all that there are.

mod affinity;
mod fit;
mod label;
mod room;
mod taints;

use k8s_openapi::api::core::v1::PodSpec;

pub use self::label::Label;
use crate::{cluster::Place, resources::Resources};

/// The most points that a plugin gives.
pub const MOST: i64 = 100;

/// A pod that asks for a node.
#[derive(Debug)]
pub struct Ask<'p> {
    /// What it says of itself.
    pub spec: &'p PodSpec,
    /// What it needs there.
    pub needs: Resources,
}

/// Leaves out nodes.
pub trait Filter: Send + Sync {
    /// What speaks against the node, in kube-scheduler's words; nothing if the pod may run there.
    fn against(&self, ask: &Ask<'_>, place: &Place) -> Vec<String>;
}

/// Compares nodes.
pub trait Score: Send + Sync {
    /// 0 to [`MOST`] points for each node, in their order.
    fn points(&self, ask: &Ask<'_>, places: &[&Place]) -> Vec<i64>;
}

/// Every filter plugin, in the order in which one wants them.
pub const FILTERS: [(&str, &dyn Filter); 4] = [
    ("NodeUnschedulable", &taints::NodeUnschedulable),
    ("TaintToleration", &taints::TaintToleration),
    ("NodeAffinity", &affinity::NodeAffinity),
    ("NodeResourcesFit", &fit::NodeResourcesFit),
];

/// The filter plugin that is told of before nodes are looked at, since it adds up what the pod asks for.
pub const FIT: &str = "NodeResourcesFit";

/// Every score plugin that needs no more than its name.
pub const SCORES: [(&str, &dyn Score); 5] = [
    ("LeastAllocated", &room::LeastAllocated),
    ("MostAllocated", &room::MostAllocated),
    ("BalancedAllocation", &room::BalancedAllocation),
    ("NodeAffinity", &affinity::NodeAffinity),
    ("TaintToleration", &taints::TaintToleration),
];

/// The score plugin that needs a label beside its name.
pub const LABEL: &str = "NodeLabel";

/// All points for the largest number, none for zero.
fn most(numbers: impl Iterator<Item = i64>) -> Vec<i64> {
    let numbers: Vec<i64> = numbers.collect();
    let largest = numbers.iter().copied().max().unwrap_or(0);
    numbers.into_iter().map(|number| share(number, largest)).collect()
}

/// All points for zero, none for the largest number.
fn fewest(numbers: impl Iterator<Item = i64>) -> Vec<i64> {
    let numbers: Vec<i64> = numbers.collect();
    let largest = numbers.iter().copied().max().unwrap_or(0);
    numbers.into_iter().map(|number| if largest == 0 { MOST } else { share(largest - number, largest) }).collect()
}

/// Points for a part of a whole; none of nothing.
fn share(part: i64, whole: i64) -> i64 {
    if whole <= 0 {
        return 0;
    }
    let points = i128::from(part.clamp(0, whole)) * i128::from(MOST) / i128::from(whole);
    i64::try_from(points).unwrap_or(MOST)
}

#[cfg(test)]
mod tests;
