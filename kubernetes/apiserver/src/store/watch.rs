//! Watches: every event of a collection, in order, from a position in its history on.

use std::sync::Arc;

use tokio::sync::watch;

use super::{
    EventKind, StoreEvent,
    shared::SharedStore,
    state::{Collection, StoreState},
    tree::{ObjectTree, TreePosition},
};
use crate::api::GroupResource;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchFrom {
    Now,
    /// Start with the first write after this revision, which may be in the future.
    After(u64),
    /// Start with an `Added` for each existing object, in the order of a list, and continue with the next
    /// write.
    Start,
}

/// Why a watch cannot start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WatchError {
    /// The history does not reach back so far.
    #[error("too old resource version: {asked} ({oldest})")]
    TooOld {
        asked: u64,
        /// The oldest revision in the history.
        oldest: u64,
    },
}

/// The watcher has fallen behind: an event that it has not seen was trimmed. The error is permanent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too old resource version: {seen} ({oldest})")]
pub struct Lagged {
    /// The revision up to which the watcher has seen events.
    pub seen: u64,
    /// The oldest revision in the history.
    pub oldest: u64,
}

/// A position in the history of a collection. It copies nothing but a number and, while initial objects are
/// shown, the pointer of a snapshot.
#[derive(Debug)]
pub struct StoreWatch {
    shared: Arc<SharedStore>,
    /// The index of the collection.
    collection: usize,
    /// The objects that existed at the start, and the position of the next one to show.
    initial: Option<(ObjectTree, TreePosition)>,
    next: u64,
    /// Events up to this revision are not shown.
    after: u64,
    /// The revision of the newest event that was shown.
    shown: u64,
    news: watch::Receiver<()>,
}

impl StoreWatch {
    pub(super) fn start(
        shared: &Arc<SharedStore>,
        resource: &GroupResource,
        from: WatchFrom,
    ) -> Result<Self, WatchError> {
        let index = shared.ensure_collection(resource);
        let state = shared.state();
        let collection = state.collection_at(index);
        let oldest = state.oldest_revision(collection);
        let after = match from {
            WatchFrom::After(asked) if asked < oldest => return Err(WatchError::TooOld { asked, oldest }),
            WatchFrom::After(asked) => asked,
            WatchFrom::Now | WatchFrom::Start => state.revision,
        };
        let objects = collection.filter(|_| from == WatchFrom::Start).map(|collection| collection.objects.clone());
        let news = collection.map_or_else(|| watch::channel(()).1, |collection| collection.event_signal.subscribe());
        Ok(Self {
            shared: Arc::clone(shared),
            collection: index,
            initial: objects.map(|objects| (objects, TreePosition::default())),
            next: collection.map_or(0, |collection| collection.first_event_after(after)),
            after,
            shown: after,
            news,
        })
    }

    /// The next event, as soon as there is one. The future is cancel-safe.
    pub async fn next(&mut self) -> Result<Arc<StoreEvent>, Lagged> {
        loop {
            // Marked as seen before the check, so that an event after the check wakes this future.
            self.news.borrow_and_update();
            if let Some(event) = self.try_next()? {
                return Ok(event);
            }
            if self.news.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// The next event, if there is one already.
    pub fn try_next(&mut self) -> Result<Option<Arc<StoreEvent>>, Lagged> {
        if let Some(event) = self.next_initial() {
            return Ok(Some(event));
        }
        let state = self.shared.state();
        let Some(collection) = state.collection_at(self.collection) else { return Ok(None) };
        if self.next < collection.first {
            return Err(Lagged { seen: self.shown, oldest: state.oldest_revision(Some(collection)) });
        }
        while let Some(event) = collection.event(self.next) {
            self.next += 1;
            if event.revision > self.after {
                self.shown = event.revision;
                return Ok(Some(Arc::clone(event)));
            }
        }
        Ok(None)
    }

    /// An `Added` for the next initial object.
    fn next_initial(&mut self) -> Option<Arc<StoreEvent>> {
        let (objects, position) = self.initial.as_mut()?;
        let Some(object) = objects.get_at(*position).cloned() else {
            self.initial = None;
            return None;
        };
        *position = objects.next(*position);
        if objects.get_at(*position).is_none() {
            self.initial = None;
        }
        let revision = object.revision;
        Some(Arc::new(StoreEvent { kind: EventKind::Added, object, previous: None, revision }))
    }

    /// The number of initial objects that were not shown yet.
    pub fn remaining_initial(&self) -> usize {
        self.initial.as_ref().map_or(0, |(objects, position)| objects.len() - objects.rank(*position))
    }

    /// The revision at which the watch began: that of the state that `Start` shows.
    pub fn started(&self) -> u64 {
        self.after
    }

    /// A revision up to which all events of the collection were returned: the store's newest if no event is
    /// waiting. Zero while initial objects are still to be shown.
    pub fn seen(&self) -> u64 {
        if self.remaining_initial() > 0 {
            return 0;
        }
        let state = self.shared.state();
        let seen =
            state.collection_at(self.collection).map_or(self.shown, |collection| self.last_seen_in(&state, collection));
        seen.max(self.after)
    }

    fn last_seen_in(&self, state: &StoreState, collection: &Collection) -> u64 {
        match collection.event(self.next) {
            Some(waiting) => waiting.revision - 1,
            None if self.next == collection.next_event_number() => state.revision,
            None => self.shown,
        }
    }
}
