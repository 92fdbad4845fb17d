//! Kubernetes objects as traces describe them: the outcome of each generation, and which object created which.
//!
//! Spans name their object (`k8s.object.*`). `converge X` is a generation that reached its desired state;
//! `reconcile X` a run that worked on it; `apply X` or `create X` below a run creates an X that belongs to the
//! run's object. Other spans that name an object show that it exists, and when it was last referred to.

mod forest;
mod index_builder;
mod live_objects;
mod tree;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap},
};

use self::index_builder::ObjectIndexBuilder;
pub use self::{
    forest::{PlacedObject, build_forest},
    live_objects::{ListedKind, LiveObject, LiveObjects, ObjectStamp},
    tree::{ObjectNode, build_tree},
};
use super::ObjectFilter;
use crate::store::{SpanSubject, StoreSnapshot, TraceId};

/// Identity of an object. The `apiVersion` is not a part of it, because an object is served in several
/// versions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId {
    pub kind: String,
    /// Empty: cluster-scoped.
    pub namespace: String,
    pub name: String,
}

impl From<&SpanSubject> for ObjectId {
    fn from(object: &SpanSubject) -> Self {
        Self { kind: object.kind.clone(), namespace: object.namespace.clone(), name: object.name.clone() }
    }
}

/// The phase of an object, or of one of its generations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ConvergencePhase {
    /// The object has its desired state.
    Converged,
    /// Work on the object is under way.
    Converging,
    Failed,
    #[default]
    Unknown,
}

#[derive(Clone, Debug, Default)]
pub struct GenerationHistory {
    /// When a span first referred to it.
    pub start: u64,
    /// How long it took to converge.
    pub duration: Option<u64>,
    /// The trace to show: that of its convergence, else that of its first run.
    pub trace: Option<TraceId>,
    /// The convergence span.
    pub span: Option<u64>,
    /// Runs that worked on this generation.
    pub reconciles: usize,
    pub errors: usize,
    /// The phase according to the cluster, where no span tells it.
    pub cluster: Option<ConvergencePhase>,
    /// Start of the last run, and its error if it failed.
    last_run: Option<(u64, Option<String>)>,
}

impl GenerationHistory {
    pub fn state(&self) -> ConvergencePhase {
        match &self.last_run {
            _ if self.duration.is_some() => ConvergencePhase::Converged,
            Some((_, Some(_))) => ConvergencePhase::Failed,
            Some(_) => ConvergencePhase::Converging,
            None => self.cluster.unwrap_or(ConvergencePhase::Converging),
        }
    }

    /// The error of the last run, unless the generation has converged since.
    pub fn message(&self) -> Option<&str> {
        let failure = self.last_run.as_ref().and_then(|(_, failure)| failure.as_deref());
        failure.filter(|message| self.duration.is_none() && !message.is_empty())
    }
}

/// All that is known of an object.
#[derive(Clone, Debug, Default)]
pub struct ObjectHistory {
    /// Empty if no span named it.
    pub api_version: String,
    /// Empty if no span named it.
    pub uid: String,
    /// When it was last referred to, and in which trace.
    pub last: Option<(u64, TraceId)>,
    /// By uid and generation number: an object that is deleted and created again starts over.
    pub generations: BTreeMap<(String, i64), GenerationHistory>,
    pub parents: BTreeSet<ObjectId>,
    pub children: BTreeSet<ObjectId>,
    /// Whether the cluster has it now, if that is known.
    pub live: Option<bool>,
    /// Whether the last write of it failed.
    write_failed: bool,
}

impl ObjectHistory {
    /// The phase of its newest generation.
    pub fn state(&self) -> ConvergencePhase {
        match self.newest().first() {
            // The cluster's phase dates from before the failure.
            Some((_, generation)) if !self.write_failed || generation.cluster.is_none() => generation.state(),
            _ if self.write_failed => ConvergencePhase::Failed,
            _ => ConvergencePhase::Unknown,
        }
    }

    /// Generations, the newest first.
    pub fn newest(&self) -> Vec<(&(String, i64), &GenerationHistory)> {
        // Generations of one object are ordered by number, those of two objects of the same name by their last
        // activity.
        let mut last = HashMap::new();
        for ((uid, _), generation) in &self.generations {
            let last = last.entry(uid).or_insert(generation.start);
            *last = generation.start.max(*last);
        }
        let mut all: Vec<_> = self.generations.iter().collect();
        all.sort_by_key(|((uid, number), _)| Reverse((last.get(uid), uid, number)));
        all
    }
}

/// All objects that traces refer to.
#[derive(Clone, Debug, Default)]
pub struct ObjectIndex {
    histories: BTreeMap<ObjectId, ObjectHistory>,
}

impl ObjectIndex {
    pub fn from_snapshot(snapshot: &StoreSnapshot) -> Self {
        let mut reading = ObjectIndexBuilder::default();
        snapshot.traces.iter().for_each(|trace| reading.add_trace(trace));
        Self { histories: reading.finish() }
    }

    /// Finds one object. The kind may be written as for kubectl.
    pub fn find(&self, wanted: &ObjectFilter) -> Option<(&ObjectId, &ObjectHistory)> {
        self.matching(wanted).into_iter().next()
    }

    /// Objects that match, the most recently active first.
    pub fn matching(&self, wanted: &ObjectFilter) -> Vec<(&ObjectId, &ObjectHistory)> {
        let mut found: Vec<_> = self.histories.iter().filter(|(key, _)| wanted.matches_key(key)).collect();
        found.sort_by_key(|(_, known)| Reverse(known.last.map(|(start, _)| start)));
        found
    }

    pub fn get(&self, key: &ObjectId) -> Option<&ObjectHistory> {
        self.histories.get(key)
    }

    pub fn add_owner(&mut self, parent: &ObjectId, child: &ObjectId) {
        if parent != child {
            self.histories.entry(parent.clone()).or_default().children.insert(child.clone());
            self.histories.entry(child.clone()).or_default().parents.insert(parent.clone());
        }
    }

    fn entry(&mut self, key: ObjectId) -> &mut ObjectHistory {
        self.histories.entry(key).or_default()
    }
}

#[cfg(test)]
mod tests;
