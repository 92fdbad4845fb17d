//! What the cluster adds to what traces tell.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{Generation, Key, Known, ObjectFilter, Objects, State, tree};
use crate::{query::filter::is_kind, store::TraceId};

/// What is in a cluster.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// Where all objects were seen.
    pub seen: Vec<Seen>,
    /// The objects.
    pub objects: Vec<LiveObject>,
    /// Kinds that it was not asked for, as there were too many.
    pub unasked: Vec<String>,
}

/// Where all objects of a kind were seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The `apiVersion` of the kind.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// In which namespace, or wherever they are.
    pub namespace: Option<String>,
}

impl Seen {
    /// Whether an object would have been seen if it were there. Without its `apiVersion` that is not known: several groups may have its kind.
    fn covers(&self, key: &Key, known: &Known) -> bool {
        self.kind == key.kind
            && !known.api_version.is_empty()
            && is_same_group(&self.api_version, &known.api_version)
            && self.namespace.as_ref().is_none_or(|namespace| *namespace == key.namespace)
    }
}

/// Whether these can be of the same kind, if it has the same name. Objects are served in several versions.
fn is_same_group(one: &str, other: &str) -> bool {
    one.is_empty() || other.is_empty() || group(one) == group(other)
}

fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// An object that is in a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveObject {
    /// What it is called.
    pub key: Key,
    /// Its `apiVersion`.
    pub api_version: String,
    /// Its uid.
    pub uid: String,
    /// Its controller.
    pub owner: Option<Key>,
    /// Its last change.
    pub stamp: Option<Stamp>,
}

/// What an object in a cluster says of its last change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Its generation; 0 if it has none.
    pub generation: i64,
    /// When it was made.
    pub start: u64,
    /// How long it took to be ready.
    pub duration: Option<u64>,
    /// How far it is.
    pub state: State,
    /// The trace that it belongs to.
    pub trace: Option<TraceId>,
    /// The span that caused it.
    pub span: Option<u64>,
}

impl LiveObject {
    /// Whether it belongs into a list because it names a trace. What only lies between others is passed over unless its kind is asked for.
    pub fn is_listed(&self, wanted: &ObjectFilter) -> bool {
        let is_meant = || wanted.kind.as_deref().is_some_and(|wanted| is_kind(PASSED_OVER, wanted));
        self.stamp.as_ref().is_some_and(|stamp| stamp.trace.is_some()) && (self.key.kind != PASSED_OVER || is_meant())
    }
}

impl Live {
    /// Leaves out traces that are not in the store: there is nothing to look at.
    pub fn keep_traces(&mut self, is_there: impl Fn(TraceId) -> bool) {
        let stamps = self.objects.iter_mut().filter_map(|object| object.stamp.as_mut());
        for stamp in stamps.filter(|stamp| !stamp.trace.is_some_and(&is_there)) {
            (stamp.trace, stamp.span) = (None, None);
        }
    }
}

/// By `apiVersion` and kind.
type Kind = (&'static str, &'static str);
/// Workloads, whose pods no trace need tell of, with what lies between.
const WORKLOADS: [(Kind, &[Kind]); 5] = [
    (("apps/v1", "Deployment"), &[REPLICA_SET, POD]),
    (REPLICA_SET, &[POD]),
    (("apps/v1", "StatefulSet"), &[POD]),
    (("apps/v1", "DaemonSet"), &[POD]),
    (("batch/v1", "Job"), &[POD]),
];
const REPLICA_SET: Kind = ("apps/v1", PASSED_OVER);
const POD: Kind = ("v1", "Pod");
/// It comes and goes with each version of its Deployment, and says nothing that the Deployment does not.
const PASSED_OVER: &str = "ReplicaSet";

impl Objects {
    /// The kinds that the cluster is to be asked for about an object.
    pub fn kinds_to_ask(&self, wanted: &ObjectFilter) -> Vec<(String, String)> {
        if let Some((key, known)) = self.find(wanted) {
            return self.kinds_below(key, known);
        }
        // No trace tells of it, but it may be there: of a kind that traces tell of, or a workload, or what belongs to one.
        let is_wanted = |kind: &str| wanted.kind.as_deref().is_some_and(|wanted| is_kind(kind, wanted));
        let found = self.told().chain(workloads()).filter(|(_, kind)| is_wanted(kind));
        // Between a pod and its Deployment lies a ReplicaSet.
        let between = |kind: &str| (kind == POD.1).then_some(REPLICA_SET);
        ordered(found.flat_map(|it| std::iter::once(it).chain(parts(it.1)).chain(between(it.1))))
    }

    /// The kinds that the cluster is to be asked for about all objects that are wanted: workloads with what belongs to them, and those that traces tell of; of these the
    /// ones that can be meant, and those of their owners, by which some are found.
    pub fn kinds_of_all(&self, wanted: &ObjectFilter) -> Vec<(String, String)> {
        let all = workloads().chain(self.told());
        let Some(wanted) = &wanted.kind else { return ordered(all) };
        let owners = self.owner_kinds();
        let mut kinds: Vec<_> = all.filter(|(_, kind)| is_kind(kind, wanted)).collect();
        let (mut seen, mut at) = (HashSet::new(), 0);
        while let Some((_, kind)) = kinds.get(at).copied() {
            if seen.insert(kind) {
                kinds.extend(owners.get(kind).into_iter().flatten());
            }
            at += 1;
        }
        ordered(kinds)
    }

