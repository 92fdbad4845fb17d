//! Which nodes a pod may run on by what it and the nodes say: selectors, affinity to nodes, taints and tolerations.
//!
//! Also the DaemonSet controller asks this, and whoever evicts.

use std::{collections::BTreeSet, time::Duration};

use k8s_openapi::api::core::v1::{
    Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Taint, Toleration,
};
use kube::ResourceExt;

/// What `kubectl cordon` stands for among taints.
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
/// The only field of a node that a selector can name.
const NAME: &str = "metadata.name";

/// Whether the pod's `nodeSelector` and required affinity to nodes hold for the node.
pub fn selects(spec: &PodSpec, node: &Node) -> bool {
    let mut wanted = spec.node_selector.iter().flatten();
    wanted.all(|(label, value)| node.labels().get(label) == Some(value))
        && required(spec).is_none_or(|selector| selector.node_selector_terms.iter().any(|term| matches(term, node)))
}

/// The nodes that the pod names by its affinity, if it can run on no others.
pub fn named(spec: &PodSpec) -> Option<BTreeSet<&str>> {
    let terms = &required(spec)?.node_selector_terms;
    let mut names = BTreeSet::new();
    for term in terms {
        let mut fields = term.match_fields.iter().flatten();
        let field = fields.find(|field| field.key == NAME && field.operator == "In")?;
        names.extend(field.values.iter().flatten().map(String::as_str));
    }
    Some(names).filter(|_| !terms.is_empty())
}

/// How much the pod would like to run on the node: the sum of the weights of the preferences that hold.
pub fn preference(spec: &PodSpec, node: &Node) -> i64 {
    let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let terms = affinity.and_then(|affinity| affinity.preferred_during_scheduling_ignored_during_execution.as_ref());
    let held = terms.into_iter().flatten().filter(|term| matches(&term.preference, node));
    held.map(|term| i64::from(term.weight)).sum()
}

/// Whether one may not start new pods there, and this pod does not tolerate it.
pub fn is_cordoned(spec: &PodSpec, node: &Node) -> bool {
    let cordon = Taint { key: UNSCHEDULABLE.to_owned(), effect: "NoSchedule".to_owned(), ..Taint::default() };
    node.spec.as_ref().is_some_and(|node| node.unschedulable == Some(true)) && !tolerates(spec, &cordon)
}

/// The taints of the node with one of these effects that the pod does not tolerate.
pub fn untolerated<'n>(spec: &PodSpec, node: &'n Node, effects: &[&str]) -> impl Iterator<Item = &'n Taint> {
    let taints = node.spec.as_ref().and_then(|node| node.taints.as_ref()).into_iter().flatten();
    taints.filter(move |taint| effects.contains(&taint.effect.as_str()) && !tolerates(spec, taint))
}

/// How long a pod that runs on the node may stay, in spite of its `NoExecute` taints: no time if it does not tolerate one of them,
/// and for ever if this is `None`.
pub fn may_stay(spec: &PodSpec, node: &Node) -> Option<Duration> {
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

/// An empty effect or key means all of them.
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

fn required(spec: &PodSpec) -> Option<&NodeSelector> {
    let affinity = spec.affinity.as_ref()?.node_affinity.as_ref()?;
    affinity.required_during_scheduling_ignored_during_execution.as_ref()
}

/// A term without requirements selects nothing.
fn matches(term: &NodeSelectorTerm, node: &Node) -> bool {
    let (labels, fields) = (term.match_expressions.as_deref(), term.match_fields.as_deref());
    let (labels, fields) = (labels.unwrap_or_default(), fields.unwrap_or_default());
    let name = node.metadata.name.as_deref().unwrap_or_default();
    !(labels.is_empty() && fields.is_empty())
        && labels.iter().all(|wanted| holds(wanted, node.labels().get(&wanted.key).map(String::as_str)))
        && fields.iter().all(|wanted| wanted.key == NAME && holds(wanted, Some(name)))
}

fn holds(wanted: &NodeSelectorRequirement, value: Option<&str>) -> bool {
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
