//! A part of all traces, with what is known of each: whoever has its lock does only little at a time.

mod decide;
mod linger;
mod table;

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use kubewake_config::model::TailSampling;
use kubewake_otlp::probability::Randomness;
use tokio::sync::Notify;

pub(super) use self::decide::{Step, Work};
use self::linger::Lingering;
use super::{
    arrival::{Arrival, Record, TRACE_COST},
    cache::DecisionCache,
    id::{IdHash, TraceId},
    output::Kept,
    policy::{Policies, Stamp, Times, Verdict},
    store::{Place, Store},
};
use crate::core::{Charge, EarlyDecision, TailStats};

/// Decisions are made in steps of this length. The Collector's are of a second, which lets a trace wait up to a second longer.
pub(super) const TICK: Duration = Duration::from_millis(100);

/// So many traces are remembered, kept and dropped ones each, that were decided on at once for want of memory.
const HASTY: usize = 65_536;

/// Settings and policies that are in force.
pub(super) struct Rules {
    pub(super) settings: TailSampling,
    pub(super) policies: Policies,
    /// Of each shard, one at least.
    pub(super) traces: usize,
}

/// The moment of an arrival or a decision.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    /// Since the start of the processor.
    pub(super) now: Duration,
    /// There is no memory to let new traces wait.
    pub(super) overloaded: bool,
    /// The most bytes that a trace may have and wait.
    pub(super) largest: u64,
}

impl Moment {
    pub(super) fn tick(&self) -> u64 {
        ticks(self.now)
    }
}

/// So many whole ticks.
pub(super) fn ticks(time: Duration) -> u64 {
    (time.as_millis() / TICK.as_millis()) as u64
}

/// A shard.
pub(super) struct Shard {
    state: Mutex<State>,
    /// There is something to do before the time that was said.
    pub(super) news: Notify,
    /// There may be room for another trace, or nothing is left.
    pub(super) room: Notify,
}

pub(super) struct State {
    stats: Arc<TailStats>,
    table: HashMap<TraceId, Trace, IdHash>,
    hash: IdHash,
    /// The traces that wait, by the tick at which it is time, the oldest first. One that has moved to an earlier tick is still in
    /// the later one.
    wheel: BTreeMap<u64, VecDeque<TraceId>>,
    waiting: usize,
    /// Those that were decided on and are still known, the oldest first.
    decided: VecDeque<TraceId>,
    store: Store,
    kept: Option<DecisionCache>,
    dropped: Option<DecisionCache>,
    /// Decided on without waiting: kept, dropped.
    hasty: Option<(DecisionCache, DecisionCache)>,
    work: VecDeque<Work>,
    /// Dropped traces that a late error may bring back.
    lingering: Lingering,
    /// Requests so far.
    arrivals: u32,
    /// Traces that are new with the last one.
    admitted: usize,
    /// A task looks after this shard.
    attended: bool,
    /// It writes what it was given.
    writing: bool,
    /// It sleeps until that tick.
    asleep_until: u64,
    /// It is time for everything.
    pub(super) flushing: bool,
}

/// What is known of a trace.
struct Trace {
    bits: u64,
    times: Times,
    bytes: u64,
    /// The tick at which it is time, and later the one at which it was decided on.
    due: u64,
    born: u64,
    randomness: Option<Randomness>,
    /// Its last span.
    tail: Place,
    /// The first segment that it holds.
    since: u32,
    spans: u32,
    generation: u32,
    /// The arrival and the resource that its last span came with.
    arrival: (u32, u32),
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waiting,
    Kept(Stamp),
    /// No policy kept it. Its bytes are held until that tick, if there is memory, so that an error may still bring it back.
    Lingers(u32),
    Dropped,
}

