//! Keeps compiled webhooks as new as their configurations.

use std::{collections::BTreeMap, sync::Arc};

use super::{Change, Feed};
use crate::{
    admission::{Configuration, Sort},
    api::GroupResource,
    core::Core,
    store::{ListQuery, Stored},
};

/// The compiled configurations of a sort, by name, and the revision of each.
#[derive(Debug)]
pub struct Webhooks {
    core: Arc<Core>,
    sort: Sort,
    collection: GroupResource,
    all: BTreeMap<Arc<str>, (u64, Configuration)>,
}

impl Webhooks {
    /// Everything that is configured now is in force when this returns: no request may come before.
    pub fn load(core: &Arc<Core>, sort: Sort) -> Self {
        let collection = match sort {
            Sort::Mutating => "mutatingwebhookconfigurations",
            Sort::Validating => "validatingwebhookconfigurations",
        };
        let collection = GroupResource::new("admissionregistration.k8s.io", collection);
        let mut webhooks = Self { core: Arc::clone(core), sort, collection, all: BTreeMap::new() };
        webhooks.list();
        webhooks
    }

    /// Follows the configurations. What did not change keeps its connections.
    pub async fn run(mut self) {
        let mut feed = Feed::new(&self.core.store, self.collection.clone());
        loop {
            match feed.next().await {
                // Never fewer than there are: while they come one by one, a request could slip through.
                Change::Reset => self.list(),
                Change::Set(stored) => {
                    self.set(&stored);
                    self.publish();
                }
                Change::Gone(stored) => {
                    self.all.remove(&stored.key.name);
                    self.publish();
                }
            }
        }
    }

    fn list(&mut self) {
        // The state of now can always be listed.
        let Ok(listed) = self.core.store.list(&self.collection, &ListQuery::default()) else { return };
        self.all.retain(|name, _| listed.items.iter().any(|stored| stored.key.name == *name));
        listed.items.iter().for_each(|stored| self.set(stored));
        self.publish();
    }

    fn set(&mut self, stored: &Stored) {
        // After a list, the feed may still tell of what is older.
        if self.all.get(&stored.key.name).is_none_or(|(revision, _)| *revision < stored.revision) {
            let compiled = Configuration::compile(&stored.value());
            self.all.insert(Arc::clone(&stored.key.name), (stored.revision, compiled));
        }
    }

    fn publish(&self) {
        self.core.admission.set(self.sort, self.all.values().map(|(_, configuration)| configuration));
    }
}
