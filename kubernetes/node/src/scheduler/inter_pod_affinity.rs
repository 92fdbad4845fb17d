//! Constraints between pods: affinity and anti-affinity to pods, and topology spread constraints. No I/O.
//!
//! Nodes with the same value of a label form a *domain*. Counts are computed once for all nodes. *Not done*:
//! the preferences of running pods.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::{
    api::core::v1::{Namespace, Node, Pod, PodAffinityTerm, PodSpec, TopologySpreadConstraint},
    apimachinery::pkg::apis::meta::v1::LabelSelector as Written,
};
use kube::ResourceExt;
use kubewake_apiserver::codec::selector::LabelSelector;
use serde_json::{Value, json};

use super::{node_eligibility, node_selection::NodeInfo};

const SPREAD_REASON: &str = "node(s) didn't match pod topology spread constraints";
const SPREAD_LABEL_REASON: &str = "node(s) didn't match pod topology spread constraints (missing required label)";
const AFFINITY_REASON: &str = "node(s) didn't match pod affinity rules";
const ANTI_AFFINITY_REASON: &str = "node(s) didn't match pod anti-affinity rules";
const EXISTING_ANTI_AFFINITY_REASON: &str = "node(s) didn't satisfy existing pods anti-affinity rules";

/// Whether the pod has constraints on other pods.
pub fn has_pod_constraints(spec: &PodSpec) -> bool {
    let asks = |affinity: &k8s_openapi::api::core::v1::Affinity| {
        affinity.pod_affinity.is_some() || affinity.pod_anti_affinity.is_some()
    };
    spec.affinity.as_ref().is_some_and(asks) || spec.topology_spread_constraints.is_some()
}

/// The constraints of a pod, with the counts of matching pods.
#[derive(Debug, Default)]
pub struct InterPodAffinity {
    spread: Vec<TopologySpread>,
    affinity: Vec<TopologyDomains>,
    /// No pod matches the required affinity yet, but the pod itself does.
    is_first_of_group: bool,
    anti_affinity: Vec<TopologyDomains>,
    repelling_domains: Vec<(String, String)>,
    preferences: Vec<(i64, TopologyDomains)>,
    soft_spread: Vec<TopologyDomains>,
}

/// The number of matching pods in each domain of a label.
#[derive(Debug)]
struct TopologyDomains {
    key: String,
    counts: BTreeMap<String, i64>,
}

#[derive(Debug)]
struct TopologySpread {
    domains: TopologyDomains,
    max_skew: i64,
}

