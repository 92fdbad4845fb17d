//! Traces that wait: how they come, grow, and are made room for.

use std::{sync::atomic::Ordering, time::Duration};

use super::{Adding, Headers, Moment, Phase, Record, Rules, State, Times, Trace, TraceId, decide::MOST_SPANS, ticks};
use crate::{
    core::EarlyDecision,
    processor::tail_sampling::{
        policy::Verdict,
        store::{Place, SPAN_WORDS, Store},
    },
};

impl State {
    /// Knows a new trace from now on.
    pub(super) fn admit(&mut self, id: TraceId, adding: &Adding<'_>) {
        self.make_room(adding);
        let tick = adding.moment.tick();
        // The tick has begun already, so that one more makes sure of the whole time.
        let due = tick + ticks(adding.rules.settings.decision_wait) + 1;
        let trace = Trace {
            bits: 0,
            times: Times::default(),
            bytes: 0,
            due,
            born: tick,
            randomness: None,
            tail: Place::NONE,
            since: self.store.open_number(),
            spans: 0,
            generation: adding.arrival.generation,
            arrival: (0, 0),
            phase: Phase::Waiting,
        };
        self.table.insert(id, trace);
        self.stats.traces.fetch_add(1, Ordering::Relaxed);
        self.waiting += 1;
        self.admitted += 1;
        self.wheel.entry(due).or_default().push_back(id);
    }

    /// What waits is to wait no longer than that, and looked at once for all of it: settings change seldom.
    pub(in super::super) fn shorten(&mut self, wait: Duration) {
        for (id, trace) in self.table.iter_mut().filter(|(_, trace)| trace.phase == Phase::Waiting) {
            let due = trace.born + ticks(wait) + 1;
            if due < trace.due {
                trace.due = due;
                self.wheel.entry(due).or_default().push_back(*id);
            }
        }
    }

    /// As many traces as may be are known: forgets the oldest decision, or makes the oldest trace a decision.
    fn make_room(&mut self, adding: &Adding<'_>) {
        let rules = adding.rules;
        while self.table.len() >= rules.traces {
            if let Some(id) = self.decided.pop_front() {
                self.forget(id, adding.moment.tick());
            } else if rules.settings.block_on_overflow || !self.hurry_oldest(adding) {
                return;
            }
        }
    }

    /// Lets the table forget a trace that was decided on; where a cache is wanted for such decisions, that knows it from now on.
    pub(super) fn forget(&mut self, id: TraceId, tick: u64) {
        let Some(trace) = self.table.get(&id).filter(|trace| trace.phase != Phase::Waiting) else { return };
        self.stats.traces.fetch_sub(1, Ordering::Relaxed);
        self.stats.removal_age.record(tick.saturating_sub(trace.born) / 10);
        let (cache, note) = match trace.phase {
            Phase::Kept(stamp) => (&mut self.kept, stamp.note()),
            _ => (&mut self.dropped, 0),
        };
        if let Some(cache) = cache {
            cache.insert(self.hash.of(id), note);
        }
        self.table.remove(&id);
    }

    fn hurry_oldest(&mut self, adding: &Adding<'_>) -> bool {
        while let Some(mut slot) = self.wheel.first_entry() {
            let (tick, ids) = (*slot.key(), slot.get_mut());
            let next = ids.pop_front();
            if ids.is_empty() {
                slot.remove();
            }
            let Some(id) = next else { continue };
            if self.is_due(id, tick) {
                self.stats.hurry(EarlyDecision::NumTraces);
                self.decide(id, adding.rules, adding.moment);
                return true;
            }
        }
        false
    }

    /// Whether the trace waits, and for that tick.
    pub(super) fn is_due(&self, id: TraceId, tick: u64) -> bool {
        self.table.get(&id).is_some_and(|trace| trace.phase == Phase::Waiting && trace.due == tick)
    }

