//! The cause of each run: recorded when an event arrives, taken when the run begins.
//!
//! kube's queue merges requests for the same object and does not pass their reasons to the reconciler. So the
//! events are recorded here by object and merged in the same way: the first reason and the earliest arrival
//! win, and the contexts of all related objects are kept, up to a limit.

use std::{
    collections::HashMap,
    fmt::Debug,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use opentelemetry::trace::SpanContext;

use crate::lineage::relation::MAX_LINKS;

/// The reason of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RunReason {
    /// The run was started by a controller that is not ours and does not say why.
    #[default]
    Unknown,
    /// The object existed when the controller started.
    InitialList,
    ObjectUpdated,
    RelatedObjectUpdated,
    /// The previous run asked for a requeue.
    Requeue,
    /// The previous run failed.
    Retry,
    /// All objects are reconciled.
    ReconcileAll,
}

impl RunReason {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::InitialList => "initial_list",
            Self::ObjectUpdated => "object_updated",
            Self::RelatedObjectUpdated => "related_object_updated",
            Self::Requeue => "requeue",
            Self::Retry => "retry",
            Self::ReconcileAll => "bulk",
        }
    }
}

/// The cause of a run, as far as it is known.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunCause {
    pub(crate) reason: RunReason,
    /// The object, or a related one, existed when the controller started; later events do not reset this.
    pub(crate) was_listed: bool,
    /// When the first event arrived.
    pub(crate) arrived_at: Option<Instant>,
    /// The first related object, as `Kind/namespace/name`.
    pub(crate) related: Option<String>,
    /// The contexts of related objects.
    pub(crate) contexts: Vec<SpanContext>,
}

impl RunCause {
    /// Whether the object may have existed before this process; also true where the reason is unknown.
    pub(crate) fn may_predate_process(&self) -> bool {
        self.was_listed || self.reason == RunReason::Unknown
    }

    /// How long ago the first event arrived.
    pub(crate) fn queue_wait(&self) -> Option<Duration> {
        self.arrived_at.map(|arrived| Instant::now().saturating_duration_since(arrived))
    }
}

/// Is notified of the queue of a controller, whether tracing is enabled or not.
///
/// An object is in the queue when it, or an object that it depends on, has changed and no run has begun since.
/// Several changes count once. An object whose last run asked for a requeue at a later time is not in the
/// queue.
pub trait QueueObserver: Debug + Send + Sync + 'static {
    /// The queue now holds this number of objects.
    fn on_depth_changed(&self, objects: usize);

    /// A run begins; its object waited this long since the first change.
    fn on_run_started(&self, waited: Duration);
}

/// An object of the controller's kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ReconcileKey {
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
}

/// The pending causes, by object.
#[derive(Debug, Default)]
pub(crate) struct PendingCauses {
    causes: Mutex<HashMap<ReconcileKey, RunCause>>,
    queue_observer: OnceLock<Box<dyn QueueObserver>>,
}

impl PendingCauses {
    /// Sets the observer of the queue. Later observers are ignored.
    pub(crate) fn set_queue_observer(&self, queue: impl QueueObserver) {
        let _ = self.queue_observer.set(Box::new(queue));
    }

    /// Whether an observer is set.
    pub(crate) fn is_observed(&self) -> bool {
        self.queue_observer.get().is_some()
    }

    pub(crate) fn record(&self, key: ReconcileKey, new: RunCause) {
        let mut notes = self.notes();
        let Some(cause) = notes.get_mut(&key) else {
            notes.insert(key, new);
            self.notify_queue_observer(&notes);
            return;
        };
        cause.was_listed |= new.was_listed;
        if cause.reason == RunReason::InitialList && new.reason != RunReason::InitialList {
            // An event followed: the initial list is no longer the only reason.
            cause.reason = new.reason;
            cause.related = new.related;
        }
        for context in new.contexts {
            if cause.contexts.len() < MAX_LINKS && !cause.contexts.contains(&context) {
                cause.contexts.push(context);
            }
        }
    }

