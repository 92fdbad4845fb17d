//! Decisions, and what follows from them for what is held.

use std::time::Duration;

use super::{Moment, Phase, Rules, State, Times, Trace, TraceId, ticks};
use crate::{
    core::SamplingOutcome,
    processor::tail_sampling::{
        output::Kept,
        policy::{Facts, Policies, Verdict},
        store::{Pages, Place},
    },
};

/// So many traces are decided on while the shard is locked; one with many spans, which may have to be looked for, counts as several.
const AT_ONCE: usize = 256;
/// So many spans count as a trace.
const SPANS_OF_ONE: usize = 256;
/// So many spans are written out at once, and so many a trace may have to be let go of under the lock.
const SPANS_AT_ONCE: usize = 4096;

/// A trace of more spans does not come back: so many are looked for while senders wait.
pub(super) const MOST_SPANS: usize = 10_000;

/// A trace whose spans are to be written, or only to be let go of.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Work {
    pub(in super::super) tail: Place,
    /// The first segment that it holds.
    pub(in super::super) since: u32,
    /// What its spans say; `None` if they are dropped.
    pub(in super::super) kept: Option<Kept>,
    spans: u32,
}

/// What is to be done next.
pub(in super::super) enum Step {
    /// These spans are to be written, which takes no lock.
    Write(Vec<Work>, Pages),
    /// There is more to decide on.
    Again,
    /// Nothing until that tick.
    Until(u64),
    /// Nothing at all.
    Nothing,
}

impl State {
    /// Decides on some of the traces for which it is time, and says what to do next.
    pub(in super::super) fn step(&mut self, rules: &Rules, moment: Moment) -> Step {
        self.writing = false;
        let until = if self.flushing { u64::MAX } else { moment.tick() };
        let decided = self.decide_some(until, rules, moment);
        self.stop_lingering(until);
        if !self.work.is_empty() {
            return self.take_work();
        }
        self.rest();
        if decided >= AT_ONCE {
            return Step::Again;
        }
        // Somebody must see when the overload is over, and when others need the memory of what lingers.
        let looks = moment.overloaded || self.lingering.first().is_some();
        let look = if looks { moment.tick() + 10 } else { u64::MAX };
        self.asleep_until = self.next_tick().min(look);
        if self.asleep_until < u64::MAX {
            return Step::Until(self.asleep_until);
        }
        self.flushing = false;
        self.attended = false;
        Step::Nothing
    }

    /// When there will be something to do.
    fn next_tick(&self) -> u64 {
        let first = |tick: Option<&u64>| tick.copied().unwrap_or(u64::MAX);
        first(self.wheel.keys().next()).min(self.lingering.first().unwrap_or(u64::MAX))
    }

    fn decide_some(&mut self, until: u64, rules: &Rules, moment: Moment) -> usize {
        let mut decided = 0;
        while decided < AT_ONCE
            && let Some(mut slot) = self.wheel.first_entry()
            && *slot.key() <= until
        {
            let tick = *slot.key();
            let next = slot.get_mut().pop_front();
            if slot.get().is_empty() {
                slot.remove();
            }
            let Some(id) = next.filter(|id| self.is_due(*id, tick)) else { continue };
            decided += 1 + self.table.get(&id).map_or(0, |trace| trace.spans as usize / SPANS_OF_ONE);
            if self.flushing && rules.settings.drop_pending_on_shutdown {
                self.conclude(id, Verdict::NotSampled, rules, moment);
            } else {
                self.decide(id, rules, moment);
            }
        }
        decided
    }

    /// When the first of what lingers ends.
    pub(in super::super) fn lingers_until(&self) -> Option<u64> {
        self.lingering.first()
    }

    /// Lets go of what was to linger until that tick or a sooner one.
    pub(in super::super) fn stop_lingering(&mut self, until: u64) {
        while let Some(segments) = self.lingering.end(until) {
            self.release(&segments);
        }
        self.rest();
    }

    fn take_work(&mut self) -> Step {
        let mut work = Vec::new();
        let mut spans = 0;
        while spans < SPANS_AT_ONCE
            && let Some(next) = self.work.pop_front()
        {
            spans += next.spans as usize;
            work.push(next);
        }
        let open = self.store.open_number();
        let pages = self.store.pages(work.iter().any(|work| work.tail.segment == open));
        self.writing = true;
        Step::Write(work, pages)
    }

    /// What was written is held no longer.
    pub(in super::super) fn written(&mut self, segments: &[u32]) {
        self.writing = false;
        self.release(segments);
        self.rest();
    }

    /// Holds no memory when nothing waits.
    fn rest(&mut self) {
        if self.waiting == 0 && self.work.is_empty() {
            self.store.rest();
        }
    }

    fn release(&mut self, segments: &[u32]) {
        segments.iter().for_each(|segment| self.store.release(*segment));
    }

    /// Asks the policies about a trace that waits.
    pub(super) fn decide(&mut self, id: TraceId, rules: &Rules, moment: Moment) {
        let policies = &rules.policies;
        let Some(trace) = self.table.get_mut(&id) else { return };
        let verdict = if policies.by_arrival() {
            // Whoever is asked for each arrival by itself has been asked.
            Verdict::NotSampled
        } else if trace.generation == policies.generation && !policies.is_wide() {
            policies.decide(&trace.facts(id, moment.now))
        } else {
            let bits = trace.observe(&self.store, policies);
            policies.decide(&Facts { bits: &bits, ..trace.facts(id, moment.now) })
        };
        self.conclude(id, verdict, rules, moment);
    }

