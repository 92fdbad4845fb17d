//! The table of traces: admission, growth and eviction.

use std::{sync::atomic::Ordering, time::Duration};

use super::{
    ArrivalInsert, SamplingMoment, SpanRecord, StoredHeaders, TailSamplingRules, TraceDuration, TraceEntry, TraceId,
    TracePhase, TraceShardState, decide::MAX_REVIVABLE_SPANS, ticks,
};
use crate::{
    core::EarlyDecision,
    processor::tail_sampling::{
        policy::SamplingDecision,
        span_store::{SPAN_HEADER_BYTES, SpanPosition, SpanStore},
    },
};

impl TraceShardState {
    /// Adds a new trace to the table.
    pub(super) fn admit(&mut self, id: TraceId, adding: &ArrivalInsert<'_>) {
        self.make_room(adding);
        let tick = adding.moment.tick();
        // The current tick has begun already; one more guarantees the full wait.
        let due = tick + ticks(adding.rules.settings.decision_wait) + 1;
        let trace = TraceEntry {
            bits: 0,
            times: TraceDuration::default(),
            bytes: 0,
            due,
            born: tick,
            randomness: None,
            tail: SpanPosition::NONE,
            first_segment: self.store.open_number(),
            spans: 0,
            generation: adding.arrival.generation,
            arrival: (0, 0),
            phase: TracePhase::Waiting,
        };
        self.table.insert(id, trace);
        self.stats.traces.fetch_add(1, Ordering::Relaxed);
        self.waiting += 1;
        self.admitted += 1;
        self.wheel.entry(due).or_default().push_back(id);
    }

    /// Shortens the wait of all waiting traces, in one pass: settings change seldom.
    pub(in super::super) fn shorten_wait(&mut self, wait: Duration) {
        for (id, trace) in self.table.iter_mut().filter(|(_, trace)| trace.phase == TracePhase::Waiting) {
            let due = trace.born + ticks(wait) + 1;
            if due < trace.due {
                trace.due = due;
                self.wheel.entry(due).or_default().push_back(*id);
            }
        }
    }

    /// Makes room in a full table: forgets the oldest decision, or decides the oldest trace.
    fn make_room(&mut self, adding: &ArrivalInsert<'_>) {
        let rules = adding.rules;
        while self.table.len() >= rules.traces {
            if let Some(id) = self.decided.pop_front() {
                self.forget(id, adding.moment.tick());
            } else if rules.settings.block_on_overflow || !self.decide_oldest(adding) {
                return;
            }
        }
    }

    /// Removes a decided trace from the table; the cache for such decisions remembers it, if there is one.
    pub(super) fn forget(&mut self, id: TraceId, tick: u64) {
        let Some(trace) = self.table.get(&id).filter(|trace| trace.phase != TracePhase::Waiting) else { return };
        self.stats.traces.fetch_sub(1, Ordering::Relaxed);
        self.stats.removal_age.record(tick.saturating_sub(trace.born) / 10);
        let (cache, note) = match trace.phase {
            TracePhase::Kept(stamp) => (&mut self.kept, stamp.note()),
            _ => (&mut self.dropped, 0),
        };
        if let Some(cache) = cache {
            cache.insert(self.hash.hash_id(id), note);
        }
        self.table.remove(&id);
    }

    fn decide_oldest(&mut self, adding: &ArrivalInsert<'_>) -> bool {
        while let Some(mut slot) = self.wheel.first_entry() {
            let tick = *slot.key();
            let ids = slot.get_mut();
            let next = ids.pop_front();
            if ids.is_empty() {
                slot.remove();
            }
            let Some(id) = next else { continue };
            if self.is_due(id, tick) {
                self.stats.count_early_decision(EarlyDecision::NumTraces);
                self.decide(id, adding.rules, adding.moment);
                return true;
            }
        }
        false
    }

    /// Whether the trace waits, and is due at that tick.
    pub(super) fn is_due(&self, id: TraceId, tick: u64) -> bool {
        self.table.get(&id).is_some_and(|trace| trace.phase == TracePhase::Waiting && trace.due == tick)
    }

