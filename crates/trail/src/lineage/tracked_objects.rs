//! The state of objects between runs: attempts, failures, and convergence.
//!
//! The table is bounded, and all of it may be lost: after a restart, attempts count from one and the rest is
//! read from the objects again.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use jiff::{SignedDuration, Timestamp};
use opentelemetry::trace::SpanContext;

/// Objects of all controllers of a process. A large cluster has as many of one kind; an entry takes some 200 B.
const MAX_OBJECTS: usize = 100_000;

/// An object that has worked since its last failure forgets its failures after this time.
const FAILURE_RESET_AFTER: SignedDuration = SignedDuration::from_mins(10);
/// The number of alternating failures that are each recorded. After that only their count matters.
const MAX_ALTERNATING_FAILURES: u32 = 8;

#[derive(Debug, Default)]
pub(crate) struct TrackedObjects(Mutex<HashMap<String, TrackedObject>>);

#[derive(Clone, Debug, Default)]
pub(crate) struct TrackedObject {
    /// The current context, with the generation at which it was first seen.
    context: Option<(SpanContext, Option<i64>)>,
    /// The last generation that was seen, with the time at which it was first seen.
    seen: Option<(i64, Timestamp)>,
    /// Consecutive failed runs plus the current one.
    pub(crate) attempt: u32,
    /// Whether the last run failed.
    pub(crate) failed: bool,
    failures: FailureHistory,
    /// Whether this process has begun a run for the object.
    known: bool,
    /// The last generation at which the object was ready.
    settled: Option<i64>,
    /// The generation whose converge span was written, by this process or one before.
    converged: Option<i64>,
}

/// The failures of an object.
#[derive(Clone, Debug, Default)]
struct FailureHistory {
    /// The class of the last failure.
    last: Option<u64>,
    /// Consecutive failures of the same class.
    repeated: u32,
    /// Changes from one class of failure to another.
    alternations: u32,
    total: u32,
    /// The time of the last failure.
    failed_at: Timestamp,
    has_worked_since: bool,
}

impl FailureHistory {
    /// Counts a failure and returns whether it is worth a record.
    fn count_failure(&mut self, failure: u64, now: Timestamp) -> bool {
        if self.has_worked_since && now.duration_since(self.failed_at) > FAILURE_RESET_AFTER {
            *self = Self::default();
        }
        (self.has_worked_since, self.failed_at, self.total) = (false, now, self.total.saturating_add(1));
        if self.last.replace(failure) != Some(failure) {
            (self.repeated, self.alternations) = (0, self.alternations.saturating_add(1));
        }
        self.repeated = self.repeated.saturating_add(1);
        self.repeated.is_power_of_two()
            && (self.alternations <= MAX_ALTERNATING_FAILURES || self.total.is_power_of_two())
    }
}

/// The state of an object from before a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct PriorRuns {
    pub(crate) attempt: u32,
    /// Whether this is the object's first run in this process.
    pub(crate) is_first: bool,
    /// Whether the object was ready before, at this generation.
    pub(crate) was_settled: bool,
    /// Whether the previous run failed.
    pub(crate) failed: bool,
    /// Whether the generation grew while the context stayed the same.
    pub(crate) outdated: bool,
    /// The context of the previous run, if it was another one.
    pub(crate) replaced_context: Option<SpanContext>,
}

impl TrackedObjects {
    /// Begins a run.
    pub(crate) fn begin_run(
        &self,
        uid: &str,
        context: Option<&SpanContext>,
        generation: Option<i64>,
        now: Timestamp,
    ) -> PriorRuns {
        let mut objects = self.objects();
        let object = entry_or_insert(&mut objects, uid);
        if let Some(generation) = generation
            && object.seen.is_none_or(|(seen, _)| seen != generation)
        {
            object.seen = Some((generation, now));
            object.failures = FailureHistory::default();
        }
        let (outdated, replaced) =
            context.map(|context| object.observe_context(context, generation)).unwrap_or_default();
        object.attempt = object.attempt.saturating_add(1);
        let first = !std::mem::replace(&mut object.known, true);
        let settled = object.settled == Some(generation.unwrap_or(1));
        PriorRuns {
            attempt: object.attempt,
            is_first: first,
            was_settled: settled,
            failed: object.failed,
            outdated,
            replaced_context: replaced,
        }
    }

    /// Ends a run and returns whether its failure is worth a record: repeated failures of the same class are
    /// recorded less and less often, until something changes.
    pub(crate) fn end_run(&self, uid: &str, failure: Option<u64>, changed: bool, now: Timestamp) -> bool {
        let mut objects = self.objects();
        let object = entry_or_insert(&mut objects, uid);
        object.failed = failure.is_some();
        let Some(failure) = failure else {
            object.attempt = 0;
            object.failures.has_worked_since = true;
            if changed {
                object.failures = FailureHistory::default();
            }
            return true;
        };
        object.failures.count_failure(failure, now)
    }

    /// Marks a generation as converged. Returns whether this is the first time, as far as this process knows.
    pub(crate) fn mark_converged(&self, uid: &str, generation: i64) -> bool {
        let mut objects = self.objects();
        let object = entry_or_insert(&mut objects, uid);
        object.settled = Some(generation);
        object.converged.replace(generation) != Some(generation)
    }

    /// Marks a generation as ready, now or earlier. If it was ready before this process began, its converge
    /// span was written then.
    pub(crate) fn mark_settled(&self, uid: &str, generation: i64, before_us: bool) {
        let mut objects = self.objects();
        let object = entry_or_insert(&mut objects, uid);
        object.settled = Some(generation);
        if before_us {
            object.converged = Some(generation);
        }
    }

