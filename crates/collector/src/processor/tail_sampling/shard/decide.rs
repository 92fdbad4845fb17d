//! Decisions on traces, and their effect on held spans.

use std::time::Duration;

use super::{
    SamplingMoment, TailSamplingRules, TraceDuration, TraceEntry, TraceId, TracePhase, TraceShardState, ticks,
};
use crate::{
    core::SamplingOutcome,
    processor::tail_sampling::{
        output::KeepRecord,
        policy::{PolicySet, SamplingDecision, TraceFacts},
        span_store::{SegmentSnapshot, SpanPosition},
    },
};

/// Number of traces that are decided while the shard is locked; one with many spans, which may have to be
/// looked for, counts as several.
const TRACES_PER_STEP: usize = 256;
/// Number of spans that count as one trace.
const SPANS_PER_TRACE_EQUIVALENT: usize = 256;
/// Limit of the spans written at once, and of the spans of a trace that are released under the lock.
const SPANS_PER_STEP: usize = 4096;

/// A larger trace is never revived: its spans are looked for while senders wait.
pub(super) const MAX_REVIVABLE_SPANS: usize = 10_000;

/// A trace whose spans are to be written, or only released.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct TraceWork {
    pub(in super::super) tail: SpanPosition,
    /// The first segment that the trace holds.
    pub(in super::super) since: u32,
    /// The decision that kept the trace; `None` if its spans are dropped.
    pub(in super::super) kept: Option<KeepRecord>,
    spans: u32,
}

/// The next step of the shard's task.
pub(in super::super) enum ShardStep {
    /// Write these spans, without the lock.
    Write(Vec<TraceWork>, SegmentSnapshot),
    /// There are more traces to decide.
    Continue,
    /// Nothing to do until that tick.
    SleepUntil(u64),
    Idle,
}

impl TraceShardState {
    /// Decides some of the traces that are due; returns the next step.
    pub(in super::super) fn step(&mut self, rules: &TailSamplingRules, moment: SamplingMoment) -> ShardStep {
        self.writing = false;
        let until = if self.flushing { u64::MAX } else { moment.tick() };
        let decided = self.decide_due(until, rules, moment);
        self.stop_lingering(until);
        if !self.work.is_empty() {
            return self.take_work();
        }
        self.release_idle_memory();
        if decided >= TRACES_PER_STEP {
            return ShardStep::Continue;
        }
        // The task has to notice the end of the overload, and when lingering memory is needed elsewhere.
        let looks = moment.overloaded || self.lingering.first_expiry().is_some();
        let look = if looks { moment.tick() + 10 } else { u64::MAX };
        self.asleep_until = self.next_tick().min(look);
        if self.asleep_until < u64::MAX {
            return ShardStep::SleepUntil(self.asleep_until);
        }
        self.flushing = false;
        self.has_task = false;
        ShardStep::Idle
    }

    /// The next tick at which there is something to do.
    fn next_tick(&self) -> u64 {
        let first = |tick: Option<&u64>| tick.copied().unwrap_or(u64::MAX);
        first(self.wheel.keys().next()).min(self.lingering.first_expiry().unwrap_or(u64::MAX))
    }

    fn decide_due(&mut self, until: u64, rules: &TailSamplingRules, moment: SamplingMoment) -> usize {
        let mut decided = 0;
        while decided < TRACES_PER_STEP
            && let Some(mut slot) = self.wheel.first_entry()
            && *slot.key() <= until
        {
            let tick = *slot.key();
            let next = slot.get_mut().pop_front();
            if slot.get().is_empty() {
                slot.remove();
            }
            let Some(id) = next.filter(|id| self.is_due(*id, tick)) else { continue };
            decided += 1 + self.table.get(&id).map_or(0, |trace| trace.spans as usize / SPANS_PER_TRACE_EQUIVALENT);
            if self.flushing && rules.settings.drop_pending_on_shutdown {
                self.apply_decision(id, SamplingDecision::NotSampled, rules, moment);
            } else {
                self.decide(id, rules, moment);
            }
        }
        decided
    }

