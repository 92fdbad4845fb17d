//! The pod of a DaemonSet for a node: the template with an affinity to the node and the tolerations of daemons.

use k8s_openapi::api::{
    apps::v1::DaemonSet,
    core::v1::{
        Affinity, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod, PodSpec, Toleration,
    },
};
use kube::{Resource, ResourceExt};

use crate::{
    controller::{pods, revision},
    scheduler::node_eligibility,
};

const GENERATION_ANNOTATION: &str = "deprecated.daemonset.template.generation";
const GENERATION_LABEL: &str = "pod-template-generation";

/// Taints that daemons tolerate: most of them mean trouble of the node, when daemons are needed most.
const DAEMON_TOLERATIONS: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];
/// Only tolerated by pods in the host network, which need no other.
const NETWORK_UNAVAILABLE_TOLERATION: (&str, &str) = ("node.kubernetes.io/network-unavailable", "NoSchedule");

/// The pod for a node, of the revision with this hash. The scheduler binds it.
pub fn new_pod(set: &DaemonSet, hash: &str, node: &str) -> Option<Pod> {
    let template = &set.spec.as_ref()?.template;
    let mut pod = pods::from_template(template, set);
    pod.meta_mut().generate_name = Some(format!("{}-", set.name_any()));
    pod.labels_mut().insert(revision::POD_REVISION_HASH_LABEL.to_owned(), hash.to_owned());
    if let Some(generation) = set.annotations().get(GENERATION_ANNOTATION) {
        pod.labels_mut().insert(GENERATION_LABEL.to_owned(), generation.clone());
    }
    let spec = pod.spec.get_or_insert_default();
    tolerate(spec);
    require_node(spec, node);
    Some(pod)
}

/// The pod template of the set with the tolerations of daemons, before it is tied to a node.
pub fn template_spec(set: &DaemonSet) -> Option<PodSpec> {
    let mut spec = set.spec.as_ref()?.template.spec.clone()?;
    tolerate(&mut spec);
    Some(spec)
}

/// The node to which a pod of a DaemonSet is bound, or for which it was created.
pub fn target_node(pod: &Pod) -> Option<&str> {
    let spec = pod.spec.as_ref()?;
    let bound = spec.node_name.as_deref().filter(|node| !node.is_empty());
    bound.or_else(|| node_eligibility::named_nodes(spec)?.into_iter().next())
}

fn tolerate(spec: &mut PodSpec) {
    let own_network = spec.host_network == Some(true);
    let all = DAEMON_TOLERATIONS.into_iter().chain(own_network.then_some(NETWORK_UNAVAILABLE_TOLERATION));
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

/// Replaces the required node affinity of the template, which was evaluated before, by the name of the node.
fn require_node(spec: &mut PodSpec, node: &str) {
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
