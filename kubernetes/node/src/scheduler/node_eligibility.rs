//! Eligibility of nodes for a pod: selectors, node affinity, taints and tolerations.
//!
//! Used by the scheduler, the DaemonSet controller and taint eviction.

use std::{collections::BTreeSet, time::Duration};

use k8s_openapi::api::core::v1::{
    Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Taint, Toleration,
};
use kube::ResourceExt;

/// The taint that corresponds to `kubectl cordon`.
const UNSCHEDULABLE_TAINT: &str = "node.kubernetes.io/unschedulable";
/// The only field that a node selector can use.
const NAME_FIELD: &str = "metadata.name";

/// Whether the node matches the pod's `nodeSelector` and required node affinity.
pub fn matches_node_affinity(spec: &PodSpec, node: &Node) -> bool {
    let mut wanted = spec.node_selector.iter().flatten();
    wanted.all(|(label, value)| node.labels().get(label) == Some(value))
        && required_node_affinity(spec)
            .is_none_or(|selector| selector.node_selector_terms.iter().any(|term| matches_term(term, node)))
}

/// The nodes that the pod names by its affinity, if it can run on no others.
pub fn named_nodes(spec: &PodSpec) -> Option<BTreeSet<&str>> {
    let terms = &required_node_affinity(spec)?.node_selector_terms;
    let mut names = BTreeSet::new();
    for term in terms {
        let mut fields = term.match_fields.iter().flatten();
        let field = fields.find(|field| field.key == NAME_FIELD && field.operator == "In")?;
        names.extend(field.values.iter().flatten().map(String::as_str));
    }
    Some(names).filter(|_| !terms.is_empty())
}

/// The sum of the weights of the matching node preferences.
pub fn node_affinity_score(spec: &PodSpec, node: &Node) -> i64 {
    let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let terms = affinity.and_then(|affinity| affinity.preferred_during_scheduling_ignored_during_execution.as_ref());
    let held = terms.into_iter().flatten().filter(|term| matches_term(&term.preference, node));
    held.map(|term| i64::from(term.weight)).sum()
}

/// Whether the node is cordoned and the pod does not tolerate it.
pub fn is_cordoned(spec: &PodSpec, node: &Node) -> bool {
    let cordon = Taint { key: UNSCHEDULABLE_TAINT.to_owned(), effect: "NoSchedule".to_owned(), ..Taint::default() };
    node.spec.as_ref().is_some_and(|node| node.unschedulable == Some(true)) && !tolerates(spec, &cordon)
}

/// The taints of the node with one of these effects that the pod does not tolerate.
pub fn untolerated<'n>(spec: &PodSpec, node: &'n Node, effects: &[&str]) -> impl Iterator<Item = &'n Taint> {
    let taints = node.spec.as_ref().and_then(|node| node.taints.as_ref()).into_iter().flatten();
    taints.filter(move |taint| effects.contains(&taint.effect.as_str()) && !tolerates(spec, taint))
}

/// The time for which a running pod tolerates the `NoExecute` taints of the node: zero if it does not tolerate
/// one of them, `None` for ever.
pub fn remaining_toleration(spec: &PodSpec, node: &Node) -> Option<Duration> {
    let taints = node.spec.as_ref().and_then(|node| node.taints.as_ref()).into_iter().flatten();
    let seconds = taints.filter(|taint| taint.effect == "NoExecute").filter_map(|taint| {
        match spec.tolerations.iter().flatten().find(|toleration| is_tolerated(toleration, taint)) {
            Some(toleration) => toleration.toleration_seconds.map(|seconds| u64::try_from(seconds).unwrap_or(0)),
            None => Some(0),
        }
    });
    seconds.min().map(Duration::from_secs)
}

fn tolerates(spec: &PodSpec, taint: &Taint) -> bool {
    spec.tolerations.iter().flatten().any(|toleration| is_tolerated(toleration, taint))
}

/// Whether the toleration matches the taint. An empty key or effect matches all.
fn is_tolerated(toleration: &Toleration, taint: &Taint) -> bool {
    let any_or = |field: Option<&str>, value: &str| field.is_none_or(|field| field.is_empty() || field == value);
    any_or(toleration.effect.as_deref(), &taint.effect)
        && any_or(toleration.key.as_deref(), &taint.key)
        && match toleration.operator.as_deref().unwrap_or_default() {
            "" | "Equal" => {
                toleration.value.as_deref().unwrap_or_default() == taint.value.as_deref().unwrap_or_default()
            }
            "Exists" => true,
            _ => false,
        }
}

fn required_node_affinity(spec: &PodSpec) -> Option<&NodeSelector> {
    let affinity = spec.affinity.as_ref()?.node_affinity.as_ref()?;
    affinity.required_during_scheduling_ignored_during_execution.as_ref()
}

/// A term without requirements matches nothing.
fn matches_term(term: &NodeSelectorTerm, node: &Node) -> bool {
    let labels = term.match_expressions.as_deref();
    let fields = term.match_fields.as_deref();
    let labels = labels.unwrap_or_default();
    let fields = fields.unwrap_or_default();
    let name = node.metadata.name.as_deref().unwrap_or_default();
    !(labels.is_empty() && fields.is_empty())
        && labels.iter().all(|wanted| matches_requirement(wanted, node.labels().get(&wanted.key).map(String::as_str)))
        && fields.iter().all(|wanted| wanted.key == NAME_FIELD && matches_requirement(wanted, Some(name)))
}

fn matches_requirement(wanted: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let values = wanted.values.as_deref().unwrap_or_default();
    let among = || value.is_some_and(|value| values.iter().any(|one| one == value));
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<i64>().ok());
    let compared = || Some((number(value)?, number(values.first().map(String::as_str))?));
    match wanted.operator.as_str() {
        "In" => among(),
        "NotIn" => !among(),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compared().is_some_and(|(value, bound)| value > bound),
        "Lt" => compared().is_some_and(|(value, bound)| value < bound),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
