//! The pod of a DaemonSet on a node: the template, tied to the node by affinity and tolerant of what befalls nodes.

use k8s_openapi::api::{
    apps::v1::DaemonSet,
    core::v1::{
        Affinity, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod, PodSpec, Toleration,
    },
};
use kube::{Resource, ResourceExt};

use crate::{
    controller::{pods, revision},
    scheduler::eligible,
};

const GENERATION_ANNOTATION: &str = "deprecated.daemonset.template.generation";
const GENERATION_LABEL: &str = "pod-template-generation";

/// Taints that a daemon lives with: most say that the node is in trouble, when daemons are needed most.
const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];
/// Only who uses the node's own network can do without another.
const NO_NETWORK: (&str, &str) = ("node.kubernetes.io/network-unavailable", "NoSchedule");

/// The pod for a node, of the revision with this hash. The scheduler binds it.
pub fn pod(set: &DaemonSet, hash: &str, node: &str) -> Option<Pod> {
    let template = &set.spec.as_ref()?.template;
    let mut pod = pods::from_template(template, set);
    pod.meta_mut().generate_name = Some(format!("{}-", set.name_any()));
    pod.labels_mut().insert(revision::POD_LABEL.to_owned(), hash.to_owned());
    if let Some(generation) = set.annotations().get(GENERATION_ANNOTATION) {
        pod.labels_mut().insert(GENERATION_LABEL.to_owned(), generation.clone());
    }
    let spec = pod.spec.get_or_insert_default();
    tolerate(spec);
    tie(spec, node);
    Some(pod)
}

/// The spec of the set's pods before it is tied to a node.
pub fn untied(set: &DaemonSet) -> Option<PodSpec> {
    let mut spec = set.spec.as_ref()?.template.spec.clone()?;
    tolerate(&mut spec);
    Some(spec)
}

/// The node that a pod of a DaemonSet is on, or was made for.
pub fn node_of(pod: &Pod) -> Option<&str> {
    let spec = pod.spec.as_ref()?;
    let bound = spec.node_name.as_deref().filter(|node| !node.is_empty());
    bound.or_else(|| eligible::named(spec)?.into_iter().next())
}

fn tolerate(spec: &mut PodSpec) {
    let own_network = spec.host_network == Some(true);
    let all = TOLERATED.into_iter().chain(own_network.then_some(NO_NETWORK));
    let tolerations = spec.tolerations.get_or_insert_default();
    for (key, effect) in all {
        let toleration = Toleration {
            key: Some(key.to_owned()),
            operator: Some("Exists".to_owned()),
            effect: Some(effect.to_owned()),
            ..Toleration::default()
        };
        if !tolerations.contains(&toleration) {
            tolerations.push(toleration);
        }
    }
}

/// What the template requires of a node was asked before: only the name is left.
fn tie(spec: &mut PodSpec, node: &str) {
    let name = NodeSelectorRequirement {
        key: "metadata.name".to_owned(),
        operator: "In".to_owned(),
        values: Some(vec![node.to_owned()]),
    };
    let term = NodeSelectorTerm { match_fields: Some(vec![name]), match_expressions: None };
    let affinity: &mut Affinity = spec.affinity.get_or_insert_default();
    let to_node: &mut NodeAffinity = affinity.node_affinity.get_or_insert_default();
    to_node.required_during_scheduling_ignored_during_execution =
        Some(NodeSelector { node_selector_terms: vec![term] });
}
