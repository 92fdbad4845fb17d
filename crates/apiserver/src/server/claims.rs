//! Which Service has which address and node port, as the store has it now.
//!
//! What is stored when somebody asks is known: the index catches up before it answers.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Mutex, PoisonError},
};

use crate::{
    api::{GroupResource, ObjectKey},
    controller::{Change, Feed},
    kinds::{Claim, Holder},
    store::{Store, Stored},
};

/// Knows it of this store.
pub fn holder(store: &Store) -> Holder {
    let feed = Feed::new(store, GroupResource::new("", "services"));
    let index = Mutex::new((feed, Index::default()));
    Box::new(move |claim| {
        // Nothing panics while it holds the lock.
        let mut index = index.lock().unwrap_or_else(PoisonError::into_inner);
        let (feed, index) = &mut *index;
        while let Some(change) = feed.try_next() {
            index.take(change);
        }
        index.holders.get(claim)?.values().next().cloned()
    })
}

#[derive(Debug, Default)]
struct Index {
    /// What each Service has, and since which revision.
    claims: HashMap<ObjectKey, BTreeMap<Claim, u64>>,
    /// In the order in which they got it, as far as it is known: at the start, that of their last changes.
    holders: HashMap<Claim, BTreeMap<u64, ObjectKey>>,
}

impl Index {
    fn take(&mut self, change: Change) {
        match change {
            Change::Reset => *self = Self::default(),
            Change::Set(service) => self.set(&service, Claim::all_of(&service.value())),
            Change::Gone(service) => self.set(&service, BTreeSet::new()),
        }
    }

    fn set(&mut self, service: &Stored, claims: BTreeSet<Claim>) {
        let mut had = self.claims.remove(&service.key).unwrap_or_default();
        let mut has = BTreeMap::new();
        for claim in claims {
            let since = had.remove(&claim).unwrap_or(service.revision);
            self.holders.entry(claim).or_default().insert(since, service.key.clone());
            has.insert(claim, since);
        }
        for (claim, since) in had {
            self.release(claim, since);
        }
        if !has.is_empty() {
            self.claims.insert(service.key.clone(), has);
        }
    }

    fn release(&mut self, claim: Claim, since: u64) {
        if let Some(holders) = self.holders.get_mut(&claim) {
            holders.remove(&since);
            if holders.is_empty() {
                self.holders.remove(&claim);
            }
        }
    }
}

#[cfg(test)]
mod tests;