    /// Adds spans to a trace that waits.
    pub(super) fn wait(&mut self, adding: &mut Adding<'_>, run: &[Record]) {
        let Some(id) = run.first().map(|record| record.seen.id) else { return };
        let Some(trace) = self.table.get_mut(&id) else { return };
        let is_new = trace.extend(&mut self.store, adding, self.arrivals, run);
        if is_new && adding.rules.policies.by_arrival() {
            adding.touched.push(id);
        }
        let is_root = run.iter().any(|record| record.seen.is_root);
        self.look_again(id, is_root, adding);
    }

    /// A trace has grown: maybe it is time sooner, or now.
    fn look_again(&mut self, id: TraceId, is_root: bool, adding: &Adding<'_>) {
        let (rules, moment) = (adding.rules, adding.moment);
        let Some(trace) = self.table.get_mut(&id) else { return };
        let most = rules.settings.maximum_trace_size;
        if most > 0 && trace.bytes > most {
            self.stats.too_large.fetch_add(1, Ordering::Relaxed);
            return self.conclude(id, Verdict::Dropped, rules, moment);
        }
        let after_root = rules.settings.decision_wait_after_root;
        let due = moment.tick() + ticks(after_root) + 1;
        if is_root && !after_root.is_zero() && due < trace.due {
            trace.due = due;
            self.wheel.entry(due).or_default().push_back(id);
        }
        if rules.policies.by_arrival() {
            return;
        }
        if trace.held() > moment.largest {
            self.stats.hurry(EarlyDecision::Size);
            self.decide(id, rules, moment);
        } else if rules.policies.may_decide_early() {
            let facts = trace.facts(id, moment.now);
            if let Some(verdict) =
                rules.policies.decide_early(&facts).filter(|_| trace.generation == rules.policies.generation)
            {
                self.conclude(id, verdict, rules, moment);
            }
        }
    }

    /// The next spans are of another resource: where each arrival is decided on by itself, it is time for those that came.
    pub(super) fn settle_arrival(&mut self, adding: &mut Adding<'_>, resource: u32) {
        let last = adding.headers.map(|headers| headers.resource.0);
        if adding.touched.is_empty() || last == Some(resource) {
            return;
        }
        for id in std::mem::take(&mut adding.touched) {
            let Some(trace) = self.table.get(&id).filter(|trace| trace.phase == Phase::Waiting) else { continue };
            let facts = trace.facts(id, adding.moment.now);
            if let Some(verdict) = adding.rules.policies.decide_arrival(&facts) {
                self.conclude(id, verdict, adding.rules, adding.moment);
            }
        }
    }

    /// Spans of a trace that no policy kept come late, and its bytes are still held: so are these, so that it comes back whole. If one of them is an error,
    /// the policies are asked again.
    pub(super) fn linger(&mut self, adding: &mut Adding<'_>, run: &[Record], until: u64) {
        let Some(id) = run.first().map(|record| record.seen.id) else { return };
        let (rules, moment) = (adding.rules, adding.moment);
        let Some(trace) = self.table.get_mut(&id) else { return };
        let (last, fits) = (trace.tail.segment, trace.may_come_back(run.len(), rules, moment));
        if fits {
            trace.extend(&mut self.store, adding, self.arrivals, run);
        }
        if trace.tail.segment != last {
            self.lingering.hold(until, [trace.tail.segment]);
        }
        if !fits || !trace.may_come_back(0, rules, moment) {
            // Nor will it later, so that whoever sends more of it has nothing held and nobody asked.
            trace.phase = Phase::Dropped;
        } else if run.iter().any(|record| record.seen.is_error) {
            self.reconsider(id, adding);
        }
    }

