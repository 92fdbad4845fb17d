//! What is remembered about objects between runs: attempts, failures, and what has converged.
//!
//! All of it may be lost: after a restart, attempts count from one and the rest is read from the object again. The table is bounded.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use jiff::{SignedDuration, Timestamp};
use opentelemetry::trace::SpanContext;

/// Objects of all controllers of a process. A large cluster has as many of one kind; an entry takes some 200 bytes.
const MAX_OBJECTS: usize = 100_000;

/// An object that works for this long and fails again fails anew.
const QUIET: SignedDuration = SignedDuration::from_mins(10);
/// Failures that come by turns are each told this often. After that only their number counts.
const MAX_TURNS: u32 = 8;

#[derive(Debug, Default)]
pub(crate) struct Objects(Mutex<HashMap<String, Object>>);

/// What is known about one object.
#[derive(Clone, Debug, Default)]
pub(crate) struct Object {
    /// The context that was seen first, with the generation that it was seen with.
    context: Option<(SpanContext, Option<i64>)>,
    /// The last generation that was seen, and when it was first.
    seen: Option<(i64, Timestamp)>,
    /// Runs since the last that did not fail, this one included.
    pub(crate) attempt: u32,
    /// Whether the last run failed.
    pub(crate) failed: bool,
    failures: Failures,
    /// A run has begun for it in this process.
    known: bool,
    /// The last generation that was seen in order.
    settled: Option<i64>,
    /// The generation whose converge span was written, here or by a process before this one.
    converged: Option<i64>,
}

/// How an object fails.
#[derive(Clone, Debug, Default)]
struct Failures {
    /// The last one.
    last: Option<u64>,
    /// How often it was the same, one after the other.
    same: u32,
    /// How often it was another one than before.
    turns: u32,
    all: u32,
    /// When it failed last, and whether it has worked since.
    at: Timestamp,
    worked: bool,
}

impl Failures {
    /// Counts a failure, and says whether it is worth a record.
    fn count(&mut self, failure: u64, now: Timestamp) -> bool {
        if self.worked && now.duration_since(self.at) > QUIET {
            *self = Self::default();
        }
        (self.worked, self.at, self.all) = (false, now, self.all.saturating_add(1));
        if self.last.replace(failure) != Some(failure) {
            (self.same, self.turns) = (0, self.turns.saturating_add(1));
        }
        self.same = self.same.saturating_add(1);
        self.same.is_power_of_two() && (self.turns <= MAX_TURNS || self.all.is_power_of_two())
    }
}

/// What a run is told when it begins.
#[derive(Clone, Debug, Default)]
pub(crate) struct Before {
    pub(crate) attempt: u32,
    /// It is the first run for the object in this process.
    pub(crate) first: bool,
    /// The object was in order before, at this generation.
    pub(crate) settled: bool,
    /// The run before this one failed.
    pub(crate) failed: bool,
    /// The generation went up and the context stayed.
    pub(crate) outdated: bool,
    /// The context is not the one of the run before, which was this.
    pub(crate) replaced: Option<SpanContext>,
}

impl Objects {
    /// A run begins.
    pub(crate) fn begin(
        &self,
        uid: &str,
        context: Option<&SpanContext>,
        generation: Option<i64>,
        now: Timestamp,
    ) -> Before {
        let mut objects = self.objects();
        let object = entry(&mut objects, uid);
        if let Some(generation) = generation
            && object.seen.is_none_or(|(seen, _)| seen != generation)
        {
            object.seen = Some((generation, now));
            object.failures = Failures::default();
        }
        let (outdated, replaced) = context.map(|context| object.see(context, generation)).unwrap_or_default();
        object.attempt = object.attempt.saturating_add(1);
        let first = !std::mem::replace(&mut object.known, true);
        let settled = object.settled == Some(generation.unwrap_or(1));
        Before { attempt: object.attempt, first, settled, failed: object.failed, outdated, replaced }
    }

    /// A run has ended. Says whether its failure is worth a record: the same one over and over is so ever more seldom, until something changes.
    pub(crate) fn end(&self, uid: &str, failure: Option<u64>, changed: bool, now: Timestamp) -> bool {
        let mut objects = self.objects();
        let object = entry(&mut objects, uid);
        object.failed = failure.is_some();
        let Some(failure) = failure else {
            object.attempt = 0;
            object.failures.worked = true;
            if changed {
                object.failures = Failures::default();
            }
            return true;
        };
        object.failures.count(failure, now)
    }

    /// Whether this generation converges for the first time, as far as is known.
    pub(crate) fn converges(&self, uid: &str, generation: i64) -> bool {
        let mut objects = self.objects();
        let object = entry(&mut objects, uid);
        object.settled = Some(generation);
        object.converged.replace(generation) != Some(generation)
    }

    /// This generation is in order, or was; and if it was before this process began, its converge span was written then.
    pub(crate) fn settle(&self, uid: &str, generation: i64, before_us: bool) {
        let mut objects = self.objects();
        let object = entry(&mut objects, uid);
        object.settled = Some(generation);
        if before_us {
            object.converged = Some(generation);
        }
    }