    /// Puts a verdict into effect.
    pub(super) fn conclude(&mut self, id: TraceId, verdict: Verdict, rules: &Rules, moment: Moment) {
        let Some(trace) = self.table.get_mut(&id) else { return };
        self.stats.decide(verdict.outcome());
        self.waiting = self.waiting.saturating_sub(1);
        trace.due = moment.tick();
        let late = rules.settings.late_error_wait;
        trace.phase = match verdict {
            Verdict::Kept(stamp) => Phase::Kept(stamp),
            Verdict::NotSampled if !late.is_zero() && !self.flushing && trace.may_come_back(0, rules, moment) => {
                let until = moment.tick() + ticks(late) + 1;
                u32::try_from(until).map_or(Phase::Dropped, Phase::Lingers)
            }
            Verdict::NotSampled | Verdict::Dropped => Phase::Dropped,
        };
        let (work, phase) = (trace.work(), trace.phase);
        self.let_go(work, phase);
        self.remember(id, phase, moment);
    }

    /// Kept spans are written, dropped ones let go of: now, later, or without the lock if there are many.
    fn let_go(&mut self, work: Work, phase: Phase) {
        if work.tail == Place::NONE {
            return;
        }
        let segments = match phase {
            Phase::Kept(_) => None,
            _ if work.tail.segment == work.since => Some(vec![work.since]),
            Phase::Lingers(_) => self.store.segments(work.tail, work.since, MOST_SPANS + 1),
            _ => self.store.segments(work.tail, work.since, SPANS_AT_ONCE),
        };
        match (segments, phase) {
            (None, _) => self.work.push_back(work),
            (Some(segments), Phase::Lingers(until)) if self.lingering.lasts(until.into()) => {
                self.lingering.hold(until.into(), segments);
            }
            (Some(segments), _) => self.release(&segments),
        }
    }

    /// Where a cache is wanted for such decisions it knows them from now on; else the table does, until there is no room. So it does while a trace lingers:
    /// what is in a cache is final.
    fn remember(&mut self, id: TraceId, phase: Phase, moment: Moment) {
        match phase {
            Phase::Kept(_) if self.kept.is_some() => self.forget(id, moment.tick()),
            Phase::Dropped if self.dropped.is_some() => self.forget(id, moment.tick()),
            _ => self.decided.push_back(id),
        }
    }

    /// Whether a task must look at the shard that has not been told so: for what it holds, or to see when the overload is over.
    pub(in super::super) fn wants_attention(&mut self, moment: Moment) -> bool {
        let holds = !self.wheel.is_empty() || !self.work.is_empty() || self.lingering.first().is_some();
        let wants = !self.attended && (holds || moment.overloaded);
        self.attended |= wants;
        wants
    }

    /// Whether there is something to do sooner than whoever looks after the shard knows.
    pub(in super::super) fn has_news(&self) -> bool {
        !self.work.is_empty() || self.next_tick() < self.asleep_until
    }
}

impl Verdict {
    pub(super) fn outcome(self) -> SamplingOutcome {
        match self {
            Self::Kept(_) => SamplingOutcome::Sampled,
            Self::NotSampled => SamplingOutcome::NotSampled,
            Self::Dropped => SamplingOutcome::Dropped,
        }
    }
}

impl Trace {
    /// How it was kept, if it was.
    fn kept(&self) -> Option<Kept> {
        if let Phase::Kept(stamp) = self.phase { Some(Kept { stamp, randomness: self.randomness }) } else { None }
    }

    pub(super) fn work(&self) -> Work {
        Work { tail: self.tail, since: self.since, kept: self.kept(), spans: self.spans }
    }

    pub(super) fn facts(&self, id: TraceId, now: Duration) -> Facts<'_> {
        Facts {
            id,
            bits: std::slice::from_ref(&self.bits),
            spans: self.spans.into(),
            bytes: self.bytes,
            randomness: self.randomness,
            now,
        }
    }

    /// Reads all its spans again, for policies that they were not read for when they came.
    pub(super) fn observe(&mut self, store: &super::Store, policies: &Policies) -> Vec<u64> {
        let mut places = Vec::with_capacity(self.spans as usize);
        let mut place = self.tail;
        while let Some(stored) = store.read(place) {
            places.push(place);
            place = stored.before;
        }
        let mut bits = vec![0; policies.observer.words().max(1)];
        self.times = Times::default();
        let mut last: *const u8 = std::ptr::null();
        for stored in places.iter().rev().filter_map(|place| store.read(*place)) {
            if stored.resource.as_ptr() != last {
                last = stored.resource.as_ptr();
                policies.observer.resource(stored.resource, &mut bits);
            }
            let seen = policies.observer.span(stored.span, &mut bits);
            policies.observer.duration(&mut self.times, &seen, &mut bits);
            self.randomness = seen.randomness.or(self.randomness);
        }
        bits
    }
}