    /// The tick at which the first lingering trace expires.
    pub(in super::super) fn lingers_until(&self) -> Option<u64> {
        self.lingering.first_expiry()
    }

    /// Releases traces that were to linger until that tick or an earlier one.
    pub(in super::super) fn stop_lingering(&mut self, until: u64) {
        while let Some(segments) = self.lingering.expire(until) {
            self.release(&segments);
        }
        self.release_idle_memory();
    }

    fn take_work(&mut self) -> ShardStep {
        let mut work = Vec::new();
        let mut spans = 0;
        while spans < SPANS_PER_STEP
            && let Some(next) = self.work.pop_front()
        {
            spans += next.spans as usize;
            work.push(next);
        }
        let open = self.store.open_number();
        let pages = self.store.snapshot(work.iter().any(|work| work.tail.segment == open));
        self.writing = true;
        ShardStep::Write(work, pages)
    }

    /// Releases the segments of written spans.
    pub(in super::super) fn finish_write(&mut self, segments: &[u32]) {
        self.writing = false;
        self.release(segments);
        self.release_idle_memory();
    }

    /// Releases unused memory when no trace waits.
    fn release_idle_memory(&mut self) {
        if self.waiting == 0 && self.work.is_empty() {
            self.store.release_idle_memory();
        }
    }

    fn release(&mut self, segments: &[u32]) {
        segments.iter().for_each(|segment| self.store.release(*segment));
    }

    /// Decides a waiting trace by the policies.
    pub(super) fn decide(&mut self, id: TraceId, rules: &TailSamplingRules, moment: SamplingMoment) {
        let policies = &rules.policies;
        let Some(trace) = self.table.get_mut(&id) else { return };
        let verdict = if policies.decides_by_arrival() {
            // Policies that decide each arrival by itself have decided already.
            SamplingDecision::NotSampled
        } else if trace.generation == policies.generation && !policies.exceeds_bit_word() {
            policies.decide(&trace.facts(id, moment.now))
        } else {
            let bits = trace.observe_again(&self.store, policies);
            policies.decide(&TraceFacts { bits: &bits, ..trace.facts(id, moment.now) })
        };
        self.apply_decision(id, verdict, rules, moment);
    }

    /// Puts a decision into effect.
    pub(super) fn apply_decision(
        &mut self,
        id: TraceId,
        verdict: SamplingDecision,
        rules: &TailSamplingRules,
        moment: SamplingMoment,
    ) {
        let Some(trace) = self.table.get_mut(&id) else { return };
        self.stats.count_decision(verdict.outcome());
        self.waiting = self.waiting.saturating_sub(1);
        trace.due = moment.tick();
        let late = rules.settings.late_error_wait;
        trace.phase = match verdict {
            SamplingDecision::Kept(stamp) => TracePhase::Kept(stamp),
            SamplingDecision::NotSampled
                if !late.is_zero() && !self.flushing && trace.is_revivable(0, rules, moment) =>
            {
                let until = moment.tick() + ticks(late) + 1;
                u32::try_from(until).map_or(TracePhase::Dropped, TracePhase::Lingering)
            }
            SamplingDecision::NotSampled | SamplingDecision::Dropped => TracePhase::Dropped,
        };
        let work = trace.work();
        let phase = trace.phase;
        self.write_or_release(work, phase);
        self.cache_decision(id, phase, moment);
    }

