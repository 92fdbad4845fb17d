//! The path of a write: checked and numbered under one lock, made durable, then published in the order of the
//! revisions.

use std::{
    collections::{HashSet, VecDeque},
    sync::{Arc, Condvar, MutexGuard, PoisonError, RwLockReadGuard, RwLockWriteGuard},
    time::Instant,
};

use kubewake_runtime::lock::{Mutex, RwLock};
use tokio::sync::{Notify, oneshot};

use super::{EventKind, Stored, WriteError, state::StoreState, stored::EncodedObject};
use crate::api::{GroupResource, ObjectKey};

/// The state that the store, its watches and its flusher share.
///
/// Lock order: `state` may be locked while `writer` is held, never the other way round.
#[derive(Debug)]
pub(super) struct SharedStore {
    state: RwLock<StoreState>,
    write_queue: Mutex<WriteQueue>,
    pub(super) work: Condvar,
    /// Wakes writers that wait for another write to the same object.
    flushed: Notify,
}

/// The state of writes before they are visible.
#[derive(Debug)]
pub(super) struct WriteQueue {
    /// The newest assigned revision, visible or not.
    last: u64,
    /// Whether a flusher makes writes durable before they become visible.
    durable: bool,
    /// The objects with a write in the queue or at the flusher: at most one each.
    in_flight: HashSet<ObjectKey>,
    /// Writes that the flusher has not taken yet, in the order of revisions.
    pub(super) queue: VecDeque<PendingWrite>,
    pub(super) closed: bool,
    /// A compaction has ended and the flusher has not handled it yet.
    pub(super) compacted: bool,
}

/// An accepted write that is not durable yet.
#[derive(Debug)]
pub(super) struct PendingWrite {
    pub(super) kind: EventKind,
    pub(super) object: Stored,
    pub(super) done: oneshot::Sender<Result<Arc<Stored>, WriteError>>,
}

pub(super) enum WriteIntent {
    Create(EncodedObject),
    Update(u64, EncodedObject),
    Delete(u64, Option<EncodedObject>),
}

enum WriteDecision {
    Unchanged(Arc<Stored>),
    Change(EventKind, EncodedObject),
}

enum WriteAttempt {
    /// Another write to the object is in flight.
    Busy(WriteIntent),
    Done(Arc<Stored>),
    Queued(oneshot::Receiver<Result<Arc<Stored>, WriteError>>),
}

impl SharedStore {
    pub(super) fn new(state: StoreState, durable: bool) -> Self {
        let writer = WriteQueue {
            last: state.revision,
            durable,
            in_flight: HashSet::new(),
            queue: VecDeque::new(),
            closed: false,
            compacted: false,
        };
        let state = RwLock::new(state);
        let write_queue = Mutex::new(writer);
        Self { state, write_queue, work: Condvar::new(), flushed: Notify::new() }
    }

    // No code panics while it holds a lock, so that a poisoned lock is valid.