    /// Adds spans to a waiting trace.
    pub(super) fn extend_waiting(&mut self, adding: &mut ArrivalInsert<'_>, run: &[SpanRecord]) {
        let Some(id) = run.first().map(|record| record.seen.id) else { return };
        let Some(trace) = self.table.get_mut(&id) else { return };
        let is_new = trace.extend(&mut self.store, adding, self.arrivals, run);
        if is_new && adding.rules.policies.decides_by_arrival() {
            adding.touched.push(id);
        }
        let is_root = run.iter().any(|record| record.seen.is_root);
        self.recheck_due(id, is_root, adding);
    }

    /// Checks whether a trace that has grown is due earlier, or now.
    fn recheck_due(&mut self, id: TraceId, is_root: bool, adding: &ArrivalInsert<'_>) {
        let rules = adding.rules;
        let moment = adding.moment;
        let Some(trace) = self.table.get_mut(&id) else { return };
        let most = rules.settings.maximum_trace_size;
        if most > 0 && trace.bytes > most {
            self.stats.too_large.fetch_add(1, Ordering::Relaxed);
            return self.apply_decision(id, SamplingDecision::Dropped, rules, moment);
        }
        let after_root = rules.settings.decision_wait_after_root;
        let due = moment.tick() + ticks(after_root) + 1;
        if is_root && !after_root.is_zero() && due < trace.due {
            trace.due = due;
            self.wheel.entry(due).or_default().push_back(id);
        }
        if rules.policies.decides_by_arrival() {
            return;
        }
        if trace.held_bytes() > moment.largest {
            self.stats.count_early_decision(EarlyDecision::Size);
            self.decide(id, rules, moment);
        } else if rules.policies.may_decide_early() {
            let facts = trace.facts(id, moment.now);
            if let Some(verdict) =
                rules.policies.decide_early(&facts).filter(|_| trace.generation == rules.policies.generation)
            {
                self.apply_decision(id, verdict, rules, moment);
            }
        }
    }

    /// Called when the next spans belong to another resource: where each arrival is decided by itself, the
    /// spans so far are decided now.
    pub(super) fn decide_arrival(&mut self, adding: &mut ArrivalInsert<'_>, resource: u32) {
        let last = adding.headers.map(|headers| headers.resource.0);
        if adding.touched.is_empty() || last == Some(resource) {
            return;
        }
        for id in std::mem::take(&mut adding.touched) {
            let Some(trace) = self.table.get(&id).filter(|trace| trace.phase == TracePhase::Waiting) else { continue };
            let facts = trace.facts(id, adding.moment.now);
            if let Some(verdict) = adding.rules.policies.decide_arrival(&facts) {
                self.apply_decision(id, verdict, adding.rules, adding.moment);
            }
        }
    }

    /// Adds late spans to a lingering trace, so that it is whole if it is revived. If one of them is an error,
    /// the policies decide again.
    pub(super) fn extend_lingering(&mut self, adding: &mut ArrivalInsert<'_>, run: &[SpanRecord], until: u64) {
        let Some(id) = run.first().map(|record| record.seen.id) else { return };
        let rules = adding.rules;
        let moment = adding.moment;
        let Some(trace) = self.table.get_mut(&id) else { return };
        let last = trace.tail.segment;
        let fits = trace.is_revivable(run.len(), rules, moment);
        if fits {
            trace.extend(&mut self.store, adding, self.arrivals, run);
        }
        if trace.tail.segment != last {
            self.lingering.hold(until, [trace.tail.segment]);
        }
        if !fits || !trace.is_revivable(0, rules, moment) {
            // The trace cannot linger later, so that its further spans are neither held nor decided.
            trace.phase = TracePhase::Dropped;
        } else if run.iter().any(|record| record.seen.is_error) {
            self.reconsider(id, adding);
        }
    }

