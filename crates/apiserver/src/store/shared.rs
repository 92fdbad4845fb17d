//! How a write becomes visible: checked and numbered under one lock, made durable, then published in the order of the numbers.

use std::{
    collections::{HashSet, VecDeque},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
    time::Instant,
};

use tokio::sync::{Notify, oneshot};

use super::{EventKind, Stored, WriteError, state::State, stored::Encoded};
use crate::api::{GroupResource, ObjectKey};

/// What the store, its watches and its flusher share.
///
/// Locks: `writer` may be held while `state` is taken, never the other way round.
#[derive(Debug)]
pub(super) struct Shared {
    state: RwLock<State>,
    writer: Mutex<Writer>,
    /// Wakes the flusher.
    pub(super) work: Condvar,
    /// Wakes writers that wait for another write to the same object.
    flushed: Notify,
}

/// What writers take turns at.
#[derive(Debug)]
pub(super) struct Writer {
    /// The newest revision that was given to a write, visible or not.
    last: u64,
    /// Whether there is a flusher that makes writes durable before they are visible.
    durable: bool,
    /// The objects that have a write in the queue or at the flusher. There is one at most for each.
    in_flight: HashSet<ObjectKey>,
    /// What the flusher has not taken yet, in the order of revisions.
    pub(super) queue: VecDeque<Write>,
    pub(super) closed: bool,
    /// A compaction has ended and waits for the flusher.
    pub(super) compacted: bool,
}

/// A write that was accepted and waits to be durable.
#[derive(Debug)]
pub(super) struct Write {
    pub(super) kind: EventKind,
    pub(super) object: Stored,
    pub(super) done: oneshot::Sender<Result<Arc<Stored>, WriteError>>,
}

/// What a writer wants.
pub(super) enum Intent {
    Create(Encoded),
    Update(u64, Encoded),
    Delete(u64, Option<Encoded>),
}

enum Decision {
    Unchanged(Arc<Stored>),
    Change(EventKind, Encoded),
}

enum Attempt {
    /// Another write to the object is on its way.
    Busy(Intent),
    Done(Arc<Stored>),
    Queued(oneshot::Receiver<Result<Arc<Stored>, WriteError>>),
}

impl Shared {
    pub(super) fn new(state: State, durable: bool) -> Self {
        let writer = Writer {
            last: state.revision,
            durable,
            in_flight: HashSet::new(),
            queue: VecDeque::new(),
            closed: false,
            compacted: false,
        };
        let (state, writer) = (RwLock::new(state), Mutex::new(writer));
        Self { state, writer, work: Condvar::new(), flushed: Notify::new() }
    }

    // Nothing panics while it holds a lock, so that a poisoned one is as good as any.

    pub(super) fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn state_mut(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for work, as the flusher does.
    pub(super) fn wait<'a>(&self, writer: MutexGuard<'a, Writer>) -> MutexGuard<'a, Writer> {
        self.work.wait(writer).unwrap_or_else(PoisonError::into_inner)
    }

    /// The index of a collection, which is made if it is not there.
    pub(super) fn collection(&self, resource: &GroupResource) -> usize {
        let known = self.state().index(resource);
        known.unwrap_or_else(|| self.state_mut().make(resource))
    }

    /// Writes, and comes back when the write is durable and visible. A write that was accepted happens even if nobody waits.
    pub(super) async fn write(&self, key: &ObjectKey, mut intent: Intent) -> Result<Arc<Stored>, WriteError> {
        loop {
            // Made before the look, so that what ends after the look wakes us.
            let flushed = self.flushed.notified();
            match self.attempt(key, intent)? {
                Attempt::Done(object) => return Ok(object),
                Attempt::Queued(done) => return done.await.unwrap_or(Err(WriteError::Closed)),
                Attempt::Busy(again) => intent = again,
            }
            flushed.await;
        }
    }

    fn attempt(&self, key: &ObjectKey, intent: Intent) -> Result<Attempt, WriteError> {
        let mut writer = self.writer();
        if writer.closed {
            return Err(WriteError::Closed);
        }
        // With one write at a time for each object, what is visible is what the next write is checked against.
        if writer.in_flight.contains(key) {
            return Ok(Attempt::Busy(intent));
        }
        let (kind, encoded) = match intent.decide(self.state().get(key))? {
            Decision::Unchanged(object) => return Ok(Attempt::Done(object)),
            Decision::Change(kind, encoded) => (kind, encoded),
        };
        writer.last += 1;
        let object = encoded.at(key.clone(), writer.last);
        if !writer.durable {
            return Ok(Attempt::Done(self.publish_one(kind, object)));
        }
        let (done, receiver) = oneshot::channel();
        writer.in_flight.insert(key.clone());
        writer.queue.push_back(Write { kind, object, done });
        drop(writer);
        self.work.notify_one();
        Ok(Attempt::Queued(receiver))
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
    pub(super) fn publish(&self, writes: Vec<Write>) {
        let now = Instant::now();
        let mut answers = Vec::with_capacity(writes.len());
        let mut woken: Vec<Arc<_>> = Vec::new();
        let mut state = self.state_mut();
        for Write { kind, mut object, done } in writes {
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
        self.land(answers.iter().map(|(_, object)| &object.key));
        for news in woken {
            news.send_replace(());
        }
        for (done, object) in answers {
            // Nobody may be waiting any more.
            let _ = done.send(Ok(object));
        }
    }

    /// Answers writers whose writes could not be made durable. They were never visible.
    pub(super) fn refuse(&self, writes: Vec<Write>, why: &WriteError) {
        self.land(writes.iter().map(|write| &write.object.key));
        for write in writes {
            let _ = write.done.send(Err(why.clone()));
        }
    }

    fn land<'a>(&self, keys: impl Iterator<Item = &'a ObjectKey>) {
        let mut writer = self.writer();
        for key in keys {
            writer.in_flight.remove(key);
        }
        drop(writer);
        self.flushed.notify_waiters();
    }
}

impl Intent {
    /// Checks what is wanted against what is there.
    fn decide(self, current: Option<&Arc<Stored>>) -> Result<Decision, WriteError> {
        let expect = |expected: u64| match current {
            None => Err(WriteError::NotFound),
            Some(current) if current.revision != expected => Err(WriteError::Conflict { current: current.revision }),
            Some(current) => Ok(current),
        };
        match self {
            Intent::Create(_) if current.is_some() => Err(WriteError::Exists),
            Intent::Create(encoded) => Ok(Decision::Change(EventKind::Added, encoded)),
            Intent::Update(expected, encoded) => match expect(expected)? {
                current if encoded.is_same_as(current) => Ok(Decision::Unchanged(Arc::clone(current))),
                _ => Ok(Decision::Change(EventKind::Modified, encoded)),
            },
            Intent::Delete(expected, last) => {
                let current = expect(expected)?;
                Ok(Decision::Change(EventKind::Deleted, last.unwrap_or_else(|| Encoded::again(current))))
            }
        }
    }
}