impl InterPodAffinity {
    pub fn new(pod: &Pod, spec: &PodSpec, places: &[NodeInfo<'_>], namespaces: &[Arc<Namespace>]) -> Self {
        let mut all = Self { repelling_domains: repelling_domains(pod, places, namespaces), ..Self::default() };
        all.add_spread_constraints(pod, spec, places);
        let Some(affinity) = &spec.affinity else { return all };
        let terms = |terms: Option<&Vec<PodAffinityTerm>>| -> Vec<AffinityTerm> {
            terms.into_iter().flatten().map(|term| AffinityTerm::new(term, pod, namespaces)).collect()
        };
        if let Some(near) = &affinity.pod_affinity {
            let wanted = terms(near.required_during_scheduling_ignored_during_execution.as_ref());
            let matches = |pod: &Pod| wanted.iter().all(|term| term.matches(pod));
            all.affinity = wanted.iter().map(|term| TopologyDomains::count(&term.key, places, matches)).collect();
            all.is_first_of_group = all.affinity.iter().all(|domains| domains.counts.is_empty()) && matches(pod);
            for wish in near.preferred_during_scheduling_ignored_during_execution.iter().flatten() {
                all.add_preference(
                    &AffinityTerm::new(&wish.pod_affinity_term, pod, namespaces),
                    wish.weight.into(),
                    places,
                );
            }
        }
        if let Some(far) = &affinity.pod_anti_affinity {
            let unwanted = terms(far.required_during_scheduling_ignored_during_execution.as_ref());
            let count = |term: &AffinityTerm| TopologyDomains::count(&term.key, places, |pod| term.matches(pod));
            all.anti_affinity = unwanted.iter().map(count).collect();
            for wish in far.preferred_during_scheduling_ignored_during_execution.iter().flatten() {
                all.add_preference(
                    &AffinityTerm::new(&wish.pod_affinity_term, pod, namespaces),
                    -i64::from(wish.weight),
                    places,
                );
            }
        }
        all
    }

    fn add_preference(&mut self, term: &AffinityTerm, weight: i64, places: &[NodeInfo<'_>]) {
        self.preferences.push((weight, TopologyDomains::count(&term.key, places, |pod| term.matches(pod))));
    }

    fn add_spread_constraints(&mut self, pod: &Pod, spec: &PodSpec, places: &[NodeInfo<'_>]) {
        for asked in spec.topology_spread_constraints.iter().flatten() {
            let domains = count_spread_domains(asked, pod, spec, places);
            if asked.when_unsatisfiable == "DoNotSchedule" {
                let itself = i64::from(
                    parse_selector(asked.label_selector.as_ref(), &[]).is_some_and(|one| selects_labels(&one, pod)),
                );
                let few =
                    asked.min_domains.is_some_and(|least| domains.counts.len() < usize::try_from(least).unwrap_or(0));
                let least = if few { 0 } else { domains.counts.values().copied().min().unwrap_or(0) };
                self.spread.push(TopologySpread { domains, max_skew: i64::from(asked.max_skew) + least - itself });
            } else {
                self.soft_spread.push(domains);
            }
        }
    }

    /// The reason against a node, in kube-scheduler's words.
    pub fn filter_reason(&self, node: &Node) -> Option<&'static str> {
        for spread in &self.spread {
            match spread.domains.count_for_node(node) {
                None => return Some(SPREAD_LABEL_REASON),
                Some(count) if count > spread.max_skew => return Some(SPREAD_REASON),
                Some(_) => {}
            }
        }
        let near = |domains: &TopologyDomains| {
            domains.count_for_node(node).is_some_and(|count| count > 0 || self.is_first_of_group)
        };
        let far = |domains: &TopologyDomains| domains.count_for_node(node).is_none_or(|count| count == 0);
        let refuses = |(key, value): &(String, String)| node.labels().get(key) == Some(value);
        match () {
            () if !self.affinity.iter().all(near) => Some(AFFINITY_REASON),
            () if !self.anti_affinity.iter().all(far) => Some(ANTI_AFFINITY_REASON),
            () if self.repelling_domains.iter().any(refuses) => Some(EXISTING_ANTI_AFFINITY_REASON),
            () => None,
        }
    }

    /// The weighted preference of the pod for the pods on the node.
    pub fn preference_score(&self, node: &Node) -> i64 {
        self.preferences.iter().map(|(weight, domains)| weight * domains.count_for_node(node).unwrap_or(0)).sum()
    }

    /// The number of pods on the node from which it prefers to be spread.
    pub fn spread_score(&self, node: &Node) -> i64 {
        self.soft_spread.iter().map(|domains| domains.count_for_node(node).unwrap_or(0)).sum()
    }
}

impl TopologyDomains {
    /// Domains without matching pods are not in the map.
    fn count(key: &str, places: &[NodeInfo<'_>], matches: impl Fn(&Pod) -> bool) -> Self {
        let mut counts = BTreeMap::new();
        for place in places {
            let found = place.pods.iter().filter(|booking| matches(&booking.pod)).count();
            if let (Some(value), 1..) = (place.node.labels().get(key), found) {
                *counts.entry(value.clone()).or_default() += i64::try_from(found).unwrap_or(i64::MAX);
            }
        }
        Self { key: key.to_owned(), counts }
    }

    /// The count of the node's domain; none if it is in no domain.
    fn count_for_node(&self, node: &Node) -> Option<i64> {
        node.labels().get(&self.key).map(|value| self.counts.get(value).copied().unwrap_or(0))
    }
}

/// The count of each eligible domain for a spread constraint, including empty domains.
fn count_spread_domains(
    asked: &TopologySpreadConstraint,
    pod: &Pod,
    spec: &PodSpec,
    places: &[NodeInfo<'_>],
) -> TopologyDomains {
    let keys = asked.match_label_keys.as_deref().unwrap_or_default();
    let selector = parse_selector(asked.label_selector.as_ref(), &label_requirements(keys, pod, "In"));
    let counts = |other: &Pod| {
        other.metadata.deletion_timestamp.is_none()
            && other.metadata.namespace == pod.metadata.namespace
            && selector.as_ref().is_some_and(|selector| selects_labels(selector, other))
    };
    let all = || spec.topology_spread_constraints.iter().flatten();
    let is_in = |place: &&NodeInfo<'_>| {
        let tainted = || node_eligibility::untolerated(spec, place.node, &["NoSchedule", "NoExecute"]).next().is_some();
        all().all(|other| place.node.labels().contains_key(&other.topology_key))
            && (asked.node_affinity_policy.as_deref() == Some("Ignore")
                || node_eligibility::matches_node_affinity(spec, place.node))
            && (asked.node_taints_policy.as_deref() != Some("Honor") || !tainted())
    };
    let mut domains = TopologyDomains { key: asked.topology_key.clone(), counts: BTreeMap::new() };
    for place in places.iter().filter(is_in) {
        let found = place.pods.iter().filter(|booking| counts(&booking.pod)).count();
        let value = place.node.labels().get(&asked.topology_key).cloned().unwrap_or_default();
        *domains.counts.entry(value).or_default() += i64::try_from(found).unwrap_or(i64::MAX);
    }
    domains
}

/// Labels and values of domains with pods whose anti-affinity matches this one.
fn repelling_domains(pod: &Pod, places: &[NodeInfo<'_>], namespaces: &[Arc<Namespace>]) -> Vec<(String, String)> {
    let mut refused = Vec::new();
    for place in places {
        for other in place.pods.iter().map(|booking| &booking.pod) {
            let affinity = other.spec.as_ref().and_then(|spec| spec.affinity.as_ref());
            let far = affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref());
            let terms = far.and_then(|far| far.required_during_scheduling_ignored_during_execution.as_ref());
            for term in terms.into_iter().flatten() {
                if let Some(value) = place.node.labels().get(&term.topology_key)
                    && AffinityTerm::new(term, other, namespaces).matches(pod)
                {
                    refused.push((term.topology_key.clone(), value.clone()));
                }
            }
        }
    }
    refused
}

/// The pods that an affinity term selects, and its topology key.
struct AffinityTerm {
    key: String,
    selector: Option<LabelSelector>,
    namespaces: Vec<String>,
}

impl AffinityTerm {
    /// Resolves a term of this pod.
    fn new(term: &PodAffinityTerm, pod: &Pod, namespaces: &[Arc<Namespace>]) -> Self {
        let mut more = label_requirements(term.match_label_keys.as_deref().unwrap_or_default(), pod, "In");
        more.extend(label_requirements(term.mismatch_label_keys.as_deref().unwrap_or_default(), pod, "NotIn"));
        let mut names = term.namespaces.clone().unwrap_or_default();
        match &term.namespace_selector {
            None if names.is_empty() => names.extend(pod.namespace()),
            None => {}
            Some(written) => {
                let selector = parse_selector(Some(written), &[]);
                let meant = |namespace: &&Arc<Namespace>| {
                    selector.as_ref().is_some_and(|one| selects_labels(one, &***namespace))
                };
                names.extend(namespaces.iter().filter(meant).map(|namespace| namespace.name_any()));
            }
        }
        let selector = parse_selector(term.label_selector.as_ref(), &more);
        Self { key: term.topology_key.clone(), selector, namespaces: names }
    }

    fn matches(&self, pod: &Pod) -> bool {
        self.namespaces.iter().any(|name| Some(name) == pod.metadata.namespace.as_ref())
            && self.selector.as_ref().is_some_and(|selector| selects_labels(selector, pod))
    }
}

/// Requirements on the pod's own values of these labels, with this operator.
fn label_requirements(keys: &[String], pod: &Pod, operator: &str) -> Vec<Value> {
    let labels = keys.iter().filter_map(|key| Some((key, pod.labels().get(key)?)));
    labels.map(|(key, value)| json!({ "key": key, "operator": operator, "values": [value] })).collect()
}

/// Parses a selector with additional requirements; the API server admits only valid ones.
fn parse_selector(written: Option<&Written>, more: &[Value]) -> Option<LabelSelector> {
    let mut written = serde_json::to_value(written?).ok()?;
    if !more.is_empty() {
        let expressions = written.as_object_mut()?.entry("matchExpressions").or_insert_with(|| json!([]));
        expressions.as_array_mut()?.extend_from_slice(more);
    }
    LabelSelector::from_value(Some(&written)).ok()
}

fn selects_labels(selector: &LabelSelector, object: &impl ResourceExt) -> bool {
    selector.matches(|label| object.labels().get(label).map(String::as_str))
}

#[cfg(test)]
mod tests;
