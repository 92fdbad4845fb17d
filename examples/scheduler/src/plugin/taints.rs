//! Nodes that keep pods away: cordons and taints.

use k8s_openapi::api::core::v1::{PodSpec, Taint, Toleration};

use super::{Ask, Filter, Score, fewest};
use crate::cluster::Place;

/// What `kubectl cordon` stands for among taints.
const CORDON: &str = "node.kubernetes.io/unschedulable";

/// Leaves out nodes that were cordoned.
pub struct NodeUnschedulable;

impl Filter for NodeUnschedulable {
    fn against(&self, ask: &Ask<'_>, place: &Place) -> Vec<String> {
        let cordon = Taint { key: CORDON.to_owned(), effect: "NoSchedule".to_owned(), ..Taint::default() };
        let cordoned = place.node.spec.as_ref().is_some_and(|node| node.unschedulable == Some(true));
        let against = cordoned && !tolerates(ask.spec, &cordon);
        against.then(|| "node(s) were unschedulable".to_owned()).into_iter().collect()
    }
}

/// Leaves out nodes with a taint that the pod does not tolerate, and prefers those that do not ask it to stay away.
pub struct TaintToleration;

impl Filter for TaintToleration {
    fn against(&self, ask: &Ask<'_>, place: &Place) -> Vec<String> {
        let taint = untolerated(ask.spec, place, &["NoSchedule", "NoExecute"]).next();
        let against = taint.map(|taint| {
            let value = taint.value.as_deref().unwrap_or_default();
            format!("node(s) had untolerated taint {{{}: {value}}}", taint.key)
        });
        against.into_iter().collect()
    }
}

impl Score for TaintToleration {
    fn points(&self, ask: &Ask<'_>, places: &[&Place]) -> Vec<i64> {
        let deterrents = |place: &&Place| untolerated(ask.spec, place, &["PreferNoSchedule"]).count();
        fewest(places.iter().map(|place| i64::try_from(deterrents(place)).unwrap_or(i64::MAX)))
    }
}

/// The taints of the node with one of these effects that the pod does not tolerate.
fn untolerated<'n>(spec: &PodSpec, place: &'n Place, effects: &[&str]) -> impl Iterator<Item = &'n Taint> {
    let taints = place.node.spec.as_ref().and_then(|node| node.taints.as_ref()).into_iter().flatten();
    taints.filter(move |taint| effects.contains(&taint.effect.as_str()) && !tolerates(spec, taint))
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