impl Shard {
    pub(super) fn new(
        hash: IdHash,
        rules: &Rules,
        shards: usize,
        stats: &Arc<TailStats>,
        lingers: &Arc<AtomicBool>,
    ) -> Self {
        let state = State {
            stats: stats.clone(),
            table: HashMap::with_hasher(hash),
            hash,
            wheel: BTreeMap::new(),
            waiting: 0,
            decided: VecDeque::new(),
            store: Store::new(stats.clone()),
            kept: DecisionCache::new(rules.settings.sampled_cache_size.div_ceil(shards), true),
            dropped: DecisionCache::new(rules.settings.non_sampled_cache_size.div_ceil(shards), false),
            hasty: None,
            work: VecDeque::new(),
            lingering: Lingering::new(lingers.clone()),
            arrivals: 0,
            admitted: 0,
            attended: false,
            writing: false,
            asleep_until: 0,
            flushing: false,
        };
        Self { state: Mutex::new(state), news: Notify::new(), room: Notify::new() }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Caches of the sizes that are wanted now. Each knows most of what the one before it did and fits.
    pub(super) fn resize_caches(&mut self, old: &TailSampling, new: &TailSampling, shards: usize) {
        if old.sampled_cache_size != new.sampled_cache_size {
            resize(&mut self.kept, new.sampled_cache_size.div_ceil(shards), true);
        }
        if old.non_sampled_cache_size != new.non_sampled_cache_size {
            resize(&mut self.dropped, new.non_sampled_cache_size.div_ceil(shards), false);
        }
    }

    /// Whether as many traces wait as may.
    pub(super) fn is_full(&self, rules: &Rules) -> bool {
        self.waiting >= rules.traces
    }

    /// Whether nothing waits to be decided on or to be written.
    pub(super) fn is_idle(&self) -> bool {
        self.waiting == 0 && self.work.is_empty() && !self.writing
    }

    /// Takes this shard's part of a request, which `charge` covers. Returns the spans that need not wait: their numbers among the
    /// records, and what they get.
    pub(super) fn add(
        &mut self,
        arrival: &Arrival,
        shard: usize,
        charge: Charge,
        rules: &Rules,
        moment: Moment,
    ) -> Vec<(usize, Kept)> {
        let Some(share) = arrival.share(shard) else { return Vec::new() };
        self.store.begin(share.space);
        self.arrivals = self.arrivals.wrapping_add(1);
        let space = share.space;
        let mut adding =
            Adding { arrival, rules, moment, headers: None, space, at_once: Vec::new(), touched: Vec::new() };
        let mut first = 0;
        for run in arrival.records.chunk_by(|a, b| a.seen.id == b.seen.id && a.scope == b.scope) {
            if let Some(record) = run.first().filter(|record| usize::from(record.shard) == shard) {
                self.settle_arrival(&mut adding, arrival.resource_of(record.scope));
                self.run(&mut adding, first, run);
            }
            first += run.len();
        }
        // Before the last decisions, which may let go of it all.
        let new = std::mem::take(&mut self.admitted);
        self.store.end(charge, new * TRACE_COST);
        self.settle_arrival(&mut adding, u32::MAX);
        adding.at_once
    }

    /// Spans of one trace and one scope that stand side by side.
    fn run(&mut self, adding: &mut Adding<'_>, first: usize, run: &[Record]) {
        let Some(record) = run.first() else { return };
        match self.fate(record, run.len(), adding) {
            Fate::Waits => self.wait(adding, run),
            Fate::Kept(kept) => adding.at_once.extend((first..first + run.len()).map(|at| (at, kept))),
            Fate::Lingers(until) => self.linger(adding, run, until),
            Fate::Dropped => {}
        }
    }

    /// What becomes of so many spans of a trace that come now, this one first. One that was not known is known afterwards.
    fn fate(&mut self, first: &Record, spans: usize, adding: &Adding<'_>) -> Fate {
        let id = first.seen.id;
        if let Some(trace) = self.table.get(&id) {
            let late = trace.phase != Phase::Waiting;
            if late {
                let age = adding.moment.tick().saturating_sub(trace.due);
                self.stats.late_age.record(age * TICK.as_millis() as u64 / 1000);
            }
            return match trace.phase {
                Phase::Waiting => Fate::Waits,
                Phase::Kept(stamp) => Fate::Kept(Kept { stamp, randomness: trace.randomness }),
                Phase::Lingers(until) if self.lingering.lasts(until.into()) => Fate::Lingers(until.into()),
                Phase::Lingers(_) | Phase::Dropped => Fate::Dropped,
            };
        }
        if let Some(fate) = self.remembered(first.hash, spans as u64) {
            return fate;
        }
        self.stats.new_traces.fetch_add(1, Ordering::Relaxed);
        if adding.moment.overloaded {
            return self.decide_at_once(first, adding);
        }
        self.admit(id, adding);
        Fate::Waits
    }

    fn remembered(&self, hash: u64, spans: u64) -> Option<Fate> {
        let in_cache = |cache: &Option<DecisionCache>| cache.as_ref().and_then(|cache| cache.get(hash));
        if let Some(note) = in_cache(&self.kept) {
            self.stats.cached_kept.fetch_add(spans, Ordering::Relaxed);
            return Some(Fate::noted(note));
        }
        if in_cache(&self.dropped).is_some() {
            self.stats.cached_dropped.fetch_add(spans, Ordering::Relaxed);
            return Some(Fate::Dropped);
        }
        let (kept, dropped) = self.hasty.as_ref()?;
        let kept = kept.get(hash).map(Fate::noted);
        kept.or_else(|| dropped.get(hash).map(|_| Fate::Dropped))
    }

    /// There is no memory to wait: the trace is decided on by the randomness that the span which came first carries, or that of its id. Whoever
    /// sees another span of it first decides the same if spans agree on it, as they do unless some of them carry none.
    fn decide_at_once(&mut self, first: &Record, adding: &Adding<'_>) -> Fate {
        let (randomness, hash) = (first.seen.randomness, first.hash);
        let of_id = || Randomness::from_bits(first.seen.id as u64);
        let verdict = adding.rules.policies.decide_at_once(randomness.unwrap_or_else(of_id));
        self.stats.hurry(EarlyDecision::Overload);
        self.stats.decide(verdict.outcome());
        let caches = || Some((DecisionCache::new(HASTY, true)?, DecisionCache::new(HASTY, false)?));
        if self.hasty.is_none() {
            self.hasty = caches();
        }
        let Some((kept, dropped)) = &mut self.hasty else { return Fate::Dropped };
        match verdict {
            Verdict::Kept(stamp) => {
                kept.insert(hash, stamp.note());
                Fate::Kept(Kept { stamp, randomness })
            }
            _ => {
                dropped.insert(hash, 0);
                Fate::Dropped
            }
        }
    }
}

fn resize(cache: &mut Option<DecisionCache>, traces: usize, notes: bool) {
    *cache = match cache.take() {
        Some(cache) => cache.resized(traces),
        None => DecisionCache::new(traces, notes),
    };
}

impl Drop for State {
    fn drop(&mut self) {
        self.stats.traces.fetch_sub(self.table.len() as u64, Ordering::Relaxed);
    }
}

/// What becomes of spans.
enum Fate {
    Waits,
    Kept(Kept),
    /// They are held with those of their trace, until that tick.
    Lingers(u64),
    Dropped,
}

impl Fate {
    /// Of a trace that was kept, from a note in a cache: what randomness its spans carried is not in there.
    fn noted(note: u32) -> Self {
        Self::Kept(Kept { stamp: Stamp::from_note(note), randomness: None })
    }
}

/// A request that is being added.
struct Adding<'a> {
    arrival: &'a Arrival,
    rules: &'a Rules,
    moment: Moment,
    headers: Option<Headers>,
    /// What all of it takes in a segment.
    space: usize,
    at_once: Vec<(usize, Kept)>,
    /// Traces that came with the last resource, where each arrival is decided on by itself.
    touched: Vec<TraceId>,
}

/// The scope that was stored last, with its resource: which, and where.
#[derive(Clone, Copy)]
struct Headers {
    segment: u32,
    resource: (u32, u32),
    scope: (u32, u32),
}
