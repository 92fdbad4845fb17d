//! All objects of a collection, and what happens to them.

use std::sync::Arc;

use crate::{
    api::GroupResource,
    store::{EventKind, Store, Stored, Watch, WatchError, WatchFrom},
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
            let Some(watch) = &mut self.watch else {
                match self.store.watch(&self.resource, WatchFrom::Start) {
                    Ok(watch) => self.watch = Some(watch),
                    // The start is never too old.
                    Err(WatchError::TooOld { .. }) => tokio::task::yield_now().await,
                }
                return Change::Reset;
            };
            match watch.next().await {
                Ok(event) if event.kind == EventKind::Deleted => return Change::Gone(Arc::clone(&event.object)),
                Ok(event) => return Change::Set(Arc::clone(&event.object)),
                // It was too slow: from the start again.
                Err(_) => self.watch = None,
            }
        }
    }
}
