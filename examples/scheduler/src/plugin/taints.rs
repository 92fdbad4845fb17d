//! Taints and cordoned nodes.

use k8s_openapi::api::core::v1::{PodSpec, Taint, Toleration};

use super::{FilterPlugin, PodInfo, ScoringPlugin, normalize_scores_reversed};
use crate::cluster::NodeAllocation;

/// The taint that corresponds to `kubectl cordon`.
const UNSCHEDULABLE_TAINT: &str = "node.kubernetes.io/unschedulable";

/// Rejects cordoned nodes.
pub struct NodeUnschedulable;

impl FilterPlugin for NodeUnschedulable {
    fn rejection_reasons(&self, pod: &PodInfo<'_>, allocation: &NodeAllocation) -> Vec<String> {
        let cordon = Taint { key: UNSCHEDULABLE_TAINT.to_owned(), effect: "NoSchedule".to_owned(), ..Taint::default() };
        let cordoned = allocation.node.spec.as_ref().is_some_and(|node| node.unschedulable == Some(true));
        let against = cordoned && !tolerates(pod.spec, &cordon);
        against.then(|| "node(s) were unschedulable".to_owned()).into_iter().collect()
    }
}

/// Rejects nodes with an untolerated taint, and prefers nodes without an untolerated `PreferNoSchedule` taint.
pub struct TaintToleration;

impl FilterPlugin for TaintToleration {
    fn rejection_reasons(&self, pod: &PodInfo<'_>, allocation: &NodeAllocation) -> Vec<String> {
        let taint = untolerated_taints(pod.spec, allocation, &["NoSchedule", "NoExecute"]).next();
        let against = taint.map(|taint| {
            let value = taint.value.as_deref().unwrap_or_default();
            format!("node(s) had untolerated taint {{{}: {value}}}", taint.key)
        });
        against.into_iter().collect()
    }
}

impl ScoringPlugin for TaintToleration {
    fn score_nodes(&self, pod: &PodInfo<'_>, allocations: &[&NodeAllocation]) -> Vec<i64> {
        let deterrents =
            |allocation: &&NodeAllocation| untolerated_taints(pod.spec, allocation, &["PreferNoSchedule"]).count();
        normalize_scores_reversed(
            allocations.iter().map(|allocation| i64::try_from(deterrents(allocation)).unwrap_or(i64::MAX)),
        )
    }
}

/// The taints of the node with one of these effects that the pod does not tolerate.
fn untolerated_taints<'n>(
    spec: &PodSpec,
    allocation: &'n NodeAllocation,
    effects: &[&str],
) -> impl Iterator<Item = &'n Taint> {
    let taints = allocation.node.spec.as_ref().and_then(|node| node.taints.as_ref()).into_iter().flatten();
    taints.filter(move |taint| effects.contains(&taint.effect.as_str()) && !tolerates(spec, taint))
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