    /// What owns objects of a kind, as far as that is known.
    fn owner_kinds(&self) -> HashMap<&str, BTreeSet<(&str, &str)>> {
        let mut owners: HashMap<&str, BTreeSet<_>> = HashMap::new();
        for (workload, parts) in WORKLOADS {
            for (_, part) in parts {
                owners.entry(part).or_default().insert(workload);
            }
        }
        for (key, known) in &self.known {
            for parent in &known.parents {
                let version = self.known.get(parent).map_or("", |parent| parent.api_version.as_str());
                owners.entry(&key.kind).or_default().insert((version, &parent.kind));
            }
        }
        owners
    }

    /// The kinds that traces tell of, the last dealt with first.
    fn told(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.matching(&ObjectFilter::default()).into_iter();
        all.map(|(key, known)| (known.api_version.as_str(), key.kind.as_str()))
    }

    /// Those for an object and what belongs to it.
    fn kinds_below(&self, key: &Key, known: &Known) -> Vec<(String, String)> {
        let (mut kinds, mut open) = (Vec::new(), vec![tree(self, key, known)]);
        while let Some(node) = open.pop() {
            kinds.push((node.known.api_version.as_str(), node.key.kind.as_str()));
            kinds.extend(parts(&node.key.kind));
            open.extend(node.children);
        }
        ordered(kinds)
    }

    /// Adds what is in the cluster: which of the objects are there, what belongs to them, and those that are wanted even if no span tells of them.
    pub fn add_live(&mut self, live: &Live, is_wanted: impl Fn(&LiveObject) -> bool) {
        for (key, known) in &mut self.known {
            if live.seen.iter().any(|seen| seen.covers(key, known)) {
                known.live = Some(false);
            }
        }
        let (passed_over, mut waiting): (Vec<_>, Vec<_>) =
            live.objects.iter().partition(|object| object.key.kind == PASSED_OVER && !is_wanted(object));
        let passed_over: HashMap<_, _> = passed_over.into_iter().map(|object| (&object.key, object)).collect();
        for object in waiting.iter().filter(|object| is_wanted(object)) {
            self.entry(object.key.clone());
        }
        // Owners first: what they own is only shown below them.
        loop {
            let before = waiting.len();
            waiting.retain(|object| !self.add_owned(object, &passed_over));
            if waiting.len() == before {
                break;
            }
        }
        for object in &live.objects {
            let known = self.known.get_mut(&object.key);
            if let Some(known) = known.filter(|known| is_same_group(&known.api_version, &object.api_version)) {
                known.note_live(object);
            }
        }
    }

    /// Adds an object if its owner is known.
    fn add_owned(&mut self, object: &LiveObject, passed_over: &HashMap<&Key, &LiveObject>) -> bool {
        let Some(owner) = &object.owner else { return false };
        let owner = passed_over.get(owner).and_then(|between| between.owner.as_ref()).unwrap_or(owner);
        // Its namespace is the object's, if it has one: a reference does not say.
        let cluster_wide = Key { namespace: String::new(), ..owner.clone() };
        let Some(owner) = [owner, &cluster_wide].into_iter().find(|owner| self.known.contains_key(owner)) else {
            return false;
        };
        self.relate(owner, &object.key);
        true
    }
}

impl Known {
    fn note_live(&mut self, object: &LiveObject) {
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
        // Spans know it better, though not all of them say the uid.
        let is_told =
            |(uid, number): &(String, i64)| *number == stamp.generation && (uid.is_empty() || *uid == object.uid);
        if !self.generations.keys().any(is_told) {
            self.generations.insert((object.uid.clone(), stamp.generation), Generation::from(stamp));
        }
    }
}

impl From<&Stamp> for Generation {
    fn from(stamp: &Stamp) -> Self {
        let Stamp { start, duration, state, trace, span, .. } = *stamp;
        Self { start, duration, trace, span, cluster: Some(state), ..Self::default() }
    }
}

/// Kinds that can be asked for, by `apiVersion` and kind, each once. A cluster is asked for so many and no more, and whoever sends spans can name many: workloads and
/// pods come first.
fn ordered<'a>(kinds: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<(String, String)> {
    let mut seen = HashSet::new();
    let mut kinds: Vec<_> = kinds.into_iter().filter(|kind| !kind.0.is_empty() && seen.insert(*kind)).collect();
    kinds.sort_by_key(|kind| !workloads().any(|workload| workload == *kind));
    kinds.into_iter().map(|(version, kind)| (version.to_owned(), kind.to_owned())).collect()
}

fn workloads<'a>() -> impl Iterator<Item = (&'a str, &'a str)> {
    WORKLOADS.iter().map(|(workload, _)| *workload).chain([POD])
}

/// The kinds that belong to a workload.
fn parts(kind: &str) -> impl Iterator<Item = (&str, &str)> {
    let workload = WORKLOADS.iter().find(|((_, workload), _)| *workload == kind);
    workload.into_iter().flat_map(|(_, parts)| parts.iter().copied())
}
