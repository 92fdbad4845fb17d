//! Ongoing repairs: runs that restore objects that were ready long ago and are no longer.
//!
//! A repair takes several runs, perhaps of several objects and controllers: the object itself and its owners.
//! The first run is a new root, and the following runs are its children. They find it by the trace of the
//! change that made all of these objects.
//!
//! *Guaranteed*: no run becomes a child of a dropped run, as only a run that has changed something is found. A
//! repair is joined for as long as a change is (`drift_after`); after that, the next run begins a new repair.
//! The table is bounded and may be lost: after a restart the next run is a root again.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use opentelemetry::trace::{SpanContext, TraceId};

use crate::run::Run;

/// Repairs of the last minutes; an entry takes about 300 bytes. With more at once nobody reads each trace.
const MAX_REPAIRS: usize = 10_000;

#[derive(Debug, Default)]
pub(crate) struct OngoingRepairs(Mutex<HashMap<TraceId, OngoingRepair>>);

#[derive(Debug)]
struct OngoingRepair {
    root: SpanContext,
    run: Run,
    began: Timestamp,
}

impl OngoingRepair {
    fn is_ongoing(&self, now: Timestamp, most: Duration) -> bool {
        let since = Duration::try_from(now.duration_since(self.began)).unwrap_or_default();
        since <= most && (self.run.will_be_kept() || self.run.is_kept())
    }
}

impl OngoingRepairs {
    /// The first run of the ongoing repair of the objects that this trace made.
    pub(crate) fn find_root(&self, trace: TraceId, now: Timestamp, most: Duration) -> Option<SpanContext> {
        let repairs = self.repairs();
        repairs.get(&trace).filter(|repair| repair.is_ongoing(now, most)).map(|repair| repair.root.clone())
    }

    /// Adds a run that may be the first of a repair.
    pub(crate) fn insert_candidate(&self, trace: TraceId, root: SpanContext, run: Run, now: Timestamp) {
        let mut repairs = self.repairs();
        if repairs.len() >= MAX_REPAIRS
            && !repairs.contains_key(&trace)
            && let Some(any) = repairs.keys().next().copied()
        {
            repairs.remove(&any);
        }
        repairs.insert(trace, OngoingRepair { root, run, began: now });
    }

    /// Removes a dropped run: it repaired nothing.
    pub(crate) fn forget(&self, trace: TraceId, root: &SpanContext) {
        let mut repairs = self.repairs();
        if repairs.get(&trace).is_some_and(|repair| repair.root == *root) {
            repairs.remove(&trace);
        }
    }

    fn repairs(&self) -> MutexGuard<'_, HashMap<TraceId, OngoingRepair>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::parse;

    const MOST: Duration = Duration::from_secs(600);

    fn context(digit: char) -> SpanContext {
        let trace = String::from(digit).repeat(32);
        parse(&format!("00-{trace}-00f067aa0ba902b7-01"), None).unwrap()
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_repair_is_joined_once_it_changed_something_and_for_a_while() {
        let repairs = OngoingRepairs::default();
        let run = Run::new(1);
        let trace = context('a').trace_id();
        repairs.insert_candidate(trace, context('b'), run.clone(), at(0));
        assert_eq!(repairs.find_root(trace, at(1), MOST), None, "it may be forgotten");
        run.note_change();
        assert_eq!(repairs.find_root(trace, at(600), MOST), Some(context('b')));
        assert_eq!(repairs.find_root(trace, at(601), MOST), None);
        assert_eq!(repairs.find_root(context('c').trace_id(), at(1), MOST), None);
    }

    #[test]
    fn one_that_repaired_nothing_is_forgotten_and_no_other() {
        let repairs = OngoingRepairs::default();
        let run = Run::new(1);
        let trace = context('a').trace_id();
        run.note_change();
        repairs.insert_candidate(trace, context('b'), run, at(0));
        repairs.forget(trace, &context('c'));
        assert!(repairs.find_root(trace, at(1), MOST).is_some());
        repairs.forget(trace, &context('b'));
        assert!(repairs.find_root(trace, at(1), MOST).is_none());
    }
}