    /// The time at which this generation was first seen.
    pub(crate) fn first_seen(&self, uid: &str, generation: i64) -> Option<Timestamp> {
        self.objects().get(uid).and_then(|object| object.seen).filter(|(seen, _)| *seen == generation).map(|(_, at)| at)
    }

    /// Removes a deleted object.
    pub(crate) fn forget(&self, uid: &str) {
        self.objects().remove(uid);
    }

    fn objects(&self) -> MutexGuard<'_, HashMap<String, TrackedObject>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TrackedObject {
    /// Returns whether the context is older than the generation, and the context that it replaces.
    fn observe_context(&mut self, context: &SpanContext, generation: Option<i64>) -> (bool, Option<SpanContext>) {
        match &self.context {
            Some((known, first)) if known == context => {
                (matches!((first, generation), (Some(first), Some(now)) if now > *first), None)
            }
            _ => (false, self.context.replace((context.clone(), generation)).map(|(old, _)| old)),
        }
    }
}

fn entry_or_insert<'a>(objects: &'a mut HashMap<String, TrackedObject>, uid: &str) -> &'a mut TrackedObject {
    if !objects.contains_key(uid) {
        if objects.len() >= MAX_OBJECTS
            && let Some(any) = objects.keys().next().cloned()
        {
            objects.remove(&any);
        }
        objects.insert(uid.to_owned(), TrackedObject::default());
    }
    objects.entry(uid.to_owned()).or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::parse;

    fn begin(objects: &TrackedObjects, context: &SpanContext, generation: i64) -> PriorRuns {
        objects.begin_run("uid", Some(context), Some(generation), Timestamp::UNIX_EPOCH)
    }

    fn context(digit: char) -> SpanContext {
        let trace = String::from(digit).repeat(32);
        parse(&format!("00-{trace}-00f067aa0ba902b7-01"), None).unwrap()
    }

    #[test]
    fn attempts_count_until_one_succeeds() {
        let objects = TrackedObjects::default();
        for attempt in 1..=3 {
            assert_eq!(begin(&objects, &context('a'), 1).attempt, attempt);
            end(&objects, Some(7), 0);
        }
        assert!(begin(&objects, &context('a'), 1).failed);
        end(&objects, None, 0);
        let after = begin(&objects, &context('a'), 1);
        assert_eq!((after.attempt, after.failed), (1, false));
    }

    /// Ends a run at this second that changed nothing.
    fn end(objects: &TrackedObjects, failure: Option<u64>, second: i64) -> bool {
        objects.end_run("uid", failure, false, Timestamp::from_second(second).unwrap())
    }

    #[test]
    fn the_same_failure_is_recorded_ever_more_seldom() {
        let objects = TrackedObjects::default();
        let recorded: Vec<_> = (1..=20).filter(|_| end(&objects, Some(7), 0)).collect();
        assert_eq!(recorded, [1, 2, 4, 8, 16]);
        assert!(end(&objects, Some(8), 0), "another failure is news");
        assert!(objects.end_run("uid", None, true, Timestamp::UNIX_EPOCH), "something was changed");
        assert_eq!((1..=4).filter(|_| end(&objects, Some(8), 0)).collect::<Vec<_>>(), [1, 2, 4]);
        begin(&objects, &context('a'), 2);
        assert_eq!((1..=4).filter(|_| end(&objects, Some(8), 0)).collect::<Vec<_>>(), [1, 2, 4], "another generation");
    }

    #[test]
    fn failures_by_turns_and_now_and_then_are_bounded_too() {
        let objects = TrackedObjects::default();
        let turns = (0..1000).filter(|turn| end(&objects, Some(turn % 2), 0)).count();
        assert!(turns < 16, "{turns}");
        let objects = TrackedObjects::default();
        let flapping = |_: &i64| {
            let news = end(&objects, Some(7), 0);
            end(&objects, None, 0);
            news
        };
        assert_eq!((1..=20).filter(flapping).collect::<Vec<_>>(), [1, 2, 4, 8, 16]);
        assert!(end(&objects, Some(7), 3600), "it worked for an hour");
    }

    #[test]
    fn a_context_that_stays_while_the_generation_grows_is_outdated() {
        let objects = TrackedObjects::default();
        assert!(!begin(&objects, &context('a'), 4).outdated);
        assert!(begin(&objects, &context('a'), 5).outdated);
        let next = begin(&objects, &context('b'), 5);
        assert_eq!((next.outdated, next.replaced_context), (false, Some(context('a'))));
        assert_eq!(begin(&objects, &context('b'), 5).replaced_context, None);
    }

    #[test]
    fn a_generation_converges_once() {
        let objects = TrackedObjects::default();
        assert!(
            objects.mark_converged("uid", 1) && !objects.mark_converged("uid", 1) && objects.mark_converged("uid", 2)
        );
        objects.forget("uid");
        assert!(objects.mark_converged("uid", 2));
    }

    #[test]
    fn what_was_in_order_before_this_process_does_not_converge_again() {
        let objects = TrackedObjects::default();
        let first = begin(&objects, &context('a'), 3);
        assert_eq!((first.is_first, first.was_settled), (true, false));
        objects.mark_settled("uid", 3, true);
        let second = begin(&objects, &context('a'), 3);
        assert_eq!((second.is_first, second.was_settled), (false, true));
        assert!(!objects.mark_converged("uid", 3) && objects.mark_converged("uid", 4));
        objects.mark_settled("other", 1, false);
        assert!(objects.mark_converged("other", 1), "somebody else made it ready, and now it is said");
        assert!(!begin(&objects, &context('a'), 5).was_settled);
    }
}
