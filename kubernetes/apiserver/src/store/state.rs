//! The visible state: objects, history and the revision, changed only by [`StoreState::apply`], one write at a
//! time.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use tokio::sync::watch;

use super::{EventKind, StoreEvent, Stored, tree::ObjectTree};
use crate::api::{GroupResource, ObjectKey};

#[derive(Debug)]
pub(super) struct StoreState {
    /// The newest visible revision, in any collection.
    pub(super) revision: u64,
    /// History begins after this revision in collections without trimmed events.
    floor: u64,
    limit: usize,
    pub(super) history_bytes: usize,
    pub(super) objects: usize,
    pub(super) bytes: usize,
    /// Collections are never removed: one costs some hundred bytes, and each was served once.
    collections: Vec<Collection>,
    index: HashMap<GroupResource, usize>,
    /// The collection of each event, in the order of revisions: the first one has the oldest event.
    order: VecDeque<usize>,
}

/// The objects and the history of one resource.
#[derive(Debug)]
pub(super) struct Collection {
    pub(super) resource: GroupResource,
    pub(super) objects: ObjectTree,
    /// Events in the order of their revisions.
    pub(super) events: VecDeque<Arc<StoreEvent>>,
    /// The number of the first event in `events`, counted from the start of the process.
    pub(super) first: u64,
    /// The revision of the newest event that was trimmed.
    floor: u64,
    pub(super) event_signal: Arc<watch::Sender<()>>,
}

impl StoreState {
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

    /// Adds an object without an event, when a store is opened.
    pub(super) fn restore(&mut self, object: Stored) {
        self.objects += 1;
        self.bytes += object.memory_size();
        let at = self.ensure_collection(&object.key.resource);
        if let Some(collection) = self.collections.get_mut(at) {
            collection.objects.insert(Arc::new(object));
        }
    }

    pub(super) fn get(&self, key: &ObjectKey) -> Option<&Arc<Stored>> {
        self.collection(&key.resource)?.objects.get(super::tree::NamespacedName::from_key(key))
    }

    pub(super) fn collections(&self) -> &[Collection] {
        &self.collections
    }

    pub(super) fn collection_at(&self, index: usize) -> Option<&Collection> {
        self.collections.get(index)
    }

    pub(super) fn collection_index(&self, resource: &GroupResource) -> Option<usize> {
        self.index.get(resource).copied()
    }

    pub(super) fn collection(&self, resource: &GroupResource) -> Option<&Collection> {
        self.collection_at(self.collection_index(resource)?)
    }

    /// The oldest revision at which a collection can be listed.
    pub(super) fn oldest_revision(&self, collection: Option<&Collection>) -> u64 {
        self.floor.max(collection.map_or(0, |collection| collection.floor))
    }

    /// The index of a collection, which is created if it does not exist.
    pub(super) fn ensure_collection(&mut self, resource: &GroupResource) -> usize {
        if let Some(index) = self.index.get(resource) {
            return *index;
        }
        let index = self.collections.len();
        self.index.insert(resource.clone(), index);
        self.collections.push(Collection::new(resource.clone()));
        index
    }

    /// Makes a write visible. Writes come in the order of their revisions. Returns the channel that wakes the
    /// watchers, to be used after the lock was released.
    pub(super) fn apply(&mut self, kind: EventKind, object: Arc<Stored>) -> Option<Arc<watch::Sender<()>>> {
        let at = self.ensure_collection(&object.key.resource);
        let collection = self.collections.get_mut(at)?;
        let previous = match kind {
            EventKind::Deleted => collection.objects.remove(object.namespaced_name()),
            _ => collection.objects.insert(Arc::clone(&object)),
        };
        if let Some(previous) = &previous {
            self.objects -= 1;
            self.bytes -= previous.memory_size();
        }
        if kind != EventKind::Deleted {
            self.objects += 1;
            self.bytes += object.memory_size();
        }
        self.revision = object.revision;
        let event = StoreEvent { kind, revision: object.revision, object, previous };
        self.history_bytes += event.history_cost();
        collection.events.push_back(Arc::new(event));
        let news = Arc::clone(&collection.event_signal);
        self.order.push_back(at);
        self.trim();
        Some(news)
    }

    /// Drops the oldest events, of any collection, until the history is within its limit. The newest event
    /// stays, so that a watcher that keeps up sees even an event that is larger than the limit.
    fn trim(&mut self) {
        while self.history_bytes > self.limit && self.order.len() > 1 {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        let oldest = self.order.pop_front().and_then(|at| self.collections.get_mut(at));
        if let Some(event) = oldest.and_then(Collection::drop_oldest) {
            self.history_bytes -= event.history_cost();
        }
    }

    /// Drops all events.
    pub(super) fn clear_history(&mut self) {
        while !self.order.is_empty() {
            self.drop_oldest();
        }
        self.floor = self.revision;
    }
}

impl Collection {
    fn new(resource: GroupResource) -> Self {
        let event_signal = Arc::new(watch::Sender::new(()));
        Self { resource, objects: ObjectTree::default(), events: VecDeque::new(), first: 0, floor: 0, event_signal }
    }

    /// The number of the next event.
    pub(super) fn next_event_number(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    /// The number of the first event after a revision.
    pub(super) fn first_event_after(&self, revision: u64) -> u64 {
        self.first + self.events.partition_point(|event| event.revision <= revision) as u64
    }

    pub(super) fn event(&self, number: u64) -> Option<&Arc<StoreEvent>> {
        self.events.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    fn drop_oldest(&mut self) -> Option<Arc<StoreEvent>> {
        let event = self.events.pop_front()?;
        self.first += 1;
        self.floor = event.revision;
        Some(event)
    }
}
