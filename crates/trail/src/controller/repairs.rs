//! Repairs that are under way: what was in order long ago, and is not any more.
//!
//! A repair takes several runs, perhaps of several objects and controllers: the object itself, and those that it belongs to. The first of them is a new root, and those that follow are its children. They find it by the trace
//! of the change that made all of these objects.
//!
//! Guaranteed: nobody becomes a child of a run that is forgotten, as only one that has changed something is found. A repair is joined for as long as a change is (`drift_after`); what is not in order by
//! then is the next one. The table is bounded, and all of it may be lost: after a restart the next run is a root again.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use opentelemetry::trace::{SpanContext, TraceId};

use crate::run::Run;

/// Repairs of the last minutes; an entry takes some 300 bytes. Where more is broken nobody reads each trace.
const MAX_REPAIRS: usize = 10_000;

#[derive(Debug, Default)]
pub(crate) struct Repairs(Mutex<HashMap<TraceId, Repair>>);

#[derive(Debug)]
struct Repair {
    root: SpanContext,
    run: Run,
    began: Timestamp,
}

impl Repair {
    fn is_under_way(&self, now: Timestamp, most: Duration) -> bool {
        let since = Duration::try_from(now.duration_since(self.began)).unwrap_or_default();
        since <= most && (self.run.will_be_kept() || self.run.is_kept())
    }
}

impl Repairs {
    /// The first run of the repair of what this trace made.
    pub(crate) fn of(&self, trace: TraceId, now: Timestamp, most: Duration) -> Option<SpanContext> {
        let repairs = self.repairs();
        repairs.get(&trace).filter(|repair| repair.is_under_way(now, most)).map(|repair| repair.root.clone())
    }

    /// A run begins that may be the first of a repair.
    pub(crate) fn begin(&self, trace: TraceId, root: SpanContext, run: Run, now: Timestamp) {
        let mut repairs = self.repairs();
        if repairs.len() >= MAX_REPAIRS
            && !repairs.contains_key(&trace)
            && let Some(any) = repairs.keys().next().copied()
        {
            repairs.remove(&any);
        }
        repairs.insert(trace, Repair { root, run, began: now });
    }

    /// The run is forgotten: it repaired nothing.
    pub(crate) fn forget(&self, trace: TraceId, root: &SpanContext) {
        let mut repairs = self.repairs();
        if repairs.get(&trace).is_some_and(|repair| repair.root == *root) {
            repairs.remove(&trace);
        }
    }

    fn repairs(&self) -> MutexGuard<'_, HashMap<TraceId, Repair>> {
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
        let (repairs, run, trace) = (Repairs::default(), Run::new(1), context('a').trace_id());
        repairs.begin(trace, context('b'), run.clone(), at(0));
        assert_eq!(repairs.of(trace, at(1), MOST), None, "it may be forgotten");
        run.note_change();
        assert_eq!(repairs.of(trace, at(600), MOST), Some(context('b')));
        assert_eq!(repairs.of(trace, at(601), MOST), None);
        assert_eq!(repairs.of(context('c').trace_id(), at(1), MOST), None);
    }

    #[test]
    fn one_that_repaired_nothing_is_forgotten_and_no_other() {
        let (repairs, run, trace) = (Repairs::default(), Run::new(1), context('a').trace_id());
        run.note_change();
        repairs.begin(trace, context('b'), run, at(0));
        repairs.forget(trace, &context('c'));
        assert!(repairs.of(trace, at(1), MOST).is_some());
        repairs.forget(trace, &context('b'));
        assert!(repairs.of(trace, at(1), MOST).is_none());
    }
}