    pub(super) fn state(&self) -> RwLockReadGuard<'_, StoreState> {
        self.state.read()
    }

    pub(super) fn state_mut(&self) -> RwLockWriteGuard<'_, StoreState> {
        self.state.write()
    }

    pub(super) fn lock_write_queue(&self) -> MutexGuard<'_, WriteQueue> {
        self.write_queue.lock()
    }

    /// Waits for work, for the flusher.
    pub(super) fn wait_for_writes<'a>(&self, writer: MutexGuard<'a, WriteQueue>) -> MutexGuard<'a, WriteQueue> {
        self.work.wait(writer).unwrap_or_else(PoisonError::into_inner)
    }

    /// The index of a collection, which is created if it does not exist.
    pub(super) fn ensure_collection(&self, resource: &GroupResource) -> usize {
        let known = self.state().collection_index(resource);
        known.unwrap_or_else(|| self.state_mut().ensure_collection(resource))
    }

    /// Writes, and returns when the write is durable and visible. An accepted write is carried out even if the
    /// future is dropped.
    pub(super) async fn write(&self, key: &ObjectKey, mut intent: WriteIntent) -> Result<Arc<Stored>, WriteError> {
        loop {
            // Registered before the check, so that a write that ends after the check wakes this one.
            let flushed = self.flushed.notified();
            match self.try_write(key, intent)? {
                WriteAttempt::Done(object) => return Ok(object),
                WriteAttempt::Queued(done) => return done.await.unwrap_or(Err(WriteError::Closed)),
                WriteAttempt::Busy(again) => intent = again,
            }
            flushed.await;
        }
    }

    fn try_write(&self, key: &ObjectKey, intent: WriteIntent) -> Result<WriteAttempt, WriteError> {
        let mut writer = self.lock_write_queue();
        if writer.closed {
            return Err(WriteError::Closed);
        }
        // Only one write is in flight per object, so that the next one is checked against the visible state.
        if writer.in_flight.contains(key) {
            return Ok(WriteAttempt::Busy(intent));
        }
        let (kind, encoded) = match intent.decide(self.state().get(key))? {
            WriteDecision::Unchanged(object) => return Ok(WriteAttempt::Done(object)),
            WriteDecision::Change(kind, encoded) => (kind, encoded),
        };
        writer.last += 1;
        let object = encoded.into_stored(key.clone(), writer.last);
        if !writer.durable {
            return Ok(WriteAttempt::Done(self.publish_one(kind, object)));
        }
        let (done, receiver) = oneshot::channel();
        writer.in_flight.insert(key.clone());
        writer.queue.push_back(PendingWrite { kind, object, done });
        drop(writer);
        self.work.notify_one();
        Ok(WriteAttempt::Queued(receiver))
    }

    fn publish_one(&self, kind: EventKind, object: Stored) -> Arc<Stored> {
        let object = Arc::new(object);
        let news = self.state_mut().apply(kind, Arc::clone(&object));
        if let Some(news) = news {
            news.send_replace(());
        }
        object
    }

    /// Makes durable writes visible, all at once, and answers their writers.
    pub(super) fn publish(&self, writes: Vec<PendingWrite>) {
        let now = Instant::now();
        let mut answers = Vec::with_capacity(writes.len());
        let mut woken: Vec<Arc<_>> = Vec::new();
        let mut state = self.state_mut();
        for PendingWrite { kind, mut object, done } in writes {
            object.committed = now;
            let object = Arc::new(object);
            if let Some(news) = state.apply(kind, Arc::clone(&object))
                && !woken.iter().any(|known| Arc::ptr_eq(known, &news))
            {
                woken.push(news);
            }
            answers.push((done, object));
        }
        drop(state);
        self.clear_in_flight(answers.iter().map(|(_, object)| &object.key));
        for news in woken {
            news.send_replace(());
        }
        for (done, object) in answers {
            // The writer may be gone.
            let _ = done.send(Ok(object));
        }
    }

    /// Answers writers whose writes could not be made durable, and were never visible.
    pub(super) fn fail_writes(&self, writes: Vec<PendingWrite>, why: &WriteError) {
        self.clear_in_flight(writes.iter().map(|write| &write.object.key));
        for write in writes {
            let _ = write.done.send(Err(why.clone()));
        }
    }

    fn clear_in_flight<'a>(&self, keys: impl Iterator<Item = &'a ObjectKey>) {
        let mut writer = self.lock_write_queue();
        for key in keys {
            writer.in_flight.remove(key);
        }
        drop(writer);
        self.flushed.notify_waiters();
    }
}

impl WriteIntent {
    /// Checks a write against the current object.
    fn decide(self, current: Option<&Arc<Stored>>) -> Result<WriteDecision, WriteError> {
        let expect = |expected: u64| match current {
            None => Err(WriteError::NotFound),
            Some(current) if current.revision != expected => Err(WriteError::Conflict { current: current.revision }),
            Some(current) => Ok(current),
        };
        match self {
            WriteIntent::Create(_) if current.is_some() => Err(WriteError::Exists),
            WriteIntent::Create(encoded) => Ok(WriteDecision::Change(EventKind::Added, encoded)),
            WriteIntent::Update(expected, encoded) => match expect(expected)? {
                current if encoded.is_same_as(current) => Ok(WriteDecision::Unchanged(Arc::clone(current))),
                _ => Ok(WriteDecision::Change(EventKind::Modified, encoded)),
            },
            WriteIntent::Delete(expected, last) => {
                let current = expect(expected)?;
                Ok(WriteDecision::Change(
                    EventKind::Deleted,
                    last.unwrap_or_else(|| EncodedObject::from_stored(current)),
                ))
            }
        }
    }
}
