//! Merges the live objects of the cluster into the index of traced objects.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{
    ConvergencePhase, GenerationHistory, ObjectFilter, ObjectHistory, ObjectId, ObjectIndex, tree::build_tree,
};
use crate::{query::filter::matches_kind, store::TraceId};

#[derive(Clone, Debug, Default)]
pub struct LiveObjects {
    /// Kinds of which every object was listed.
    pub listed_kinds: Vec<ListedKind>,
    pub objects: Vec<LiveObject>,
    /// Kinds that the cluster was not queried for, because there were too many.
    pub skipped_kinds: Vec<String>,
}

/// A kind that was listed completely, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedKind {
    pub api_version: String,
    pub kind: String,
    /// In one namespace, or in all.
    pub namespace: Option<String>,
}

impl ListedKind {
    /// Whether the list would contain an object that exists. Unknown without its `apiVersion`: several groups
    /// may have a kind of this name.
    fn covers(&self, key: &ObjectId, known: &ObjectHistory) -> bool {
        self.kind == key.kind
            && !known.api_version.is_empty()
            && is_same_group(&self.api_version, &known.api_version)
            && self.namespace.as_ref().is_none_or(|namespace| *namespace == key.namespace)
    }
}

/// Whether two kinds of the same name can be the same kind. Objects are served in several versions.
fn is_same_group(one: &str, other: &str) -> bool {
    one.is_empty() || other.is_empty() || api_group(one) == api_group(other)
}

fn api_group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveObject {
    pub key: ObjectId,
    pub api_version: String,
    pub uid: String,
    pub owner: Option<ObjectId>,
    pub stamp: Option<ObjectStamp>,
}

/// The last change of an object, according to its annotations and status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectStamp {
    /// 0 if the kind has no generations.
    pub generation: i64,
    pub start: u64,
    /// How long the object took to become ready.
    pub duration: Option<u64>,
    pub state: ConvergencePhase,
    /// The trace of the change.
    pub trace: Option<TraceId>,
    /// The span that caused the change.
    pub span: Option<u64>,
}

impl LiveObject {
    /// Whether an object is listed because it names a trace. A ReplicaSet, which only lies between others, is
    /// left out unless its kind is asked for.
    pub fn is_listed(&self, wanted: &ObjectFilter) -> bool {
        let is_meant = || wanted.kind.as_deref().is_some_and(|wanted| matches_kind(REPLICA_SET_NAME, wanted));
        self.stamp.as_ref().is_some_and(|stamp| stamp.trace.is_some())
            && (self.key.kind != REPLICA_SET_NAME || is_meant())
    }
}

impl LiveObjects {
    /// Removes traces that are not in the store, since they cannot be shown.
    pub fn keep_traces(&mut self, is_there: impl Fn(TraceId) -> bool) {
        let stamps = self.objects.iter_mut().filter_map(|object| object.stamp.as_mut());
        for stamp in stamps.filter(|stamp| !stamp.trace.is_some_and(&is_there)) {
            (stamp.trace, stamp.span) = (None, None);
        }
    }
}

type ApiKind = (&'static str, &'static str);
/// Workloads with their dependents, which may lack spans of their own.
const WORKLOADS: [(ApiKind, &[ApiKind]); 5] = [
    (("apps/v1", "Deployment"), &[REPLICA_SET_KIND, POD_KIND]),
    (REPLICA_SET_KIND, &[POD_KIND]),
    (("apps/v1", "StatefulSet"), &[POD_KIND]),
    (("apps/v1", "DaemonSet"), &[POD_KIND]),
    (("batch/v1", "Job"), &[POD_KIND]),
];
const REPLICA_SET_KIND: ApiKind = ("apps/v1", REPLICA_SET_NAME);
const POD_KIND: ApiKind = ("v1", "Pod");
/// A ReplicaSet comes and goes with each version of its Deployment, and adds nothing to it.
const REPLICA_SET_NAME: &str = "ReplicaSet";

impl ObjectIndex {
    /// The kinds to list in order to show one object.
    pub fn kinds_to_ask(&self, wanted: &ObjectFilter) -> Vec<(String, String)> {
        if let Some((key, known)) = self.find(wanted) {
            return self.kinds_below(key, known);
        }
        // No trace refers to the object, but the cluster may have it if its kind is a traced kind, a workload,
        // or a dependent of one.
        let is_wanted = |kind: &str| wanted.kind.as_deref().is_some_and(|wanted| matches_kind(kind, wanted));
        let found = self.traced_kinds().chain(workload_kinds()).filter(|(_, kind)| is_wanted(kind));
        // A ReplicaSet lies between a pod and its Deployment.
        let between = |kind: &str| (kind == POD_KIND.1).then_some(REPLICA_SET_KIND);
        sorted_kinds(found.flat_map(|it| std::iter::once(it).chain(dependent_kinds(it.1)).chain(between(it.1))))
    }

    /// The kinds to list in order to show all objects that match: workloads with their dependents, and traced
    /// kinds. Of these, the ones that match the filter and those of their owners, by which some objects are
    /// found.
    pub fn kinds_to_list(&self, wanted: &ObjectFilter) -> Vec<(String, String)> {
        let all = workload_kinds().chain(self.traced_kinds());
        let Some(wanted) = &wanted.kind else { return sorted_kinds(all) };
        let owners = self.owner_kinds();
        let mut kinds: Vec<_> = all.filter(|(_, kind)| matches_kind(kind, wanted)).collect();
        let mut seen = HashSet::new();
        let mut at = 0;
        while let Some((_, kind)) = kinds.get(at).copied() {
            if seen.insert(kind) {
                kinds.extend(owners.get(kind).into_iter().flatten());
            }
            at += 1;
        }
        sorted_kinds(kinds)
    }