    /// Queues kept spans to be written, and releases dropped ones: now, later, or without the lock if there are
    /// many.
    fn write_or_release(&mut self, work: TraceWork, phase: TracePhase) {
        if work.tail == SpanPosition::NONE {
            return;
        }
        let segments = match phase {
            TracePhase::Kept(_) => None,
            _ if work.tail.segment == work.since => Some(vec![work.since]),
            TracePhase::Lingering(_) => self.store.segments(work.tail, work.since, MAX_REVIVABLE_SPANS + 1),
            _ => self.store.segments(work.tail, work.since, SPANS_PER_STEP),
        };
        match (segments, phase) {
            (None, _) => self.work.push_back(work),
            (Some(segments), TracePhase::Lingering(until)) if self.lingering.is_held(until.into()) => {
                self.lingering.hold(until.into(), segments);
            }
            (Some(segments), _) => self.release(&segments),
        }
    }

    /// Moves a decision to the cache for such decisions, if there is one. Else the table remembers it until
    /// there is no room. The table also keeps a lingering trace: a decision in a cache is final.
    fn cache_decision(&mut self, id: TraceId, phase: TracePhase, moment: SamplingMoment) {
        match phase {
            TracePhase::Kept(_) if self.kept.is_some() => self.forget(id, moment.tick()),
            TracePhase::Dropped if self.dropped.is_some() => self.forget(id, moment.tick()),
            _ => self.decided.push_back(id),
        }
    }

    /// Whether a task has to be started for the shard: for its traces, or to notice the end of the overload.
    /// Counts the task as started.
    pub(in super::super) fn claim_attention(&mut self, moment: SamplingMoment) -> bool {
        let holds = !self.wheel.is_empty() || !self.work.is_empty() || self.lingering.first_expiry().is_some();
        let wants = !self.has_task && (holds || moment.overloaded);
        self.has_task |= wants;
        wants
    }

    /// Whether there is something to do before the shard's task wakes up.
    pub(in super::super) fn has_earlier_work(&self) -> bool {
        !self.work.is_empty() || self.next_tick() < self.asleep_until
    }
}

impl SamplingDecision {
    pub(super) fn outcome(self) -> SamplingOutcome {
        match self {
            Self::Kept(_) => SamplingOutcome::Sampled,
            Self::NotSampled => SamplingOutcome::NotSampled,
            Self::Dropped => SamplingOutcome::Dropped,
        }
    }
}

impl TraceEntry {
    /// The decision that kept the trace, if it was kept.
    fn keep_record(&self) -> Option<KeepRecord> {
        if let TracePhase::Kept(stamp) = self.phase {
            Some(KeepRecord { stamp, randomness: self.randomness })
        } else {
            None
        }
    }

    pub(super) fn work(&self) -> TraceWork {
        TraceWork { tail: self.tail, since: self.first_segment, kept: self.keep_record(), spans: self.spans }
    }

    pub(super) fn facts(&self, id: TraceId, now: Duration) -> TraceFacts<'_> {
        TraceFacts {
            id,
            bits: std::slice::from_ref(&self.bits),
            spans: self.spans.into(),
            bytes: self.bytes,
            randomness: self.randomness,
            now,
        }
    }

    /// Reads all spans of the trace again, for policies that are newer than their arrival.
    pub(super) fn observe_again(&mut self, store: &super::SpanStore, policies: &PolicySet) -> Vec<u64> {
        let mut places = Vec::with_capacity(self.spans as usize);
        let mut place = self.tail;
        while let Some(stored) = store.read(place) {
            places.push(place);
            place = stored.before;
        }
        let mut bits = vec![0; policies.observer.word_count().max(1)];
        self.times = TraceDuration::default();
        let mut last: *const u8 = std::ptr::null();
        for stored in places.iter().rev().filter_map(|place| store.read(*place)) {
            if stored.resource.as_ptr() != last {
                last = stored.resource.as_ptr();
                policies.observer.observe_resource(stored.resource, &mut bits);
            }
            let seen = policies.observer.observe_span(stored.span, &mut bits);
            policies.observer.extend_duration(&mut self.times, &seen, &mut bits);
            self.randomness = seen.randomness.or(self.randomness);
        }
        bits
    }
}
