//! Watches: every event of a collection, in order, from a place in its history on.

use std::sync::Arc;

use tokio::sync::watch;

use super::{
    Event, EventKind,
    shared::Shared,
    state::{Collection, State},
    tree::{Position, Tree},
};
use crate::api::GroupResource;

/// Where a watch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchFrom {
    /// With the next write.
    Now,
    /// With the first write after this revision, which may be in the future.
    After(u64),
    /// With an `Added` for everything that exists, in the order of a list, and then with the next write.
    Start,
}

/// Why there is no watch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WatchError {
    /// The history does not reach back so far.
    #[error("too old resource version: {asked} ({oldest})")]
    TooOld {
        /// The revision that was asked for.
        asked: u64,
        /// The oldest one that would do.
        oldest: u64,
    },
}

/// The watcher is so far behind that the history has lost an event that it has not seen. It stays so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too old resource version: {seen} ({oldest})")]
pub struct Lagged {
    /// What the watcher has seen.
    pub seen: u64,
    /// What it would have to have seen.
    pub oldest: u64,
}

/// A place in the history of a collection. It copies nothing: a snapshot of what existed, while that is shown, and a number.
#[derive(Debug)]
pub struct Watch {
    shared: Arc<Shared>,
    /// The index of the collection.
    collection: usize,
    /// What existed at the start, and how much of it was shown.
    initial: Option<(Tree, Position)>,
    /// The number of the next event.
    next: u64,
    /// Events up to this revision are not shown.
    after: u64,
    /// The newest event that was shown.
    shown: u64,
    news: watch::Receiver<()>,
}

impl Watch {
    pub(super) fn start(shared: &Arc<Shared>, resource: &GroupResource, from: WatchFrom) -> Result<Self, WatchError> {
        let index = shared.collection(resource);
        let state = shared.state();
        let collection = state.at(index);
        let oldest = state.oldest(collection);
        let after = match from {
            WatchFrom::After(asked) if asked < oldest => return Err(WatchError::TooOld { asked, oldest }),
            WatchFrom::After(asked) => asked,
            WatchFrom::Now | WatchFrom::Start => state.revision,
        };
        let objects = collection.filter(|_| from == WatchFrom::Start).map(|collection| collection.objects.clone());
        let news = collection.map_or_else(|| watch::channel(()).1, |collection| collection.news.subscribe());
        Ok(Self {
            shared: Arc::clone(shared),
            collection: index,
            initial: objects.map(|objects| (objects, Position::default())),
            next: collection.map_or(0, |collection| collection.after(after)),
            after,
            shown: after,
            news,
        })
    }

    /// The next event, as soon as there is one. Nothing is lost when the future is dropped.
    pub async fn next(&mut self) -> Result<Arc<Event>, Lagged> {
        loop {
            // Noted before looking, so that what comes after the look wakes us.
            self.news.borrow_and_update();
            if let Some(event) = self.try_next()? {
                return Ok(event);
            }
            if self.news.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// The next event, if there is one.
    pub fn try_next(&mut self) -> Result<Option<Arc<Event>>, Lagged> {
        if let Some(event) = self.next_initial() {
            return Ok(Some(event));
        }
        let state = self.shared.state();
        let Some(collection) = state.at(self.collection) else { return Ok(None) };
        if self.next < collection.first {
            return Err(Lagged { seen: self.shown, oldest: state.oldest(Some(collection)) });
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

    /// An `Added` for the next object of those that existed at the start.
    fn next_initial(&mut self) -> Option<Arc<Event>> {
        let (objects, position) = self.initial.as_mut()?;
        let Some(object) = objects.at(*position).cloned() else {
            self.initial = None;
            return None;
        };
        *position = objects.next(*position);
        if objects.at(*position).is_none() {
            self.initial = None;
        }
        let revision = object.revision;
        Some(Arc::new(Event { kind: EventKind::Added, object, previous: None, revision }))
    }

    /// How many objects that existed at the start are still to be shown.
    pub fn initial(&self) -> usize {
        self.initial.as_ref().map_or(0, |(objects, position)| objects.len() - objects.rank(*position))
    }

    /// The revision that the watch began at: of the state that `Start` shows.
    pub fn started(&self) -> u64 {
        self.after
    }

    /// A revision up to which all events of the collection were returned: the store's newest when nothing is waiting. Zero while
    /// objects that existed at the start are still to be shown.
    pub fn seen(&self) -> u64 {
        if self.initial() > 0 {
            return 0;
        }
        let state = self.shared.state();
        let seen = state.at(self.collection).map_or(self.shown, |collection| self.seen_of(&state, collection));
        seen.max(self.after)
    }

    fn seen_of(&self, state: &State, collection: &Collection) -> u64 {
        match collection.event(self.next) {
            Some(waiting) => waiting.revision - 1,
            None if self.next == collection.end() => state.revision,
            None => self.shown,
        }
    }
}
