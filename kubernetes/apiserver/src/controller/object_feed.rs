//! A feed of the objects of a collection and their changes.

use std::sync::Arc;

use crate::{
    api::GroupResource,
    store::{EventKind, ObjectStore, StoreEvent, StoreWatch, Stored, WatchFrom},
};

#[derive(Clone, Debug)]
pub enum ObjectChange {
    /// Known objects may be outdated: every existing object follows as `Set`.
    Reset,
    /// An object exists, or has changed.
    Set(Arc<Stored>),
    /// An object was deleted; this is its last state.
    Deleted(Arc<Stored>),
}

/// Follows a collection, beginning with all existing objects.
#[derive(Debug)]
pub struct ObjectFeed {
    store: ObjectStore,
    resource: GroupResource,
    watch: Option<StoreWatch>,
}

impl ObjectFeed {
    pub fn new(store: &ObjectStore, resource: GroupResource) -> Self {
        Self { store: store.clone(), resource, watch: None }
    }

    pub async fn next(&mut self) -> ObjectChange {
        loop {
            let Some(watch) = &mut self.watch else { return self.start_watch() };
            match watch.next().await {
                Ok(event) => return ObjectChange::from_event(&event),
                // The watch has lagged: start again.
                Err(_) => self.watch = None,
            }
        }
    }

    /// The next change, if there is one already.
    pub fn try_next(&mut self) -> Option<ObjectChange> {
        let Some(watch) = &mut self.watch else { return Some(self.start_watch()) };
        match watch.try_next() {
            Ok(event) => event.map(|event| ObjectChange::from_event(&event)),
            Err(_) => Some(self.start_watch()),
        }
    }

    fn start_watch(&mut self) -> ObjectChange {
        // A watch from `Start` cannot be too old.
        self.watch = self.store.watch(&self.resource, WatchFrom::Start).ok();
        ObjectChange::Reset
    }
}

impl ObjectChange {
    fn from_event(event: &StoreEvent) -> Self {
        let object = Arc::clone(&event.object);
        if event.kind == EventKind::Deleted { Self::Deleted(object) } else { Self::Set(object) }
    }
}