    /// Asks the policies that are in force about a trace that lingers. If one keeps it now, all of it is sent.
    fn reconsider(&mut self, id: TraceId, adding: &Adding<'_>) {
        let (policies, moment) = (&adding.rules.policies, adding.moment);
        let Some(trace) = self.table.get_mut(&id) else { return };
        if policies.by_arrival() {
            // Noted of this arrival alone, and nothing else counts.
            if adding.arrival.generation != policies.generation {
                return;
            }
        } else if trace.generation != policies.generation {
            trace.bits = trace.observe(&self.store, policies).first().copied().unwrap_or(0);
            trace.generation = policies.generation;
        }
        let verdict = policies.decide(&trace.facts(id, moment.now));
        let Verdict::Kept(stamp) = verdict else { return };
        let Some(segments) = self.store.segments(trace.tail, trace.since, MOST_SPANS + 1) else { return };
        segments.iter().for_each(|segment| self.store.hold(*segment));
        trace.phase = Phase::Kept(stamp);
        trace.due = moment.tick();
        self.work.push_back(trace.work());
        self.stats.decide(verdict.outcome());
        // The table knows it already, and goes on to.
        self.stats.promoted.fetch_add(1, Ordering::Relaxed);
    }
}

impl Trace {
    /// What its spans take.
    fn held(&self) -> u64 {
        self.bytes + u64::from(self.spans) * SPAN_WORDS as u64
    }

    /// Whether a late error may bring it back with so many spans more: it is no larger than one that waits may be, and its spans are few enough to be
    /// looked for. Where there are more conditions than bits it may not: all of it would have to be read again for each error.
    pub(super) fn may_come_back(&self, more: usize, rules: &Rules, moment: Moment) -> bool {
        let most = rules.settings.maximum_trace_size;
        !rules.policies.is_wide()
            && self.spans as usize + more <= MOST_SPANS
            && self.held() <= moment.largest
            && (most == 0 || self.bytes <= most)
    }

    /// Stores spans behind those that are there. Says whether they are the first that came with their resource.
    fn extend(&mut self, store: &mut Store, adding: &mut Adding<'_>, arrival: u32, run: &[Record]) -> bool {
        let Some(scope) = run.first().map(|record| record.scope) else { return false };
        let headers = adding.headers(store, scope);
        let request = adding.arrival;
        let policies = &adding.rules.policies;
        let is_new = self.arrival != (arrival, headers.resource.0);
        if is_new {
            self.arrival = (arrival, headers.resource.0);
            self.bytes += request.header_size(scope);
            if policies.by_arrival() {
                (self.bits, self.times) = (0, Times::default());
            }
        }
        if self.generation != request.generation || request.generation != policies.generation {
            // Observed for other policies: all of it is read again when it is decided on.
            self.generation = policies.generation.wrapping_sub(1);
        }
        for record in run {
            if self.tail.segment != store.open_number() {
                store.hold(store.open_number());
            }
            let is_first = self.tail == Place::NONE;
            self.tail = store.span(self.tail, headers.scope.1, request.span_of(record));
            if is_first {
                // Only now: another segment may have been begun for this request since the trace was admitted.
                self.since = self.tail.segment;
            }
            self.spans = self.spans.saturating_add(1);
            self.bytes += request.size_of(record);
            self.randomness = record.seen.randomness.or(self.randomness);
            let mut bits = [self.bits | record.bits];
            policies.observer.duration(&mut self.times, &record.seen, &mut bits);
            [self.bits] = bits;
        }
        is_new
    }
}

impl Adding<'_> {
    /// The headers of a scope in the segment that is written to, stored if they are not the last ones there.
    fn headers(&mut self, store: &mut Store, scope: u32) -> Headers {
        let number = self.arrival.resource_of(scope);
        let open = store.open_number();
        let last = self.headers.filter(|last| last.segment == open);
        if let Some(last) = last.filter(|last| last.scope.0 == scope) {
            return last;
        }
        if self.headers.is_some() && last.is_none() {
            store.begin_again(self.space);
        }
        let resource = match last.filter(|last| last.resource.0 == number) {
            Some(last) => last.resource,
            None => (number, store.resource(self.arrival.resource_fields(number))),
        };
        let scope = (scope, store.scope(resource.1, self.arrival.scope_fields(scope)));
        let headers = Headers { segment: store.open_number(), resource, scope };
        self.headers = Some(headers);
        headers
    }
}
