//! What pods ask of the pods around them: affinity and anti-affinity to pods, and topology spread constraints. No I/O.
//!
//! Nodes with the same value of a label are one *domain*. What is asked is counted once for all nodes. *Not done*: preferences of
//! pods that run already count for nothing.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::{
    api::core::v1::{Namespace, Node, Pod, PodAffinityTerm, PodSpec, TopologySpreadConstraint},
    apimachinery::pkg::apis::meta::v1::LabelSelector as Written,
};
use kube::ResourceExt;
use kubewake_apiserver::codec::selector::LabelSelector;
use serde_json::{Value, json};

use super::{eligible, place::Place};

const NOT_SPREAD: &str = "node(s) didn't match pod topology spread constraints";
const NO_LABEL: &str = "node(s) didn't match pod topology spread constraints (missing required label)";
const NOT_TOGETHER: &str = "node(s) didn't match pod affinity rules";
const NOT_APART: &str = "node(s) didn't match pod anti-affinity rules";
const REFUSED: &str = "node(s) didn't satisfy existing pods anti-affinity rules";

/// Whether the pod asks anything of others.
pub fn is_sociable(spec: &PodSpec) -> bool {
    let asks = |affinity: &k8s_openapi::api::core::v1::Affinity| {
        affinity.pod_affinity.is_some() || affinity.pod_anti_affinity.is_some()
    };
    spec.affinity.as_ref().is_some_and(asks) || spec.topology_spread_constraints.is_some()
}

/// What a pod asks, counted.
#[derive(Debug, Default)]
pub struct Neighbours {
    spread: Vec<Spread>,
    together: Vec<Domains>,
    /// Nobody is there yet whom the pod wants to be near, and it would be near itself.
    is_first: bool,
    apart: Vec<Domains>,
    refused: Vec<(String, String)>,
    wishes: Vec<(i64, Domains)>,
    loose: Vec<Domains>,
}

/// How many pods count in each domain of a label.
#[derive(Debug)]
struct Domains {
    key: String,
    counts: BTreeMap<String, i64>,
}

#[derive(Debug)]
struct Spread {
    domains: Domains,
    most: i64,
}

