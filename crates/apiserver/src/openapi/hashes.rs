//! The hashes of documents, kept while their resources are the same ones.
//!
//! The index names the hash of every document. Building all of them takes tens of milliseconds, and kubectl asks for the index
//! each time it starts; a hash takes some hundred bytes.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use crate::{api::GroupVersion, registry::Resource};

static HASHES: Mutex<BTreeMap<GroupVersion, Entry>> = Mutex::new(BTreeMap::new());

struct Entry {
    /// What the document is about. As long as this refers to a resource, no other one can have its address.
    resources: Vec<Weak<Resource>>,
    hash: String,
}

impl Entry {
    fn is_of(&self, resources: &[&Arc<Resource>]) -> bool {
        let mut pairs = self.resources.iter().zip(resources);
        self.resources.len() == resources.len() && pairs.all(|(weak, now)| weak.as_ptr() == Arc::as_ptr(now))
    }

    fn is_stale(&self) -> bool {
        self.resources.iter().all(|resource| resource.strong_count() == 0)
    }
}

/// The hash of the document about these resources, which `make` builds if it is not known.
pub(super) fn of(gv: &GroupVersion, resources: Vec<&Arc<Resource>>, make: impl FnOnce() -> String) -> String {
    let hashes = || HASHES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = hashes().get(gv).filter(|entry| entry.is_of(&resources)) {
        return known.hash.clone();
    }
    let hash = make();
    let resources = resources.into_iter().map(Arc::downgrade).collect();
    let mut hashes = hashes();
    hashes.retain(|_, entry| !entry.is_stale());
    hashes.insert(gv.clone(), Entry { resources, hash: hash.clone() });
    hash
}
