//! The hashes of documents, kept while their resources are the same.
//!
//! The index contains the hash of every document. Building all of them takes tens of milliseconds, and kubectl
//! requests the index each time it starts; a hash takes some hundred bytes.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use kubewake_runtime::lock::Mutex;

use crate::{api::GroupVersion, registry::ServedResource};

static HASHES: Mutex<BTreeMap<GroupVersion, CachedHash>> = Mutex::new(BTreeMap::new());

struct CachedHash {
    /// The resources of the document. As long as a weak reference exists, no other resource can have its
    /// address.
    resources: Vec<Weak<ServedResource>>,
    hash: String,
}

impl CachedHash {
    fn is_for_resources(&self, resources: &[&Arc<ServedResource>]) -> bool {
        let mut pairs = self.resources.iter().zip(resources);
        self.resources.len() == resources.len() && pairs.all(|(weak, now)| weak.as_ptr() == Arc::as_ptr(now))
    }

    fn is_stale(&self) -> bool {
        self.resources.iter().all(|resource| resource.strong_count() == 0)
    }
}

/// The hash of the document about these resources. If it is not known, `make` builds the document.
pub(super) fn document_hash(
    gv: &GroupVersion,
    resources: Vec<&Arc<ServedResource>>,
    make: impl FnOnce() -> String,
) -> String {
    let hashes = || HASHES.lock();
    if let Some(known) = hashes().get(gv).filter(|entry| entry.is_for_resources(&resources)) {
        return known.hash.clone();
    }
    let hash = make();
    let resources = resources.into_iter().map(Arc::downgrade).collect();
    let mut hashes = hashes();
    hashes.retain(|_, entry| !entry.is_stale());
    hashes.insert(gv.clone(), CachedHash { resources, hash: hash.clone() });
    hash
}
