//! A shard of all traces, with the facts about each. Its lock is held for short steps only.

mod decide;
mod linger;
mod trace_table;

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::{
        Arc, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use kubewake_config::model::TailSamplingProcessor;
use kubewake_otlp::probability::Randomness;
use kubewake_runtime::lock::Mutex;
use tokio::sync::Notify;

pub(super) use self::decide::{ShardStep, TraceWork};
use self::linger::LingeringTraces;
use super::{
    arrival::{ParsedArrival, SpanRecord, TRACE_COST_BYTES},
    decision_cache::TraceDecisionCache,
    output::KeepRecord,
    policy::{DecisionStamp, PolicySet, SamplingDecision, TraceDuration},
    span_store::{SpanPosition, SpanStore},
    trace_id::{TraceId, TraceIdHashBuilder},
};
use crate::core::{Charge, EarlyDecision, TailSamplerStats};

/// Interval of decisions. The Collector's is one second, which lets a trace wait up to a second longer.
pub(super) const TICK_INTERVAL: Duration = Duration::from_millis(100);

/// Number of decisions under overload that are remembered, kept and dropped ones each.
const MAX_OVERLOAD_DECISIONS: usize = 65_536;

/// The settings and policies that apply now.
pub(super) struct TailSamplingRules {
    pub(super) settings: TailSamplingProcessor,
    pub(super) policies: PolicySet,
    /// Limit of the traces of each shard, one at least.
    pub(super) traces: usize,
}

/// The time and the load at an arrival or a decision.
#[derive(Clone, Copy, Debug)]
pub(super) struct SamplingMoment {
    /// Time since the start of the processor.
    pub(super) now: Duration,
    /// There is no memory to let new traces wait.
    pub(super) overloaded: bool,
    /// Limit of the bytes of a waiting trace.
    pub(super) largest: u64,
}

impl SamplingMoment {
    pub(super) fn tick(&self) -> u64 {
        ticks(self.now)
    }
}

pub(super) fn ticks(time: Duration) -> u64 {
    (time.as_millis() / TICK_INTERVAL.as_millis()) as u64
}

pub(super) struct TraceShard {
    state: Mutex<TraceShardState>,
    /// Notified when there is something to do before the task's timer.
    pub(super) wakeup: Notify,
    /// Notified when there may be room for another trace, or the shard is empty.
    pub(super) room: Notify,
}

pub(super) struct TraceShardState {
    stats: Arc<TailSamplerStats>,
    table: HashMap<TraceId, TraceEntry, TraceIdHashBuilder>,
    hash: TraceIdHashBuilder,
    /// The waiting traces by the tick at which they are due, the oldest first. A trace that has moved to an
    /// earlier tick is still listed under the later one.
    wheel: BTreeMap<u64, VecDeque<TraceId>>,
    waiting: usize,
    /// Decided traces that the table still has, the oldest first.
    decided: VecDeque<TraceId>,
    store: SpanStore,
    kept: Option<TraceDecisionCache>,
    dropped: Option<TraceDecisionCache>,
    /// Decisions without a wait: kept, dropped.
    overload_decisions: Option<(TraceDecisionCache, TraceDecisionCache)>,
    work: VecDeque<TraceWork>,
    /// Dropped traces that a late error may bring back.
    lingering: LingeringTraces,
    arrivals: u32,
    /// Traces that the last arrival added.
    admitted: usize,
    /// A task serves this shard.
    has_task: bool,
    /// The task is writing spans.
    writing: bool,
    /// The task sleeps until that tick.
    asleep_until: u64,
    /// All waiting traces are due.
    pub(super) flushing: bool,
}

struct TraceEntry {
    bits: u64,
    times: TraceDuration,
    bytes: u64,
    /// The tick at which the trace is due, and later the one at which it was decided.
    due: u64,
    born: u64,
    randomness: Option<Randomness>,
    tail: SpanPosition,
    /// The first segment that the trace holds.
    first_segment: u32,
    spans: u32,
    generation: u32,
    /// The arrival and the resource of its last span.
    arrival: (u32, u32),
    phase: TracePhase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TracePhase {
    Waiting,
    Kept(DecisionStamp),
    /// No policy kept the trace. Its bytes are held until that tick, if there is memory, so that an error may
    /// still revive it.
    Lingering(u32),
    Dropped,
}

impl TraceShard {
    pub(super) fn new(
        hash: TraceIdHashBuilder,
        rules: &TailSamplingRules,
        shards: usize,
        stats: &Arc<TailSamplerStats>,
        lingers: &Arc<AtomicBool>,
    ) -> Self {
        let state = TraceShardState {
            stats: stats.clone(),
            table: HashMap::with_hasher(hash),
            hash,
            wheel: BTreeMap::new(),
            waiting: 0,
            decided: VecDeque::new(),
            store: SpanStore::new(stats.clone()),
            kept: TraceDecisionCache::new(rules.settings.sampled_cache_size.div_ceil(shards), true),
            dropped: TraceDecisionCache::new(rules.settings.non_sampled_cache_size.div_ceil(shards), false),
            overload_decisions: None,
            work: VecDeque::new(),
            lingering: LingeringTraces::new(lingers.clone()),
            arrivals: 0,
            admitted: 0,
            has_task: false,
            writing: false,
            asleep_until: 0,
            flushing: false,
        };
        Self { state: Mutex::new(state), wakeup: Notify::new(), room: Notify::new() }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, TraceShardState> {
        self.state.lock()
    }
}

impl TraceShardState {
    /// Resizes the decision caches. Each keeps most entries of its predecessor that fit.
    pub(super) fn resize_caches(&mut self, old: &TailSamplingProcessor, new: &TailSamplingProcessor, shards: usize) {
        if old.sampled_cache_size != new.sampled_cache_size {
            resize(&mut self.kept, new.sampled_cache_size.div_ceil(shards), true);
        }
        if old.non_sampled_cache_size != new.non_sampled_cache_size {
            resize(&mut self.dropped, new.non_sampled_cache_size.div_ceil(shards), false);
        }
    }

    /// Whether the limit of waiting traces is reached.
    pub(super) fn is_full(&self, rules: &TailSamplingRules) -> bool {
        self.waiting >= rules.traces
    }

    /// Whether no trace waits to be decided or written.
    pub(super) fn is_idle(&self) -> bool {
        self.waiting == 0 && self.work.is_empty() && !self.writing
    }

    /// Adds this shard's part of a request, which `charge` covers. Returns the spans that need not wait: their
    /// indices among the records, and their fates.
    pub(super) fn add(
        &mut self,
        arrival: &ParsedArrival,
        shard: usize,
        charge: Charge,
        rules: &TailSamplingRules,
        moment: SamplingMoment,
    ) -> Vec<(usize, KeepRecord)> {
        let Some(share) = arrival.share(shard) else { return Vec::new() };
        self.store.begin_arrival(share.space);
        self.arrivals = self.arrivals.wrapping_add(1);
        let space = share.space;
        let mut adding =
            ArrivalInsert { arrival, rules, moment, headers: None, space, at_once: Vec::new(), touched: Vec::new() };
        let mut first = 0;
        for run in arrival.records.chunk_by(|a, b| a.seen.id == b.seen.id && a.scope == b.scope) {
            if let Some(record) = run.first().filter(|record| usize::from(record.shard) == shard) {
                self.decide_arrival(&mut adding, arrival.resource_of_scope(record.scope));
                self.add_run(&mut adding, first, run);
            }
            first += run.len();
        }
        // Before the last decisions, which may release all of the arrival.
        let new = std::mem::take(&mut self.admitted);
        self.store.end_arrival(charge, new * TRACE_COST_BYTES);
        self.decide_arrival(&mut adding, u32::MAX);
        adding.at_once
    }

    /// Adds consecutive spans of one trace and one scope.
    fn add_run(&mut self, adding: &mut ArrivalInsert<'_>, first: usize, run: &[SpanRecord]) {
        let Some(record) = run.first() else { return };
        match self.resolve_fate(record, run.len(), adding) {
            SpanFate::Wait => self.extend_waiting(adding, run),
            SpanFate::Keep(kept) => adding.at_once.extend((first..first + run.len()).map(|at| (at, kept))),
            SpanFate::Linger(until) => self.extend_lingering(adding, run, until),
            SpanFate::Drop => {}
        }
    }

    /// The fate of so many arriving spans of a trace, this one first. An unknown trace is added to the table.
    fn resolve_fate(&mut self, first: &SpanRecord, spans: usize, adding: &ArrivalInsert<'_>) -> SpanFate {
        let id = first.seen.id;
        if let Some(trace) = self.table.get(&id) {
            let late = trace.phase != TracePhase::Waiting;
            if late {
                let age = adding.moment.tick().saturating_sub(trace.due);
                self.stats.late_age.record(age * TICK_INTERVAL.as_millis() as u64 / 1000);
            }
            return match trace.phase {
                TracePhase::Waiting => SpanFate::Wait,
                TracePhase::Kept(stamp) => SpanFate::Keep(KeepRecord { stamp, randomness: trace.randomness }),
                TracePhase::Lingering(until) if self.lingering.is_held(until.into()) => SpanFate::Linger(until.into()),
                TracePhase::Lingering(_) | TracePhase::Dropped => SpanFate::Drop,
            };
        }
        if let Some(fate) = self.cached_fate(first.hash, spans as u64) {
            return fate;
        }
        self.stats.new_traces.fetch_add(1, Ordering::Relaxed);
        if adding.moment.overloaded {
            return self.decide_in_overload(first, adding);
        }
        self.admit(id, adding);
        SpanFate::Wait
    }

    fn cached_fate(&self, hash: u64, spans: u64) -> Option<SpanFate> {
        let in_cache = |cache: &Option<TraceDecisionCache>| cache.as_ref().and_then(|cache| cache.get(hash));
        if let Some(note) = in_cache(&self.kept) {
            self.stats.cached_kept.fetch_add(spans, Ordering::Relaxed);
            return Some(SpanFate::from_note(note));
        }
        if in_cache(&self.dropped).is_some() {
            self.stats.cached_dropped.fetch_add(spans, Ordering::Relaxed);
            return Some(SpanFate::Drop);
        }
        let (kept, dropped) = self.overload_decisions.as_ref()?;
        let kept = kept.get(hash).map(SpanFate::from_note);
        kept.or_else(|| dropped.get(hash).map(|_| SpanFate::Drop))
    }

    /// Decides a trace without memory to wait, by the randomness that its first span carries, or by that of its
    /// id. Another process that sees a different span first decides the same if the spans agree on the
    /// randomness, as they do unless some of them carry none.
    fn decide_in_overload(&mut self, first: &SpanRecord, adding: &ArrivalInsert<'_>) -> SpanFate {
        let randomness = first.seen.randomness;
        let hash = first.hash;
        let of_id = || Randomness::from_bits(first.seen.id as u64);
        let verdict = adding.rules.policies.decide_in_overload(randomness.unwrap_or_else(of_id));
        self.stats.count_early_decision(EarlyDecision::Overload);
        self.stats.count_decision(verdict.outcome());
        let caches = || {
            Some((
                TraceDecisionCache::new(MAX_OVERLOAD_DECISIONS, true)?,
                TraceDecisionCache::new(MAX_OVERLOAD_DECISIONS, false)?,
            ))
        };
        if self.overload_decisions.is_none() {
            self.overload_decisions = caches();
        }
        let Some((kept, dropped)) = &mut self.overload_decisions else { return SpanFate::Drop };
        match verdict {
            SamplingDecision::Kept(stamp) => {
                kept.insert(hash, stamp.note());
                SpanFate::Keep(KeepRecord { stamp, randomness })
            }
            _ => {
                dropped.insert(hash, 0);
                SpanFate::Drop
            }
        }
    }
}

fn resize(cache: &mut Option<TraceDecisionCache>, traces: usize, notes: bool) {
    *cache = match cache.take() {
        Some(cache) => cache.resized(traces),
        None => TraceDecisionCache::new(traces, notes),
    };
}

impl Drop for TraceShardState {
    fn drop(&mut self) {
        self.stats.traces.fetch_sub(self.table.len() as u64, Ordering::Relaxed);
    }
}

enum SpanFate {
    Wait,
    Keep(KeepRecord),
    /// The spans are held with their trace's, until that tick.
    Linger(u64),
    Drop,
}

impl SpanFate {
    /// The record of a kept trace from a cache's note, which does not contain the randomness of its spans.
    fn from_note(note: u32) -> Self {
        Self::Keep(KeepRecord { stamp: DecisionStamp::from_note(note), randomness: None })
    }
}

/// A request while it is being added.
struct ArrivalInsert<'a> {
    arrival: &'a ParsedArrival,
    rules: &'a TailSamplingRules,
    moment: SamplingMoment,
    headers: Option<StoredHeaders>,
    /// The bytes that the request takes in a segment.
    space: usize,
    at_once: Vec<(usize, KeepRecord)>,
    /// Traces of the last resource, where each arrival is decided by itself.
    touched: Vec<TraceId>,
}

/// The scope that was stored last, with its resource: the indices, and the positions.
#[derive(Clone, Copy)]
struct StoredHeaders {
    segment: u32,
    resource: (u32, u32),
    scope: (u32, u32),
}
