//! What the cluster adds to what traces tell.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::{Generation, Key, Known, ObjectFilter, Objects, State, tree};
use crate::{query::filter::is_kind, store::TraceId};

/// What is in a cluster.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// The kinds of which all objects were seen.
    pub kinds: BTreeSet<String>,
    /// The objects.
    pub objects: Vec<LiveObject>,
    /// Kinds that it was not asked for, as there were too many.
    pub unasked: Vec<String>,
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
    /// Whether it names a trace. What only lies between others is passed over.
    pub fn names_trace(&self) -> bool {
        self.key.kind != PASSED_OVER && self.stamp.as_ref().is_some_and(|stamp| stamp.trace.is_some())
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

    /// The kinds that the cluster is to be asked for about all objects: workloads with what belongs to them, and those that traces tell of.
    pub fn kinds_of_all(&self) -> Vec<(String, String)> {
        ordered(workloads().chain(self.told()))
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
        let by_key: BTreeMap<&Key, &LiveObject> = live.objects.iter().map(|object| (&object.key, object)).collect();
        for (key, known) in self.known.iter_mut().filter(|(key, _)| live.kinds.contains(&key.kind)) {
            known.live = Some(by_key.contains_key(key));
        }
        for object in live.objects.iter().filter(|object| is_wanted(object)) {
            self.entry(object.key.clone());
        }
        // Owners first: what they own is only shown below them.
        let mut waiting: Vec<_> = live.objects.iter().filter(|object| object.key.kind != PASSED_OVER).collect();
        loop {
            let before = waiting.len();
            waiting.retain(|object| !self.add_owned(object, &by_key));
            if waiting.len() == before {
                break;
            }
        }
        for object in &live.objects {
            if let Some(known) = self.known.get_mut(&object.key) {
                known.note_live(object);
            }
        }
    }

    /// Adds an object if its owner is known.
    fn add_owned(&mut self, object: &LiveObject, all: &BTreeMap<&Key, &LiveObject>) -> bool {
        let Some(owner) = &object.owner else { return false };
        let owner = match all.get(owner).filter(|between| between.key.kind == PASSED_OVER) {
            Some(between) => between.owner.as_ref().unwrap_or(owner),
            None => owner,
        };
        if !self.known.contains_key(owner) {
            return false;
        }
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