    /// Takes the cause of a run that begins.
    pub(crate) fn take(&self, key: &ReconcileKey) -> Option<RunCause> {
        let cause = self.forget(key)?;
        if let (Some(queue), Some(waited)) = (self.queue_observer.get(), cause.queue_wait()) {
            queue.on_run_started(waited);
        }
        Some(cause)
    }

    /// Removes the cause of an object that will have no run.
    pub(crate) fn forget(&self, key: &ReconcileKey) -> Option<RunCause> {
        let mut notes = self.notes();
        let cause = notes.remove(key)?;
        self.notify_queue_observer(&notes);
        Some(cause)
    }

    /// Called with the lock held, so that the last notification has the current depth.
    fn notify_queue_observer(&self, notes: &HashMap<ReconcileKey, RunCause>) {
        if let Some(queue) = self.queue_observer.get() {
            queue.on_depth_changed(notes.len());
        }
    }

    fn notes(&self) -> MutexGuard<'_, HashMap<ReconcileKey, RunCause>> {
        self.causes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::parse;

    fn key() -> ReconcileKey {
        ReconcileKey { namespace: None, name: "a".to_owned() }
    }

    fn cause(reason: RunReason, contexts: &[SpanContext]) -> RunCause {
        let listed = reason == RunReason::InitialList;
        RunCause { reason, was_listed: listed, contexts: contexts.to_vec(), ..RunCause::default() }
    }

    #[test]
    fn causes_are_joined_until_a_run_takes_them() {
        let causes = PendingCauses::default();
        let context = parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", None).unwrap();
        causes.record(key(), cause(RunReason::ObjectUpdated, &[]));
        causes.record(key(), cause(RunReason::RelatedObjectUpdated, std::slice::from_ref(&context)));
        causes.record(key(), cause(RunReason::RelatedObjectUpdated, std::slice::from_ref(&context)));
        let joined = causes.take(&key()).unwrap();
        assert_eq!((joined.reason, joined.contexts), (RunReason::ObjectUpdated, vec![context]));
        assert!(causes.take(&key()).is_none());
    }

    #[derive(Debug, Default)]
    struct Seen(std::sync::Arc<Mutex<Vec<String>>>);

    impl QueueObserver for Seen {
        fn on_depth_changed(&self, objects: usize) {
            self.0.lock().unwrap().push(format!("{objects} wait"));
        }
        fn on_run_started(&self, _: Duration) {
            self.0.lock().unwrap().push("begins".to_owned());
        }
    }

    #[test]
    fn who_looks_at_the_queue_hears_of_each_object_once() {
        let causes = PendingCauses::default();
        let seen = Seen::default();
        let told = std::sync::Arc::clone(&seen.0);
        causes.set_queue_observer(seen);
        let other = ReconcileKey { namespace: None, name: "b".to_owned() };
        let arrived = |reason| RunCause { arrived_at: Some(Instant::now()), ..cause(reason, &[]) };
        causes.record(key(), arrived(RunReason::ObjectUpdated));
        causes.record(key(), arrived(RunReason::ReconcileAll));
        causes.record(other.clone(), arrived(RunReason::ReconcileAll));
        causes.take(&key()).unwrap();
        assert!(causes.take(&key()).is_none(), "it asked for this run itself");
        causes.forget(&other).unwrap();
        assert_eq!(*told.lock().unwrap(), ["1 wait", "2 wait", "1 wait", "begins", "0 wait"]);
    }

    #[test]
    fn what_happens_after_the_start_is_no_initial_list() {
        let causes = PendingCauses::default();
        causes.record(key(), cause(RunReason::InitialList, &[]));
        causes.record(key(), cause(RunReason::InitialList, &[]));
        causes.record(key(), cause(RunReason::ObjectUpdated, &[]));
        let cause = causes.take(&key()).unwrap();
        assert_eq!((cause.reason, cause.was_listed), (RunReason::ObjectUpdated, true));
    }
}
