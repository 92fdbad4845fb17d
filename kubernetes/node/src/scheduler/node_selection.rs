//! Selects the node for a pod: filters the nodes, then takes the one with the best score. No I/O.

use std::{collections::BTreeMap, fmt, sync::Arc};

use k8s_openapi::api::core::v1::{Namespace, Node, Pod, PodSpec};
use kube::ResourceExt;

use super::{
    cache::{CachedPod, SchedulerCache},
    inter_pod_affinity::InterPodAffinity,
    node_eligibility,
    resources::{PODS_RESOURCE, ResourceAmounts},
    score,
};

/// A node with the pods on it.
#[derive(Debug)]
pub struct NodeInfo<'a> {
    pub node: &'a Node,
    /// The resources that pods may use.
    pub allocatable: ResourceAmounts,
    pub requested: ResourceAmounts,
    pub pods: Vec<&'a CachedPod>,
}

impl<'a> NodeInfo<'a> {
    pub fn snapshot(nodes: &'a [Arc<Node>], ledger: &'a SchedulerCache) -> Vec<Self> {
        let mut by_node: BTreeMap<&str, Vec<&CachedPod>> = BTreeMap::new();
        ledger.all().for_each(|booking| by_node.entry(&booking.node).or_default().push(booking));
        let place = |node: &'a Arc<Node>| {
            let pods = by_node.remove(node.name_any().as_str()).unwrap_or_default();
            let mut held = ResourceAmounts::default();
            pods.iter().for_each(|booking| held.add(&booking.requests));
            Self { node, allocatable: ResourceAmounts::allocatable_of_node(node), requested: held, pods }
        };
        nodes.iter().map(place).collect()
    }
}

/// The reason why no node fits, in kube-scheduler's words.
#[derive(Debug, PartialEq, Eq)]
pub enum FitError {
    NoNodes,
    /// A reason of the pod itself, on this number of nodes.
    Pod(usize, String),
    /// The number of all nodes, and the number of nodes by reason.
    Nodes(usize, BTreeMap<String, usize>),
}

impl fmt::Display for FitError {
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

/// The name of the best node for the pod.
pub fn select_node(pod: &Pod, places: &[NodeInfo<'_>], namespaces: &[Arc<Namespace>]) -> Result<String, FitError> {
    let spec = pod.spec.as_ref().ok_or(FitError::NoNodes)?;
    if places.is_empty() {
        return Err(FitError::NoNodes);
    }
    let asks = ResourceAmounts::requested_by_pod(pod);
    let neighbours = InterPodAffinity::new(pod, spec, places, namespaces);
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let mut fitting = Vec::new();
    for place in places {
        match filter_reasons(spec, &asks, &neighbours, place) {
            against if against.is_empty() => fitting.push(place),
            against => against.into_iter().for_each(|why| *reasons.entry(why).or_default() += 1),
        }
    }
    score::select_best(pod, spec, &asks, &neighbours, &fitting).ok_or(FitError::Nodes(places.len(), reasons))
}

/// The reasons against a node: all reasons of the first filter that rejects it.
fn filter_reasons(
    spec: &PodSpec,
    asks: &ResourceAmounts,
    neighbours: &InterPodAffinity,
    place: &NodeInfo<'_>,
) -> Vec<String> {
    let one = |why: &str| vec![why.to_owned()];
    let name = place.node.metadata.name.as_deref().unwrap_or_default();
    if node_eligibility::named_nodes(spec).is_some_and(|names| !names.contains(name)) {
        one("node(s) didn't satisfy plugin(s) [NodeAffinity]")
    } else if node_eligibility::is_cordoned(spec, place.node) {
        one("node(s) were unschedulable")
    } else if node_eligibility::untolerated(spec, place.node, &["NoSchedule", "NoExecute"]).next().is_some() {
        one("node(s) had untolerated taint(s)")
    } else if !node_eligibility::matches_node_affinity(spec, place.node) {
        one("node(s) didn't match Pod's node affinity/selector")
    } else {
        let lacking = insufficient_resources(asks, place);
        let against = neighbours.filter_reason(place.node).filter(|_| lacking.is_empty());
        against.map_or(lacking, one)
    }
}

fn insufficient_resources(asks: &ResourceAmounts, place: &NodeInfo<'_>) -> Vec<String> {
    let lacks =
        |name: &str, amount: i64| place.allocatable.get(name).saturating_sub(place.requested.get(name)) < amount;
    let lacking = asks.iter().filter(|(name, amount)| *amount > 0 && lacks(name, *amount));
    lacking
        .map(
            |(name, _)| if name == PODS_RESOURCE { "Too many pods".to_owned() } else { format!("Insufficient {name}") },
        )
        .collect()
}

#[cfg(test)]
mod tests;
