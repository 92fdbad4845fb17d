//! What is remembered about objects between runs: attempts, failures, and what has converged.
//!
//! All of it may be lost: after a restart, attempts count from one and the rest is read from the object again. The table is bounded.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use jiff::Timestamp;
use opentelemetry::trace::SpanContext;

/// Objects of all controllers of a process. A large cluster has as many of one kind; an entry takes some 200 bytes.
const MAX_OBJECTS: usize = 100_000;

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
    /// The last failure.
    failure: Option<u64>,
    /// Whether the last run failed.
    pub(crate) failed: bool,
    /// Runs that ended with the same failure, one after the other.
    same: u32,
    /// The generation whose converge span was written.
    converged: Option<i64>,
}

/// What a run is told when it begins.
#[derive(Clone, Debug, Default)]
pub(crate) struct Before {
    pub(crate) attempt: u32,
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
        }
        let (outdated, replaced) = context.map(|context| object.see(context, generation)).unwrap_or_default();
        object.attempt = object.attempt.saturating_add(1);
        Before { attempt: object.attempt, failed: object.failed, outdated, replaced }
    }

    /// A run has ended. Says whether its failure is worth a record: the same one over and over is so ever more seldom.
    pub(crate) fn end(&self, uid: &str, failure: Option<u64>) -> bool {
        let mut objects = self.objects();
        let object = entry(&mut objects, uid);
        object.failed = failure.is_some();
        if failure.is_none() {
            (object.attempt, object.same, object.failure) = (0, 0, None);
            return true;
        }
        object.same = if object.failure == failure { object.same.saturating_add(1) } else { 1 };
        object.failure = failure;
        object.same.is_power_of_two()
    }

    /// Whether this generation converges for the first time in this process.
    pub(crate) fn converges(&self, uid: &str, generation: i64) -> bool {
        let mut objects = self.objects();
        let object = entry(&mut objects, uid);
        object.converged.replace(generation) != Some(generation)
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
            objects.end("uid", Some(7));
        }
        assert!(begin(&objects, &context('a'), 1).failed);
        objects.end("uid", None);
        let after = begin(&objects, &context('a'), 1);
        assert_eq!((after.attempt, after.failed), (1, false));
    }

    #[test]
    fn the_same_failure_is_recorded_ever_more_seldom() {
        let objects = Objects::default();
        let recorded: Vec<_> = (1..=20).filter(|_| objects.end("uid", Some(7))).collect();
        assert_eq!(recorded, [1, 2, 4, 8, 16]);
        assert!(objects.end("uid", Some(8)), "another failure is news");
        assert!(objects.end("uid", None) && objects.end("uid", Some(8)));
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
}
