//! What the cluster adds to what traces tell.

use std::collections::{BTreeMap, BTreeSet};

use super::{Key, Known, Objects, tree};

/// What is in a cluster.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// The kinds of which all objects were seen.
    pub kinds: BTreeSet<String>,
    /// The objects.
    pub objects: Vec<LiveObject>,
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
}

/// Workloads, whose pods no trace need tell of, with what lies between.
const WORKLOADS: [(&str, &[(&str, &str)]); 5] = [
    ("Deployment", &[("apps/v1", "ReplicaSet"), ("v1", "Pod")]),
    ("ReplicaSet", &[("v1", "Pod")]),
    ("StatefulSet", &[("v1", "Pod")]),
    ("DaemonSet", &[("v1", "Pod")]),
    ("Job", &[("v1", "Pod")]),
];
/// It comes and goes with each version of its Deployment, and says nothing that the Deployment does not.
const PASSED_OVER: &str = "ReplicaSet";

impl Objects {
    /// The kinds that the cluster is to be asked for about an object and what belongs to it, by `apiVersion` and kind.
    pub fn kinds_below(&self, key: &Key, known: &Known) -> BTreeSet<(String, String)> {
        let mut kinds = BTreeSet::new();
        let mut open = vec![tree(self, key, known)];
        while let Some(node) = open.pop() {
            if !node.known.api_version.is_empty() {
                kinds.insert((node.known.api_version.clone(), node.key.kind.clone()));
            }
            let workload = WORKLOADS.iter().find(|(kind, _)| *kind == node.key.kind);
            let parts = workload.into_iter().flat_map(|(_, parts)| *parts);
            kinds.extend(parts.map(|(version, kind)| ((*version).to_owned(), (*kind).to_owned())));
            open.extend(node.children);
        }
        kinds
    }

    /// Adds what is in the cluster: which of the objects are there, and what belongs to them.
    pub fn add_live(&mut self, live: &Live) {
        let by_key: BTreeMap<&Key, &LiveObject> = live.objects.iter().map(|object| (&object.key, object)).collect();
        for (key, known) in self.known.iter_mut().filter(|(key, _)| live.kinds.contains(&key.kind)) {
            known.live = Some(by_key.contains_key(key));
        }
        // Owners first: what they own is only shown below them.
        let mut waiting: Vec<_> = live.objects.iter().filter(|object| object.key.kind != PASSED_OVER).collect();
        loop {
            let before = waiting.len();
            waiting.retain(|object| !self.add_owned(object, &by_key));
            if waiting.len() == before {
                return;
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
        let known = self.entry(object.key.clone());
        known.live = Some(true);
        for (field, said) in [(&mut known.api_version, &object.api_version), (&mut known.uid, &object.uid)] {
            if field.is_empty() {
                field.clone_from(said);
            }
        }
        true
    }
}
