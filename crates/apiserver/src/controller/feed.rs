//! All objects of a collection, and what happens to them.

use std::sync::Arc;

use crate::{
    api::GroupResource,
    store::{Event, EventKind, Store, Stored, Watch, WatchFrom},
};

/// What happened.
#[derive(Clone, Debug)]
pub enum Change {
    /// What was known is no longer certain: everything that exists follows as `Set`.
    Reset,
    /// An object is there, or has changed.
    Set(Arc<Stored>),
    /// An object is gone; this is what it was last.
    Gone(Arc<Stored>),
}

/// Follows a collection. It begins with everything that exists.
#[derive(Debug)]
pub struct Feed {
    store: Store,
    resource: GroupResource,
    watch: Option<Watch>,
}

impl Feed {
    /// Follows a collection.
    pub fn new(store: &Store, resource: GroupResource) -> Self {
        Self { store: store.clone(), resource, watch: None }
    }

    /// The next change, as soon as there is one.
    pub async fn next(&mut self) -> Change {
        loop {
            let Some(watch) = &mut self.watch else { return self.begin() };
            match watch.next().await {
                Ok(event) => return Change::of(&event),
                // It was too slow: from the start again.
                Err(_) => self.watch = None,
            }
        }
    }

    /// The next change, if there is one.
    pub fn try_next(&mut self) -> Option<Change> {
        let Some(watch) = &mut self.watch else { return Some(self.begin()) };
        match watch.try_next() {
            Ok(event) => event.map(|event| Change::of(&event)),
            Err(_) => Some(self.begin()),
        }
    }

    fn begin(&mut self) -> Change {
        // The start is never too old.
        self.watch = self.store.watch(&self.resource, WatchFrom::Start).ok();
        Change::Reset
    }
}

impl Change {
    fn of(event: &Event) -> Self {
        let object = Arc::clone(&event.object);
        if event.kind == EventKind::Deleted { Self::Gone(object) } else { Self::Set(object) }
    }
}