    /// Lets the current policies decide a lingering trace. If one keeps it now, all its spans are sent.
    fn reconsider(&mut self, id: TraceId, adding: &ArrivalInsert<'_>) {
        let policies = &adding.rules.policies;
        let moment = adding.moment;
        let Some(trace) = self.table.get_mut(&id) else { return };
        if policies.decides_by_arrival() {
            // Observed for this arrival alone; only these conditions count.
            if adding.arrival.generation != policies.generation {
                return;
            }
        } else if trace.generation != policies.generation {
            trace.bits = trace.observe_again(&self.store, policies).first().copied().unwrap_or(0);
            trace.generation = policies.generation;
        }
        let verdict = policies.decide(&trace.facts(id, moment.now));
        let SamplingDecision::Kept(stamp) = verdict else { return };
        let Some(segments) = self.store.segments(trace.tail, trace.first_segment, MAX_REVIVABLE_SPANS + 1) else {
            return;
        };
        segments.iter().for_each(|segment| self.store.hold(*segment));
        trace.phase = TracePhase::Kept(stamp);
        trace.due = moment.tick();
        self.work.push_back(trace.work());
        self.stats.count_decision(verdict.outcome());
        // The table has the trace already, and keeps it.
        self.stats.promoted.fetch_add(1, Ordering::Relaxed);
    }
}

impl TraceEntry {
    fn held_bytes(&self) -> u64 {
        self.bytes + u64::from(self.spans) * SPAN_HEADER_BYTES as u64
    }

    /// Whether a late error may revive a trace with so many more spans: it is no larger than a waiting trace
    /// may be, and has few enough spans to be looked for. With more conditions than bits it cannot be revived:
    /// all its spans would have to be read again for each error.
    pub(super) fn is_revivable(&self, more: usize, rules: &TailSamplingRules, moment: SamplingMoment) -> bool {
        let most = rules.settings.maximum_trace_size;
        !rules.policies.exceeds_bit_word()
            && self.spans as usize + more <= MAX_REVIVABLE_SPANS
            && self.held_bytes() <= moment.largest
            && (most == 0 || self.bytes <= most)
    }

    /// Stores spans behind those of the trace. Returns whether they are the first with their resource.
    fn extend(
        &mut self,
        store: &mut SpanStore,
        adding: &mut ArrivalInsert<'_>,
        arrival: u32,
        run: &[SpanRecord],
    ) -> bool {
        let Some(scope) = run.first().map(|record| record.scope) else { return false };
        let headers = adding.stored_headers(store, scope);
        let request = adding.arrival;
        let policies = &adding.rules.policies;
        let is_new = self.arrival != (arrival, headers.resource.0);
        if is_new {
            self.arrival = (arrival, headers.resource.0);
            self.bytes += request.header_size(scope);
            if policies.decides_by_arrival() {
                (self.bits, self.times) = (0, TraceDuration::default());
            }
        }
        if self.generation != request.generation || request.generation != policies.generation {
            // Observed for other policies: all spans are read again at the decision.
            self.generation = policies.generation.wrapping_sub(1);
        }
        for record in run {
            if self.tail.segment != store.open_number() {
                store.hold(store.open_number());
            }
            let is_first = self.tail == SpanPosition::NONE;
            self.tail = store.push_span(self.tail, headers.scope.1, request.span_bytes(record));
            if is_first {
                // Only now: another segment may have been begun for this request since the trace was admitted.
                self.first_segment = self.tail.segment;
            }
            self.spans = self.spans.saturating_add(1);
            self.bytes += request.span_size(record);
            self.randomness = record.seen.randomness.or(self.randomness);
            let mut bits = [self.bits | record.bits];
            policies.observer.extend_duration(&mut self.times, &record.seen, &mut bits);
            [self.bits] = bits;
        }
        is_new
    }
}

impl ArrivalInsert<'_> {
    /// The headers of a scope in the open segment, stored unless they are the last ones there.
    fn stored_headers(&mut self, store: &mut SpanStore, scope: u32) -> StoredHeaders {
        let number = self.arrival.resource_of_scope(scope);
        let open = store.open_number();
        let last = self.headers.filter(|last| last.segment == open);
        if let Some(last) = last.filter(|last| last.scope.0 == scope) {
            return last;
        }
        if self.headers.is_some() && last.is_none() {
            store.restart_arrival(self.space);
        }
        let resource = match last.filter(|last| last.resource.0 == number) {
            Some(last) => last.resource,
            None => (number, store.push_resource(self.arrival.resource_fields(number))),
        };
        let scope = (scope, store.push_scope(resource.1, self.arrival.scope_fields(scope)));
        let headers = StoredHeaders { segment: store.open_number(), resource, scope };
        self.headers = Some(headers);
        headers
    }
}
