//! Nodes that a pod asks for: `nodeSelector` and affinity to nodes.

use k8s_openapi::api::core::v1::{Node, NodeAffinity as Affinity, NodeSelectorRequirement, NodeSelectorTerm, PodSpec};
use kube::ResourceExt;

use super::{Ask, Filter, Score, most};
use crate::cluster::Place;

/// The only field of a node that a selector can name.
const NAME: &str = "metadata.name";

/// Leaves out nodes that the pod does not select, and prefers those that it prefers.
pub struct NodeAffinity;

impl Filter for NodeAffinity {
    fn against(&self, ask: &Ask<'_>, place: &Place) -> Vec<String> {
        let mut wanted = ask.spec.node_selector.iter().flatten();
        let selected = wanted.all(|(label, value)| place.node.labels().get(label) == Some(value));
        let required =
            affinity(ask.spec).and_then(|all| all.required_during_scheduling_ignored_during_execution.as_ref());
        let required = required.is_none_or(|all| all.node_selector_terms.iter().any(|term| matches(term, &place.node)));
        let against = !(selected && required);
        against.then(|| "node(s) didn't match Pod's node affinity/selector".to_owned()).into_iter().collect()
    }
}

impl Score for NodeAffinity {
    fn points(&self, ask: &Ask<'_>, places: &[&Place]) -> Vec<i64> {
        let terms =
            affinity(ask.spec).and_then(|all| all.preferred_during_scheduling_ignored_during_execution.as_ref());
        let weight = |place: &&Place| {
            let held = terms.into_iter().flatten().filter(|term| matches(&term.preference, &place.node));
            held.map(|term| i64::from(term.weight)).sum()
        };
        most(places.iter().map(weight))
    }
}

fn affinity(spec: &PodSpec) -> Option<&Affinity> {
    spec.affinity.as_ref()?.node_affinity.as_ref()
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
