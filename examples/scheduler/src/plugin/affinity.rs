//! `nodeSelector` and node affinity.

use k8s_openapi::api::core::v1::{Node, NodeAffinity as Affinity, NodeSelectorRequirement, NodeSelectorTerm, PodSpec};
use kube::ResourceExt;

use super::{FilterPlugin, PodInfo, ScoringPlugin, normalize_scores};
use crate::cluster::NodeAllocation;

/// The only field that a node selector can use.
const NODE_NAME_FIELD: &str = "metadata.name";

/// Filters nodes by the required affinity, and scores them by the preferred one.
pub struct NodeAffinity;

impl FilterPlugin for NodeAffinity {
    fn rejection_reasons(&self, pod: &PodInfo<'_>, allocation: &NodeAllocation) -> Vec<String> {
        let mut wanted = pod.spec.node_selector.iter().flatten();
        let selected = wanted.all(|(label, value)| allocation.node.labels().get(label) == Some(value));
        let required =
            node_affinity(pod.spec).and_then(|all| all.required_during_scheduling_ignored_during_execution.as_ref());
        let required =
            required.is_none_or(|all| all.node_selector_terms.iter().any(|term| matches_term(term, &allocation.node)));
        let against = !(selected && required);
        against.then(|| "node(s) didn't match Pod's node affinity/selector".to_owned()).into_iter().collect()
    }
}

impl ScoringPlugin for NodeAffinity {
    fn score_nodes(&self, pod: &PodInfo<'_>, allocations: &[&NodeAllocation]) -> Vec<i64> {
        let terms =
            node_affinity(pod.spec).and_then(|all| all.preferred_during_scheduling_ignored_during_execution.as_ref());
        let weight = |allocation: &&NodeAllocation| {
            let held = terms.into_iter().flatten().filter(|term| matches_term(&term.preference, &allocation.node));
            held.map(|term| i64::from(term.weight)).sum()
        };
        normalize_scores(allocations.iter().map(weight))
    }
}

fn node_affinity(spec: &PodSpec) -> Option<&Affinity> {
    spec.affinity.as_ref()?.node_affinity.as_ref()
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
        && fields.iter().all(|wanted| wanted.key == NODE_NAME_FIELD && matches_requirement(wanted, Some(name)))
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
