//! Kubernetes objects, as traces tell of them: what became of each generation, and which object made which.
//!
//! Spans say what they are about (`k8s.object.*`). `converge X` is a generation that became what it should be; `reconcile X` a run that worked on it; `apply X` or
//! `create X` below a run makes an X that belongs to the run's object. Spans of others who name an object tell that it exists, and when it was last dealt with.

mod forest;
mod live;
mod read;
mod tree;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap},
};

use self::read::Reading;
pub use self::{
    forest::{Placed, forest},
    live::{Live, LiveObject, Seen, Stamp},
    tree::{Node, tree},
};
use super::ObjectFilter;
use crate::store::{Object, Snapshot, TraceId};

/// What an object is called. Its `apiVersion` is no part of it: an object is served by several.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Its kind.
    pub kind: String,
    /// Its namespace; empty if it has none.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl From<&Object> for Key {
    fn from(object: &Object) -> Self {
        Self { kind: object.kind.clone(), namespace: object.namespace.clone(), name: object.name.clone() }
    }
}

/// How far an object, or one generation of it, is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It is what it should be.
    Converged,
    /// It is being worked on.
    Converging,
    /// The last attempt failed.
    Failed,
    /// Nobody said.
    #[default]
    Unknown,
}

/// One generation of an object.
#[derive(Clone, Debug, Default)]
pub struct Generation {
    /// When it was first dealt with.
    pub start: u64,
    /// How long it took to become what it should be.
    pub duration: Option<u64>,
    /// Where to look: the trace of its convergence, else that of its first run.
    pub trace: Option<TraceId>,
    /// The span of its convergence.
    pub span: Option<u64>,
    /// Runs that worked on it.
    pub reconciles: usize,
    /// Runs that failed.
    pub errors: usize,
    /// How far the cluster says that it is, where no span tells of it.
    pub cluster: Option<State>,
    /// When the last run began, and why it failed if it did.
    last_run: Option<(u64, Option<String>)>,
}

impl Generation {
    /// How far it is.
    pub fn state(&self) -> State {
        match &self.last_run {
            _ if self.duration.is_some() => State::Converged,
            Some((_, Some(_))) => State::Failed,
            Some(_) => State::Converging,
            None => self.cluster.unwrap_or(State::Converging),
        }
    }

    /// Why the last run failed, unless that is over.
    pub fn message(&self) -> Option<&str> {
        let failure = self.last_run.as_ref().and_then(|(_, failure)| failure.as_deref());
        failure.filter(|message| self.duration.is_none() && !message.is_empty())
    }
}

/// What is known of an object.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Its `apiVersion`, if that was said.
    pub api_version: String,
    /// Its uid, if that was said.
    pub uid: String,
    /// When it was last dealt with, and where.
    pub last: Option<(u64, TraceId)>,
    /// By uid and number: an object that is deleted and made again begins anew.
    pub generations: BTreeMap<(String, i64), Generation>,
    /// Who it belongs to.
    pub parents: BTreeSet<Key>,
    /// What belongs to it.
    pub children: BTreeSet<Key>,
    /// Whether it is in the cluster now, if that is known.
    pub live: Option<bool>,
    /// Whether the last attempt to write it failed.
    write_failed: bool,
}

impl Known {
    /// How far it is: as its newest generation.
    pub fn state(&self) -> State {
        match self.newest().first() {
            // What the cluster has is from before it failed.
            Some((_, generation)) if !self.write_failed || generation.cluster.is_none() => generation.state(),
            _ if self.write_failed => State::Failed,
            _ => State::Unknown,
        }
    }

    /// Its generations, the newest first.
    pub fn newest(&self) -> Vec<(&(String, i64), &Generation)> {
        // Of the same object the number counts, of two with one name when something was last done about it.
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

/// All objects that traces tell of.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    known: BTreeMap<Key, Known>,
}

impl Objects {
    /// Reads all traces.
    pub fn of(snapshot: &Snapshot) -> Self {
        let mut reading = Reading::default();
        snapshot.traces.iter().for_each(|trace| reading.read(trace));
        Self { known: reading.finish() }
    }

    /// What is known of one. The kind may be written as kubectl takes it.
    pub fn find(&self, wanted: &ObjectFilter) -> Option<(&Key, &Known)> {
        self.matching(wanted).into_iter().next()
    }

    /// What is known of those that match, the last dealt with first.
    pub fn matching(&self, wanted: &ObjectFilter) -> Vec<(&Key, &Known)> {
        let mut found: Vec<_> = self.known.iter().filter(|(key, _)| wanted.matches_key(key)).collect();
        found.sort_by_key(|(_, known)| Reverse(known.last.map(|(start, _)| start)));
        found
    }

    /// What is known of this one.
    pub fn get(&self, key: &Key) -> Option<&Known> {
        self.known.get(key)
    }

    /// One belongs to another.
    pub fn relate(&mut self, parent: &Key, child: &Key) {
        if parent != child {
            self.known.entry(parent.clone()).or_default().children.insert(child.clone());
            self.known.entry(child.clone()).or_default().parents.insert(parent.clone());
        }
    }

    fn entry(&mut self, key: Key) -> &mut Known {
        self.known.entry(key).or_default()
    }
}

#[cfg(test)]
mod tests;
