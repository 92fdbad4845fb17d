//! An index of the addresses and node ports of stored Services.
//!
//! Every write before a look-up is included: the index catches up with the store before it answers.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use kubewake_runtime::lock::Mutex;

use crate::{
    api::{GroupResource, ObjectKey},
    controller::{ObjectChange, ObjectFeed},
    kinds::{AllocationLookup, ServiceAllocation},
    store::{ObjectStore, Stored},
};

/// A look-up in the index of this store.
pub fn holder(store: &ObjectStore) -> AllocationLookup {
    let feed = ObjectFeed::new(store, GroupResource::new("", "services"));
    let index = Mutex::new((feed, AllocationIndex::default()));
    Box::new(move |claim| {
        // No code panics while it holds the lock.
        let mut index = index.lock();
        let (feed, index) = &mut *index;
        while let Some(change) = feed.try_next() {
            index.apply_change(change);
        }
        index.holders.get(claim)?.values().next().cloned()
    })
}

#[derive(Debug, Default)]
struct AllocationIndex {
    /// The allocations of each Service, and since which revision.
    claims: HashMap<ObjectKey, BTreeMap<ServiceAllocation, u64>>,
    /// The holders of each allocation in the order in which they got it, as far as known: at the start, that of
    /// their last changes.
    holders: HashMap<ServiceAllocation, BTreeMap<u64, ObjectKey>>,
}

impl AllocationIndex {
    fn apply_change(&mut self, change: ObjectChange) {
        match change {
            ObjectChange::Reset => *self = Self::default(),
            ObjectChange::Set(service) => {
                self.set(&service, ServiceAllocation::allocations_of_service(&service.value()))
            }
            ObjectChange::Deleted(service) => self.set(&service, BTreeSet::new()),
        }
    }

    fn set(&mut self, service: &Stored, claims: BTreeSet<ServiceAllocation>) {
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

    fn release(&mut self, claim: ServiceAllocation, since: u64) {
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
