//! What is visible: objects, history and the revision, changed only by [`State::apply`], one write after the other.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use tokio::sync::watch;

use super::{Event, EventKind, Stored, tree::Tree};
use crate::api::{GroupResource, ObjectKey};

/// Everything that readers see.
#[derive(Debug)]
pub(super) struct State {
    /// The newest write that is visible, in any collection.
    pub(super) revision: u64,
    /// History begins after this revision in collections that nothing was trimmed from.
    floor: u64,
    limit: usize,
    pub(super) history_bytes: usize,
    pub(super) objects: usize,
    pub(super) bytes: usize,
    /// They are never removed: one costs some hundred bytes, and each was served once.
    collections: Vec<Collection>,
    index: HashMap<GroupResource, usize>,
    /// The collections of all events in the order of their revisions: whose event is the oldest.
    order: VecDeque<usize>,
}

/// The objects and the history of one resource.
#[derive(Debug)]
pub(super) struct Collection {
    pub(super) resource: GroupResource,
    pub(super) objects: Tree,
    /// In the order of their revisions.
    pub(super) events: VecDeque<Arc<Event>>,
    /// The number of the first event in `events`, counted from the start of the process.
    pub(super) first: u64,
    /// The revision of the newest event that was trimmed.
    floor: u64,
    /// Wakes the watchers.
    pub(super) news: Arc<watch::Sender<()>>,
}

impl State {
    /// A state without objects and history.
    pub(super) fn new(revision: u64, limit: usize) -> Self {
        Self {
            revision,
            floor: revision,
            limit,
            history_bytes: 0,
            objects: 0,
            bytes: 0,
            collections: Vec::new(),
            index: HashMap::new(),
            order: VecDeque::new(),
        }
    }

    /// Puts an object in its place without an event, as it is when a store is opened.
    pub(super) fn restore(&mut self, object: Stored) {
        self.objects += 1;
        self.bytes += object.size();
        let at = self.make(&object.key.resource);
        if let Some(collection) = self.collections.get_mut(at) {
            collection.objects.insert(Arc::new(object));
        }
    }

    pub(super) fn get(&self, key: &ObjectKey) -> Option<&Arc<Stored>> {
        self.named(&key.resource)?.objects.get(super::tree::Place::of(key))
    }

    pub(super) fn all(&self) -> &[Collection] {
        &self.collections
    }

    pub(super) fn at(&self, index: usize) -> Option<&Collection> {
        self.collections.get(index)
    }

    pub(super) fn index(&self, resource: &GroupResource) -> Option<usize> {
        self.index.get(resource).copied()
    }

    pub(super) fn named(&self, resource: &GroupResource) -> Option<&Collection> {
        self.at(self.index(resource)?)
    }

    /// The oldest revision that a collection can be shown at.
    pub(super) fn oldest(&self, collection: Option<&Collection>) -> u64 {
        self.floor.max(collection.map_or(0, |collection| collection.floor))
    }

    /// The index of a collection, which is made if it is not there.
    pub(super) fn make(&mut self, resource: &GroupResource) -> usize {
        if let Some(index) = self.index.get(resource) {
            return *index;
        }
        let index = self.collections.len();
        self.index.insert(resource.clone(), index);
        self.collections.push(Collection::new(resource.clone()));
        index
    }

    /// Makes a write visible. Writes come in the order of their revisions. Gives the channel that wakes the watchers, to be used
    /// when the state is no longer locked.
    pub(super) fn apply(&mut self, kind: EventKind, object: Arc<Stored>) -> Option<Arc<watch::Sender<()>>> {
        let at = self.make(&object.key.resource);
        let collection = self.collections.get_mut(at)?;
        let previous = match kind {
            EventKind::Deleted => collection.objects.remove(object.place()),
            _ => collection.objects.insert(Arc::clone(&object)),
        };
        if let Some(previous) = &previous {
            self.objects -= 1;
            self.bytes -= previous.size();
        }
        if kind != EventKind::Deleted {
            self.objects += 1;
            self.bytes += object.size();
        }
        self.revision = object.revision;
        let event = Event { kind, revision: object.revision, object, previous };
        self.history_bytes += event.charge();
        collection.events.push_back(Arc::new(event));
        let news = Arc::clone(&collection.news);
        self.order.push_back(at);
        self.trim();
        Some(news)
    }

    /// Drops the oldest events, of whatever collection, until the history is within its limit. The newest event stays, so that a
    /// watcher that keeps up sees even what is larger than the limit.
    fn trim(&mut self) {
        while self.history_bytes > self.limit && self.order.len() > 1 {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        let oldest = self.order.pop_front().and_then(|at| self.collections.get_mut(at));
        if let Some(event) = oldest.and_then(Collection::drop_oldest) {
            self.history_bytes -= event.charge();
        }
    }

    /// Drops all events: history begins now.
    pub(super) fn forget(&mut self) {
        while !self.order.is_empty() {
            self.drop_oldest();
        }
        self.floor = self.revision;
    }
}

impl Collection {
    fn new(resource: GroupResource) -> Self {
        let news = Arc::new(watch::Sender::new(()));
        Self { resource, objects: Tree::default(), events: VecDeque::new(), first: 0, floor: 0, news }
    }

    /// The number that the next event will have.
    pub(super) fn end(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    /// The number of the first event after a revision.
    pub(super) fn after(&self, revision: u64) -> u64 {
        self.first + self.events.partition_point(|event| event.revision <= revision) as u64
    }

    /// An event by its number.
    pub(super) fn event(&self, number: u64) -> Option<&Arc<Event>> {
        self.events.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    fn drop_oldest(&mut self) -> Option<Arc<Event>> {
        let event = self.events.pop_front()?;
        self.first += 1;
        self.floor = event.revision;
        Some(event)
    }
}
