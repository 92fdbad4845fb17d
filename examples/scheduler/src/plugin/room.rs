//! How much room a node has, once the pod runs there.

use super::{Ask, MOST, Score, share};
use crate::{
    cluster::Place,
    resources::{CPU, MEMORY, Resources},
};

/// What a pod that asks for nothing is taken to need, as kube-scheduler does: else all such pods would land on one node.
const USUAL: [(&str, i64); 2] = [(CPU, 100), (MEMORY, 200 << 20)];

/// Prefers nodes with much left of cpu and memory.
pub struct LeastAllocated;

impl Score for LeastAllocated {
    fn points(&self, ask: &Ask<'_>, places: &[&Place]) -> Vec<i64> {
        let points = |place: &&Place| used(ask, place).map(|used| MOST - used).iter().sum::<i64>() / 2;
        places.iter().map(points).collect()
    }
}

/// Prefers nodes with little left of cpu and memory, so that others stay free.
pub struct MostAllocated;

impl Score for MostAllocated {
    fn points(&self, ask: &Ask<'_>, places: &[&Place]) -> Vec<i64> {
        places.iter().map(|place| used(ask, place).iter().sum::<i64>() / 2).collect()
    }
}

/// Prefers nodes that run out of cpu and memory at the same time.
pub struct BalancedAllocation;

impl Score for BalancedAllocation {
    fn points(&self, ask: &Ask<'_>, places: &[&Place]) -> Vec<i64> {
        let points = |place: &&Place| {
            let [cpu, memory] = used(ask, place);
            // The standard deviation of two numbers is half of what lies between them.
            MOST - (cpu - memory).abs() / 2
        };
        places.iter().map(points).collect()
    }
}

/// The parts of cpu and memory in use, in hundredths. A node that has none of one is full.
fn used(ask: &Ask<'_>, place: &Place) -> [i64; 2] {
    USUAL.map(|(name, usual)| {
        let need = |resources: &Resources| match resources.get(name) {
            0 => usual,
            amount => amount,
        };
        let held = place.holdings.iter().map(need).fold(need(&ask.needs), i64::saturating_add);
        let has = place.has.get(name);
        if has <= 0 { MOST } else { share(held, has) }
    })
}