impl Neighbours {
    /// Counts for a pod.
    pub fn new(pod: &Pod, spec: &PodSpec, places: &[Place<'_>], namespaces: &[Arc<Namespace>]) -> Self {
        let mut all = Self { refused: refused(pod, places, namespaces), ..Self::default() };
        all.spread(pod, spec, places);
        let Some(affinity) = &spec.affinity else { return all };
        let terms = |terms: Option<&Vec<PodAffinityTerm>>| -> Vec<Term> {
            terms.into_iter().flatten().map(|term| Term::new(term, pod, namespaces)).collect()
        };
        if let Some(near) = &affinity.pod_affinity {
            let wanted = terms(near.required_during_scheduling_ignored_during_execution.as_ref());
            let matches = |pod: &Pod| wanted.iter().all(|term| term.matches(pod));
            all.together = wanted.iter().map(|term| Domains::count(&term.key, places, matches)).collect();
            all.is_first = all.together.iter().all(|domains| domains.counts.is_empty()) && matches(pod);
            for wish in near.preferred_during_scheduling_ignored_during_execution.iter().flatten() {
                all.wish(&Term::new(&wish.pod_affinity_term, pod, namespaces), wish.weight.into(), places);
            }
        }
        if let Some(far) = &affinity.pod_anti_affinity {
            let unwanted = terms(far.required_during_scheduling_ignored_during_execution.as_ref());
            let count = |term: &Term| Domains::count(&term.key, places, |pod| term.matches(pod));
            all.apart = unwanted.iter().map(count).collect();
            for wish in far.preferred_during_scheduling_ignored_during_execution.iter().flatten() {
                all.wish(&Term::new(&wish.pod_affinity_term, pod, namespaces), -i64::from(wish.weight), places);
            }
        }
        all
    }

    fn wish(&mut self, term: &Term, weight: i64, places: &[Place<'_>]) {
        self.wishes.push((weight, Domains::count(&term.key, places, |pod| term.matches(pod))));
    }

    fn spread(&mut self, pod: &Pod, spec: &PodSpec, places: &[Place<'_>]) {
        for asked in spec.topology_spread_constraints.iter().flatten() {
            let domains = spread(asked, pod, spec, places);
            if asked.when_unsatisfiable == "DoNotSchedule" {
                let itself = i64::from(selector(asked.label_selector.as_ref(), &[]).is_some_and(|one| fits(&one, pod)));
                let few =
                    asked.min_domains.is_some_and(|least| domains.counts.len() < usize::try_from(least).unwrap_or(0));
                let least = if few { 0 } else { domains.counts.values().copied().min().unwrap_or(0) };
                self.spread.push(Spread { domains, most: i64::from(asked.max_skew) + least - itself });
            } else {
                self.loose.push(domains);
            }
        }
    }

    /// What speaks against a node, in kube-scheduler's words.
    pub fn against(&self, node: &Node) -> Option<&'static str> {
        for spread in &self.spread {
            match spread.domains.of(node) {
                None => return Some(NO_LABEL),
                Some(count) if count > spread.most => return Some(NOT_SPREAD),
                Some(_) => {}
            }
        }
        let near = |domains: &Domains| domains.of(node).is_some_and(|count| count > 0 || self.is_first);
        let far = |domains: &Domains| domains.of(node).is_none_or(|count| count == 0);
        let refuses = |(key, value): &(String, String)| node.labels().get(key) == Some(value);
        match () {
            () if !self.together.iter().all(near) => Some(NOT_TOGETHER),
            () if !self.apart.iter().all(far) => Some(NOT_APART),
            () if self.refused.iter().any(refuses) => Some(REFUSED),
            () => None,
        }
    }

    /// How much the pod would like its neighbours there.
    pub fn wishes(&self, node: &Node) -> i64 {
        self.wishes.iter().map(|(weight, domains)| weight * domains.of(node).unwrap_or(0)).sum()
    }

    /// How many pods are there that it would rather be spread from.
    pub fn crowd(&self, node: &Node) -> i64 {
        self.loose.iter().map(|domains| domains.of(node).unwrap_or(0)).sum()
    }
}

impl Domains {
    /// Domains without such pods are not there.
    fn count(key: &str, places: &[Place<'_>], matches: impl Fn(&Pod) -> bool) -> Self {
        let mut counts = BTreeMap::new();
        for place in places {
            let found = place.pods.iter().filter(|booking| matches(&booking.pod)).count();
            if let (Some(value), 1..) = (place.node.labels().get(key), found) {
                *counts.entry(value.clone()).or_default() += i64::try_from(found).unwrap_or(i64::MAX);
            }
        }
        Self { key: key.to_owned(), counts }
    }

    /// The number of the node's domain; none if it is in none.
    fn of(&self, node: &Node) -> Option<i64> {
        node.labels().get(&self.key).map(|value| self.counts.get(value).copied().unwrap_or(0))
    }
}

/// How many pods of the constraint each domain has in which the pod may run, those with none included.
fn spread(asked: &TopologySpreadConstraint, pod: &Pod, spec: &PodSpec, places: &[Place<'_>]) -> Domains {
    let keys = asked.match_label_keys.as_deref().unwrap_or_default();
    let selector = selector(asked.label_selector.as_ref(), &same(keys, pod, "In"));
    let counts = |other: &Pod| {
        other.metadata.deletion_timestamp.is_none()
            && other.metadata.namespace == pod.metadata.namespace
            && selector.as_ref().is_some_and(|selector| fits(selector, other))
    };
    let all = || spec.topology_spread_constraints.iter().flatten();
    let is_in = |place: &&Place<'_>| {
        let tainted = || eligible::untolerated(spec, place.node, &["NoSchedule", "NoExecute"]).next().is_some();
        all().all(|other| place.node.labels().contains_key(&other.topology_key))
            && (asked.node_affinity_policy.as_deref() == Some("Ignore") || eligible::selects(spec, place.node))
            && (asked.node_taints_policy.as_deref() != Some("Honor") || !tainted())
    };
    let mut domains = Domains { key: asked.topology_key.clone(), counts: BTreeMap::new() };
    for place in places.iter().filter(is_in) {
        let found = place.pods.iter().filter(|booking| counts(&booking.pod)).count();
        let value = place.node.labels().get(&asked.topology_key).cloned().unwrap_or_default();
        *domains.counts.entry(value).or_default() += i64::try_from(found).unwrap_or(i64::MAX);
    }
    domains
}

/// Labels and values of nodes where pods are that do not want this one near.
fn refused(pod: &Pod, places: &[Place<'_>], namespaces: &[Arc<Namespace>]) -> Vec<(String, String)> {
    let mut refused = Vec::new();
    for place in places {
        for other in place.pods.iter().map(|booking| &booking.pod) {
            let affinity = other.spec.as_ref().and_then(|spec| spec.affinity.as_ref());
            let far = affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref());
            let terms = far.and_then(|far| far.required_during_scheduling_ignored_during_execution.as_ref());
            for term in terms.into_iter().flatten() {
                if let Some(value) = place.node.labels().get(&term.topology_key)
                    && Term::new(term, other, namespaces).matches(pod)
                {
                    refused.push((term.topology_key.clone(), value.clone()));
                }
            }
        }
    }
    refused
}

/// Which pods a term of an affinity means, and what a domain is.
struct Term {
    key: String,
    /// None selects nothing.
    selector: Option<LabelSelector>,
    namespaces: Vec<String>,
}

impl Term {
    /// A term of this pod.
    fn new(term: &PodAffinityTerm, pod: &Pod, namespaces: &[Arc<Namespace>]) -> Self {
        let mut more = same(term.match_label_keys.as_deref().unwrap_or_default(), pod, "In");
        more.extend(same(term.mismatch_label_keys.as_deref().unwrap_or_default(), pod, "NotIn"));
        let mut names = term.namespaces.clone().unwrap_or_default();
        match &term.namespace_selector {
            None if names.is_empty() => names.extend(pod.namespace()),
            None => {}
            Some(written) => {
                let selector = selector(Some(written), &[]);
                let meant = |namespace: &&Arc<Namespace>| selector.as_ref().is_some_and(|one| fits(one, &***namespace));
                names.extend(namespaces.iter().filter(meant).map(|namespace| namespace.name_any()));
            }
        }
        let selector = selector(term.label_selector.as_ref(), &more);
        Self { key: term.topology_key.clone(), selector, namespaces: names }
    }

    fn matches(&self, pod: &Pod) -> bool {
        self.namespaces.iter().any(|name| Some(name) == pod.metadata.namespace.as_ref())
            && self.selector.as_ref().is_some_and(|selector| fits(selector, pod))
    }
}

/// Requirements that labels have the pod's own values, or others.
fn same(keys: &[String], pod: &Pod, operator: &str) -> Vec<Value> {
    let labels = keys.iter().filter_map(|key| Some((key, pod.labels().get(key)?)));
    labels.map(|(key, value)| json!({ "key": key, "operator": operator, "values": [value] })).collect()
}

/// The API server lets no unreadable selector in.
fn selector(written: Option<&Written>, more: &[Value]) -> Option<LabelSelector> {
    let mut written = serde_json::to_value(written?).ok()?;
    if !more.is_empty() {
        let expressions = written.as_object_mut()?.entry("matchExpressions").or_insert_with(|| json!([]));
        expressions.as_array_mut()?.extend_from_slice(more);
    }
    LabelSelector::from_value(Some(&written)).ok()
}

fn fits(selector: &LabelSelector, object: &impl ResourceExt) -> bool {
    selector.matches(|label| object.labels().get(label).map(String::as_str))
}

#[cfg(test)]
mod tests;
