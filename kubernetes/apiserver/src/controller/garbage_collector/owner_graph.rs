//! The graph of owners and dependents.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use crate::{
    api::{GroupResource, ObjectKey},
    store::Stored,
};

/// The graph of owners and dependents, by uid. It may be behind the store; it only tells which objects to look
/// at.
#[derive(Debug, Default)]
pub(super) struct OwnerGraph {
    /// Objects with owners or dependents.
    nodes: HashMap<ObjectKey, GraphNode>,
    dependents: HashMap<Arc<str>, HashSet<ObjectKey>>,
    keys: HashMap<Arc<str>, ObjectKey>,
}

#[derive(Debug)]
struct GraphNode {
    uid: Arc<str>,
    owners: Box<[Arc<str>]>,
}

impl OwnerGraph {
    pub(super) fn insert(&mut self, object: &Stored) {
        self.remove(&object.key);
        for owner in &object.owners {
            self.dependents.entry(Arc::clone(owner)).or_default().insert(object.key.clone());
        }
        self.keys.insert(Arc::clone(&object.uid), object.key.clone());
        let node = GraphNode { uid: Arc::clone(&object.uid), owners: object.owners.clone() };
        self.nodes.insert(object.key.clone(), node);
    }

    /// Removes an object; returns the uids of its owners.
    pub(super) fn remove(&mut self, key: &ObjectKey) -> Box<[Arc<str>]> {
        let Some(node) = self.nodes.remove(key) else { return Box::default() };
        self.keys.remove(&node.uid);
        for owner in &node.owners {
            if let Some(dependents) = self.dependents.get_mut(owner) {
                dependents.remove(key);
                if dependents.is_empty() {
                    self.dependents.remove(owner);
                }
            }
        }
        node.owners
    }

    /// The known objects of a collection, by key and uid.
    pub(super) fn objects_in_collection(&self, resource: &GroupResource) -> Vec<(ObjectKey, Arc<str>)> {
        let nodes = self.nodes.iter().filter(|(key, _)| key.resource == *resource);
        nodes.map(|(key, node)| (key.clone(), Arc::clone(&node.uid))).collect()
    }

    /// The objects that have this uid as an owner.
    pub(super) fn dependents(&self, uid: &str) -> Vec<ObjectKey> {
        self.dependents.get(uid).into_iter().flatten().cloned().collect()
    }

    /// The key of the object with this uid.
    pub(super) fn key_of(&self, uid: &str) -> Option<ObjectKey> {
        self.keys.get(uid).cloned()
    }
}