    /// When this generation was seen first.
    pub(crate) fn seen_since(&self, uid: &str, generation: i64) -> Option<Timestamp> {
        self.objects().get(uid).and_then(|object| object.seen).filter(|(seen, _)| *seen == generation).map(|(_, at)| at)
    }

    /// The object is gone.
    pub(crate) fn forget(&self, uid: &str) {
        self.objects().remove(uid);
    }

    fn objects(&self) -> MutexGuard<'_, HashMap<String, Object>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Object {
    /// Whether the context is older than the generation, and the one that it replaces.
    fn see(&mut self, context: &SpanContext, generation: Option<i64>) -> (bool, Option<SpanContext>) {
        match &self.context {
            Some((known, first)) if known == context => {
                (matches!((first, generation), (Some(first), Some(now)) if now > *first), None)
            }
            _ => (false, self.context.replace((context.clone(), generation)).map(|(old, _)| old)),
        }
    }
}

fn entry<'a>(objects: &'a mut HashMap<String, Object>, uid: &str) -> &'a mut Object {
    if !objects.contains_key(uid) {
        if objects.len() >= MAX_OBJECTS
            && let Some(any) = objects.keys().next().cloned()
        {
            objects.remove(&any);
        }
        objects.insert(uid.to_owned(), Object::default());
    }
    objects.entry(uid.to_owned()).or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::parse;

    fn begin(objects: &Objects, context: &SpanContext, generation: i64) -> Before {
        objects.begin("uid", Some(context), Some(generation), Timestamp::UNIX_EPOCH)
    }

    fn context(digit: char) -> SpanContext {
        let trace = String::from(digit).repeat(32);
        parse(&format!("00-{trace}-00f067aa0ba902b7-01"), None).unwrap()
    }

    #[test]
    fn attempts_count_until_one_succeeds() {
        let objects = Objects::default();
        for attempt in 1..=3 {
            assert_eq!(begin(&objects, &context('a'), 1).attempt, attempt);
            end(&objects, Some(7), 0);
        }
        assert!(begin(&objects, &context('a'), 1).failed);
        end(&objects, None, 0);
        let after = begin(&objects, &context('a'), 1);
        assert_eq!((after.attempt, after.failed), (1, false));
    }

    /// A run ends at this second and changed nothing.
    fn end(objects: &Objects, failure: Option<u64>, second: i64) -> bool {
        objects.end("uid", failure, false, Timestamp::from_second(second).unwrap())
    }

    #[test]
    fn the_same_failure_is_recorded_ever_more_seldom() {
        let objects = Objects::default();
        let recorded: Vec<_> = (1..=20).filter(|_| end(&objects, Some(7), 0)).collect();
        assert_eq!(recorded, [1, 2, 4, 8, 16]);
        assert!(end(&objects, Some(8), 0), "another failure is news");
        assert!(objects.end("uid", None, true, Timestamp::UNIX_EPOCH), "something was changed");
        assert_eq!((1..=4).filter(|_| end(&objects, Some(8), 0)).collect::<Vec<_>>(), [1, 2, 4]);
        begin(&objects, &context('a'), 2);
        assert_eq!((1..=4).filter(|_| end(&objects, Some(8), 0)).collect::<Vec<_>>(), [1, 2, 4], "another generation");
    }

    #[test]
    fn failures_by_turns_and_now_and_then_are_bounded_too() {
        let objects = Objects::default();
        let turns = (0..1000).filter(|turn| end(&objects, Some(turn % 2), 0)).count();
        assert!(turns < 16, "{turns}");
        let objects = Objects::default();
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
        let objects = Objects::default();
        assert!(!begin(&objects, &context('a'), 4).outdated);
        assert!(begin(&objects, &context('a'), 5).outdated);
        let next = begin(&objects, &context('b'), 5);
        assert_eq!((next.outdated, next.replaced), (false, Some(context('a'))));
        assert_eq!(begin(&objects, &context('b'), 5).replaced, None);
    }

    #[test]
    fn a_generation_converges_once() {
        let objects = Objects::default();
        assert!(objects.converges("uid", 1) && !objects.converges("uid", 1) && objects.converges("uid", 2));
        objects.forget("uid");
        assert!(objects.converges("uid", 2));
    }

    #[test]
    fn what_was_in_order_before_this_process_does_not_converge_again() {
        let objects = Objects::default();
        let first = begin(&objects, &context('a'), 3);
        assert_eq!((first.first, first.settled), (true, false));
        objects.settle("uid", 3, true);
        let second = begin(&objects, &context('a'), 3);
        assert_eq!((second.first, second.settled), (false, true));
        assert!(!objects.converges("uid", 3) && objects.converges("uid", 4));
        objects.settle("other", 1, false);
        assert!(objects.converges("other", 1), "somebody else made it ready, and now it is said");
        assert!(!begin(&objects, &context('a'), 5).settled);
    }
}
