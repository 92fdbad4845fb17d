//! Where a pod is put: nodes that do not fit are left out, and of the others the best is taken. No I/O.

use std::{collections::BTreeMap, fmt, sync::Arc};

use k8s_openapi::api::core::v1::{Namespace, Node, Pod, PodSpec};
use kube::ResourceExt;

use super::{
    eligible,
    ledger::{Booking, Ledger},
    neighbours::Neighbours,
    resources::{PODS, Resources},
    score,
};

/// A node with the pods on it.
#[derive(Debug)]
pub struct Place<'a> {
    /// The node.
    pub node: &'a Node,
    /// What pods may use of it.
    pub has: Resources,
    /// What its pods hold.
    pub held: Resources,
    /// The pods.
    pub pods: Vec<&'a Booking>,
}

impl<'a> Place<'a> {
    /// All nodes.
    pub fn all(nodes: &'a [Arc<Node>], ledger: &'a Ledger) -> Vec<Self> {
        let mut by_node: BTreeMap<&str, Vec<&Booking>> = BTreeMap::new();
        ledger.all().for_each(|booking| by_node.entry(&booking.node).or_default().push(booking));
        let place = |node: &'a Arc<Node>| {
            let pods = by_node.remove(node.name_any().as_str()).unwrap_or_default();
            let mut held = Resources::default();
            pods.iter().for_each(|booking| held.add(&booking.holds));
            Self { node, has: Resources::of_node(node), held, pods }
        };
        nodes.iter().map(place).collect()
    }
}

/// Why a pod has no node, in kube-scheduler's words.
#[derive(Debug, PartialEq, Eq)]
pub enum Nowhere {
    /// There is none.
    NoNodes,
    /// It is the pod's own fault, on all of so many nodes.
    Pod(usize, String),
    /// On how many of all nodes which reason holds.
    Nodes(usize, BTreeMap<String, usize>),
}

impl fmt::Display for Nowhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoNodes => f.write_str("no nodes available to schedule pods"),
            Self::Pod(all, why) => write!(f, "0/{all} nodes are available: {why}."),
            Self::Nodes(all, reasons) => {
                let mut reasons: Vec<String> = reasons.iter().map(|(why, count)| format!("{count} {why}")).collect();
                reasons.sort();
                write!(f, "0/{all} nodes are available: {}.", reasons.join(", "))
            }
        }
    }
}

/// The name of the node that the pod runs on best.
pub fn choose(pod: &Pod, places: &[Place<'_>], namespaces: &[Arc<Namespace>]) -> Result<String, Nowhere> {
    let spec = pod.spec.as_ref().ok_or(Nowhere::NoNodes)?;
    if places.is_empty() {
        return Err(Nowhere::NoNodes);
    }
    let asks = Resources::of_pod(pod);
    let neighbours = Neighbours::new(pod, spec, places, namespaces);
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let mut fitting = Vec::new();
    for place in places {
        match misfit(spec, &asks, &neighbours, place) {
            against if against.is_empty() => fitting.push(place),
            against => against.into_iter().for_each(|why| *reasons.entry(why).or_default() += 1),
        }
    }
    score::best(pod, spec, &asks, &neighbours, &fitting).ok_or(Nowhere::Nodes(places.len(), reasons))
}

/// What speaks against a node: the first rule that is broken, by all that it finds.
fn misfit(spec: &PodSpec, asks: &Resources, neighbours: &Neighbours, place: &Place<'_>) -> Vec<String> {
    let one = |why: &str| vec![why.to_owned()];
    let name = place.node.metadata.name.as_deref().unwrap_or_default();
    if eligible::named(spec).is_some_and(|names| !names.contains(name)) {
        one("node(s) didn't satisfy plugin(s) [NodeAffinity]")
    } else if eligible::is_cordoned(spec, place.node) {
        one("node(s) were unschedulable")
    } else if eligible::untolerated(spec, place.node, &["NoSchedule", "NoExecute"]).next().is_some() {
        one("node(s) had untolerated taint(s)")
    } else if !eligible::selects(spec, place.node) {
        one("node(s) didn't match Pod's node affinity/selector")
    } else {
        let lacking = lacking(asks, place);
        let against = neighbours.against(place.node).filter(|_| lacking.is_empty());
        against.map_or(lacking, one)
    }
}

fn lacking(asks: &Resources, place: &Place<'_>) -> Vec<String> {
    let lacks = |name: &str, amount: i64| place.has.get(name).saturating_sub(place.held.get(name)) < amount;
    let lacking = asks.iter().filter(|(name, amount)| *amount > 0 && lacks(name, *amount));
    lacking
        .map(|(name, _)| if name == PODS { "Too many pods".to_owned() } else { format!("Insufficient {name}") })
        .collect()
}

#[cfg(test)]
mod tests;
