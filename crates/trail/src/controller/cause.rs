//! Why an object is to be reconciled: noted when an event arrives, taken when the run begins.
//!
//! kube's queue joins requests for the same object and tells the reconciler nothing about them. So the same events are noted here by object, joined in
//! the same way: the first reason and the earliest arrival count, and every related object's context is kept, up to a limit.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use opentelemetry::trace::SpanContext;

use super::{queue::Queue, relation::MAX_LINKS};

/// What led to a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Reason {
    /// Somebody else's controller runs this, and does not say.
    #[default]
    Unknown,
    /// The object was there when the controller started.
    InitialList,
    ObjectUpdated,
    RelatedObjectUpdated,
    /// The run before asked for another.
    Requeue,
    /// The run before failed.
    Retry,
    /// Everything is to be looked at.
    Bulk,
}

impl Reason {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::InitialList => "initial_list",
            Self::ObjectUpdated => "object_updated",
            Self::RelatedObjectUpdated => "related_object_updated",
            Self::Requeue => "requeue",
            Self::Retry => "retry",
            Self::Bulk => "bulk",
        }
    }
}

/// What is known about why a run begins.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cause {
    pub(crate) reason: Reason,
    /// The object, or a related one, was there when the controller started, whatever happened since.
    pub(crate) listed: bool,
    /// When the first event arrived.
    pub(crate) arrived: Option<Instant>,
    /// The first related object, as `Kind/namespace/name`.
    pub(crate) related: Option<String>,
    /// Contexts on related objects.
    pub(crate) contexts: Vec<SpanContext>,
}

impl Cause {
    /// Whether the object may have been there before this process was: who does not know why a run begins does not know that either.
    pub(crate) fn may_be_older_than_us(&self) -> bool {
        self.listed || self.reason == Reason::Unknown
    }

    /// How long ago the first event arrived.
    pub(crate) fn waited(&self) -> Option<Duration> {
        self.arrived.map(|arrived| Instant::now().saturating_duration_since(arrived))
    }
}

/// An object of the controller's kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
}

/// Notes by object.
#[derive(Debug, Default)]
pub(crate) struct Causes {
    notes: Mutex<HashMap<Key, Cause>>,
    queue: OnceLock<Box<dyn Queue>>,
}

impl Causes {
    /// From now on this is told what waits. Whoever comes second is told nothing.
    pub(crate) fn observe(&self, queue: impl Queue) {
        let _ = self.queue.set(Box::new(queue));
    }

    /// Whether somebody is told.
    pub(crate) fn is_observed(&self) -> bool {
        self.queue.get().is_some()
    }

    pub(crate) fn note(&self, key: Key, new: Cause) {
        let mut notes = self.notes();
        let Some(cause) = notes.get_mut(&key) else {
            notes.insert(key, new);
            self.tell(&notes);
            return;
        };
        cause.listed |= new.listed;
        if cause.reason == Reason::InitialList && new.reason != Reason::InitialList {
            // Something happened since: this is not only the start any more.
            cause.reason = new.reason;
            cause.related = new.related;
        }
        for context in new.contexts {
            if cause.contexts.len() < MAX_LINKS && !cause.contexts.contains(&context) {
                cause.contexts.push(context);
            }
        }
    }

    /// A run begins.
    pub(crate) fn take(&self, key: &Key) -> Option<Cause> {
        let cause = self.forget(key)?;
        if let (Some(queue), Some(waited)) = (self.queue.get(), cause.waited()) {
            queue.begins(waited);
        }
        Some(cause)
    }

    /// There will be no run.
    pub(crate) fn forget(&self, key: &Key) -> Option<Cause> {
        let mut notes = self.notes();
        let cause = notes.remove(key)?;
        self.tell(&notes);
        Some(cause)
    }

    /// Told while nobody else can note anything, so that the last that is told is so.
    fn tell(&self, notes: &HashMap<Key, Cause>) {
        if let Some(queue) = self.queue.get() {
            queue.waits(notes.len());
        }
    }

    fn notes(&self) -> MutexGuard<'_, HashMap<Key, Cause>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::parse;

    fn key() -> Key {
        Key { namespace: None, name: "a".to_owned() }
    }

    fn cause(reason: Reason, contexts: &[SpanContext]) -> Cause {
        let listed = reason == Reason::InitialList;
        Cause { reason, listed, contexts: contexts.to_vec(), ..Cause::default() }
    }

    #[test]
    fn causes_are_joined_until_a_run_takes_them() {
        let causes = Causes::default();
        let context = parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", None).unwrap();
        causes.note(key(), cause(Reason::ObjectUpdated, &[]));
        causes.note(key(), cause(Reason::RelatedObjectUpdated, std::slice::from_ref(&context)));
        causes.note(key(), cause(Reason::RelatedObjectUpdated, std::slice::from_ref(&context)));
        let joined = causes.take(&key()).unwrap();
        assert_eq!((joined.reason, joined.contexts), (Reason::ObjectUpdated, vec![context]));
        assert!(causes.take(&key()).is_none());
    }

    #[derive(Debug, Default)]
    struct Seen(std::sync::Arc<Mutex<Vec<String>>>);

    impl Queue for Seen {
        fn waits(&self, objects: usize) {
            self.0.lock().unwrap().push(format!("{objects} wait"));
        }
        fn begins(&self, _: Duration) {
            self.0.lock().unwrap().push("begins".to_owned());
        }
    }

    #[test]
    fn who_looks_at_the_queue_hears_of_each_object_once() {
        let (causes, seen) = (Causes::default(), Seen::default());
        let told = std::sync::Arc::clone(&seen.0);
        causes.observe(seen);
        let other = Key { namespace: None, name: "b".to_owned() };
        let arrived = |reason| Cause { arrived: Some(Instant::now()), ..cause(reason, &[]) };
        causes.note(key(), arrived(Reason::ObjectUpdated));
        causes.note(key(), arrived(Reason::Bulk));
        causes.note(other.clone(), arrived(Reason::Bulk));
        causes.take(&key()).unwrap();
        assert!(causes.take(&key()).is_none(), "it asked for this run itself");
        causes.forget(&other).unwrap();
        assert_eq!(*told.lock().unwrap(), ["1 wait", "2 wait", "1 wait", "begins", "0 wait"]);
    }

    #[test]
    fn what_happens_after_the_start_is_no_initial_list() {
        let causes = Causes::default();
        causes.note(key(), cause(Reason::InitialList, &[]));
        causes.note(key(), cause(Reason::InitialList, &[]));
        causes.note(key(), cause(Reason::ObjectUpdated, &[]));
        let cause = causes.take(&key()).unwrap();
        assert_eq!((cause.reason, cause.listed), (Reason::ObjectUpdated, true));
    }
}