    /// Possible owners of each kind, as far as they are known.
    fn owner_kinds(&self) -> HashMap<&str, BTreeSet<(&str, &str)>> {
        let mut owners: HashMap<&str, BTreeSet<_>> = HashMap::new();
        for (workload, parts) in WORKLOADS {
            for (_, part) in parts {
                owners.entry(part).or_default().insert(workload);
            }
        }
        for (key, known) in &self.histories {
            for parent in &known.parents {
                let version = self.histories.get(parent).map_or("", |parent| parent.api_version.as_str());
                owners.entry(&key.kind).or_default().insert((version, &parent.kind));
            }
        }
        owners
    }

    /// Kinds in traces, the most recently active first.
    fn traced_kinds(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.matching(&ObjectFilter::default()).into_iter();
        all.map(|(key, known)| (known.api_version.as_str(), key.kind.as_str()))
    }

    /// The kinds of an object and its dependents.
    fn kinds_below(&self, key: &ObjectId, known: &ObjectHistory) -> Vec<(String, String)> {
        let mut kinds = Vec::new();
        let mut open = vec![build_tree(self, key, known)];
        while let Some(node) = open.pop() {
            kinds.push((node.known.api_version.as_str(), node.key.kind.as_str()));
            kinds.extend(dependent_kinds(&node.key.kind));
            open.extend(node.children);
        }
        sorted_kinds(kinds)
    }

    /// Adds the state of the cluster: which of the objects exist, their dependents, and the objects that match
    /// although no span refers to them.
    pub fn add_live(&mut self, live: &LiveObjects, is_wanted: impl Fn(&LiveObject) -> bool) {
        for (key, known) in &mut self.histories {
            if live.listed_kinds.iter().any(|seen| seen.covers(key, known)) {
                known.live = Some(false);
            }
        }
        let (passed_over, mut waiting): (Vec<_>, Vec<_>) =
            live.objects.iter().partition(|object| object.key.kind == REPLICA_SET_NAME && !is_wanted(object));
        let passed_over: HashMap<_, _> = passed_over.into_iter().map(|object| (&object.key, object)).collect();
        for object in waiting.iter().filter(|object| is_wanted(object)) {
            self.entry(object.key.clone());
        }
        // Owners first: dependents are only added below them.
        loop {
            let before = waiting.len();
            waiting.retain(|object| !self.add_owned(object, &passed_over));
            if waiting.len() == before {
                break;
            }
        }
        for object in &live.objects {
            let known = self.histories.get_mut(&object.key);
            if let Some(known) = known.filter(|known| is_same_group(&known.api_version, &object.api_version)) {
                known.apply_live(object);
            }
        }
    }

    /// Adds an object if its owner is in the index.
    fn add_owned(&mut self, object: &LiveObject, passed_over: &HashMap<&ObjectId, &LiveObject>) -> bool {
        let Some(owner) = &object.owner else { return false };
        let owner = passed_over.get(owner).and_then(|between| between.owner.as_ref()).unwrap_or(owner);
        // An owner is in the namespace of the object or cluster-scoped; the reference does not tell which.
        let cluster_wide = ObjectId { namespace: String::new(), ..owner.clone() };
        let Some(owner) = [owner, &cluster_wide].into_iter().find(|owner| self.histories.contains_key(owner)) else {
            return false;
        };
        self.add_owner(owner, &object.key);
        true
    }
}

impl ObjectHistory {
    fn apply_live(&mut self, object: &LiveObject) {
        self.live = Some(true);
        for (field, said) in [(&mut self.api_version, &object.api_version), (&mut self.uid, &object.uid)] {
            if field.is_empty() {
                field.clone_from(said);
            }
        }
        let Some(stamp) = &object.stamp else { return };
        if self.last.is_none() {
            self.last = stamp.trace.map(|trace| (stamp.start, trace));
        }
        // Spans are more exact, though not all of them carry the uid.
        let is_told =
            |(uid, number): &(String, i64)| *number == stamp.generation && (uid.is_empty() || *uid == object.uid);
        if !self.generations.keys().any(is_told) {
            self.generations.insert((object.uid.clone(), stamp.generation), GenerationHistory::from(stamp));
        }
    }
}

impl From<&ObjectStamp> for GenerationHistory {
    fn from(stamp: &ObjectStamp) -> Self {
        let ObjectStamp { start, duration, state, trace, span, .. } = *stamp;
        Self { start, duration, trace, span, cluster: Some(state), ..Self::default() }
    }
}

/// Distinct kinds, by `apiVersion` and kind, workloads and pods first: the number of kinds that a cluster is
/// queried for is bounded, and anybody who sends spans can name many.
fn sorted_kinds<'a>(kinds: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<(String, String)> {
    let mut seen = HashSet::new();
    let mut kinds: Vec<_> = kinds.into_iter().filter(|kind| !kind.0.is_empty() && seen.insert(*kind)).collect();
    kinds.sort_by_key(|kind| !workload_kinds().any(|workload| workload == *kind));
    kinds.into_iter().map(|(version, kind)| (version.to_owned(), kind.to_owned())).collect()
}

fn workload_kinds<'a>() -> impl Iterator<Item = (&'a str, &'a str)> {
    WORKLOADS.iter().map(|(workload, _)| *workload).chain([POD_KIND])
}

/// The kinds of a workload's dependents.
fn dependent_kinds(kind: &str) -> impl Iterator<Item = (&str, &str)> {
    let workload = WORKLOADS.iter().find(|((_, workload), _)| *workload == kind);
    workload.into_iter().flat_map(|(_, parts)| parts.iter().copied())
}
