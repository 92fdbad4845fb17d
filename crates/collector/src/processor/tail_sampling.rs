//! `tail_sampling`: keeps or drops whole traces, decided when their spans have arrived.
//!
//! A request is read once, without a lock: the trace of each span, the policy conditions that the span meets,
//! and its shard. A shard copies its spans into segments and adds their conditions to their traces. When a
//! trace is due, it is decided by those recorded facts, so that only spans of kept traces are touched again.
//!
//! *Guaranteed:*
//! - Acknowledged data is held: its bytes, and the table entries of its traces, are charged to the pipeline's
//!   memory until it is handed on or dropped by a decision. Remembered decisions are not charged; they are
//!   bounded by `num_traces` and the sizes of the caches. A request for which there is no memory is refused as
//!   a whole. A refusal of the next component is waited out, as for any acknowledged data.
//! - A sender waits for no decision and for no exporter, except where `block_on_overflow` asks for it:
//!   decisions take the shard's lock for a few hundred traces at a time, and kept spans are written and handed
//!   on without it. Shards share counters and limits, and no lock.
//! - Late spans follow the decision on their trace as long as it is remembered: in the table, up to
//!   `num_traces` traces, or in the decision caches. While the bytes of a dropped trace linger, those of its
//!   late spans do, too, so that a trace that a late error brings back is whole.
//! - A trace for which there is no room is decided early, never dropped for that reason alone; only
//!   `maximum_trace_size_bytes` does so.
//! - When memory runs short, new traces do not wait: they are kept or dropped by their randomness alone, and
//!   kept spans record the threshold (`ot=th`), so that counts stay true. That ends by itself when there is
//!   memory again. Lingering bytes for late errors are given up before that.
//! - Spans of different requests leave as different requests of one batch, so that a batch that a backend
//!   refuses can be split and retried.
//! - New policies and a shorter wait apply to waiting traces, too; limits of unchanged policies keep the part
//!   that is used up.
//!
//! *Assumed*: all spans of a trace come to this process; see the `loadbalancing` exporter.
//!
//! *Not done*: the order of spans and their senders are not kept. Nothing survives the process. The number of
//! shards is fixed while it runs. Decisions that are evicted from a cache are forgotten, and late spans are a
//! new trace then.

mod acknowledged;
mod arrival;
mod decision_cache;
mod memory_pressure;
mod outbox;
mod output;
mod output_writer;
mod policy;
mod shard;
mod span_store;
#[cfg(test)]
mod tests;
mod trace_id;
mod wire;

use std::{
    future::Future,
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use arc_swap::{ArcSwap, ArcSwapOption};
use futures_util::FutureExt;
use kubewake_config::{ComponentId, model::TailSamplingProcessor as Settings};
use tokio::time::Instant;

use self::{
    arrival::{ArrivalError, ParsedArrival},
    outbox::Outbox,
    output::{KeepRecord, OutputOptions},
    policy::PolicySet,
    shard::{SamplingMoment, ShardStep, TICK_INTERVAL, TailSamplingRules, TraceShard},
    trace_id::TraceIdHashBuilder,
};
use crate::{
    components::{BuildError, PrepareProcessor, PreparedProcessor, ProcessorContext, ProcessorSite},
    core::{
        Batch, Charge, ConsumeOutcome, Consumer, ConsumerFanout, DropReason, OverflowPolicy, Part, Processor,
        ProcessorStats, Refusal, TailSamplerStats,
    },
};

/// With fewer traces in a shard its actual share of a limit would be far from the limit.
const MIN_TRACES_PER_SHARD: usize = 1024;

pub(crate) fn prepare(settings: &Settings, _: &ProcessorContext<'_>) -> Result<PreparedProcessor, BuildError> {
    Ok(PreparedProcessor::node(PreparedSampler(settings.clone())))
}

struct PreparedSampler(Settings);

impl PrepareProcessor for PreparedSampler {
    type Node = TailSampler;

    fn start(self, site: &ProcessorSite<'_>) -> Arc<TailSampler> {
        let stats = site.registry.processor(site.id, site.signal);
        TailSampler::new(site.id, self.0, stats, site.registry.sampler(site.id))
    }

    fn reconfigure(self, node: &TailSampler, _: &ProcessorSite<'_>) {
        node.reconfigure(self.0);
    }
}

/// The tail sampler in one pipeline.
pub struct TailSampler {
    id: ComponentId,
    rules: ArcSwap<TailSamplingRules>,
    hash: TraceIdHashBuilder,
    lanes: Vec<ShardLane>,
    next: ConsumerFanout,
    start: Instant,
    stats: Arc<ProcessorStats>,
    sampling: Arc<TailSamplerStats>,
    /// An empty charge, from which memory for output is reserved.
    account: ArcSwapOption<Charge>,
    overloaded: AtomicBool,
    /// Whether bytes of dropped traces linger in any shard.
    lingers: Arc<AtomicBool>,
    retired: AtomicBool,
}

/// A shard and its outbox.
struct ShardLane {
    shard: TraceShard,
    outbox: Arc<Outbox>,
}

/// A request, with the facts that were read from it.
struct ArrivedRequest {
    part: Part,
    arrival: ParsedArrival,
}

impl TailSampler {
    /// Creates a sampler that is not connected to consumers yet.
    pub fn new(
        id: &ComponentId,
        settings: Settings,
        stats: Arc<ProcessorStats>,
        sampling: Arc<TailSamplerStats>,
    ) -> Arc<Self> {
        let shards = number_of_shards(&settings);
        let rules = TailSamplingRules::new(settings, shards, &sampling, None);
        let hash = TraceIdHashBuilder::new();
        let lingers = Arc::default();
        let shard = || TraceShard::new(hash, &rules, shards, &sampling, &lingers);
        let lane = |_| ShardLane { shard: shard(), outbox: Arc::default() };
        Arc::new(Self {
            id: id.clone(),
            lanes: (0..shards).map(lane).collect(),
            rules: ArcSwap::from_pointee(rules),
            hash,
            next: ConsumerFanout::default(),
            start: Instant::now(),
            stats,
            sampling,
            account: ArcSwapOption::empty(),
            overloaded: AtomicBool::new(false),
            lingers,
            retired: AtomicBool::new(false),
        })
    }

    /// Applies new settings. Waiting traces still wait, no longer than the new wait, and are decided by the new
    /// policies.
    pub fn reconfigure(&self, settings: Settings) {
        let old = self.rules.load_full();
        let new = Arc::new(TailSamplingRules::new(settings, self.lanes.len(), &self.sampling, Some(&old.policies)));
        self.rules.store(new.clone());
        for lane in &self.lanes {
            lane.shard.state().resize_caches(&old.settings, &new.settings, self.lanes.len());
        }
        for lane in self.lanes.iter().filter(|_| new.settings.decision_wait < old.settings.decision_wait) {
            lane.shard.state().shorten_wait(new.settings.decision_wait);
            lane.shard.wakeup.notify_one();
        }
    }

    /// Reads all requests of a batch, if there is memory for the facts.
    fn read_requests(&self, batch: Batch, rules: &TailSamplingRules) -> Result<Vec<ArrivedRequest>, Refusal> {
        let read = |part: Part| {
            let bytes = part.bytes.clone();
            let shards = self.lanes.len();
            let arrival = ParsedArrival::read(bytes, part.items, &rules.policies, &self.hash, shards, &part.charge);
            let arrival = arrival.map_err(|error| match error {
                ArrivalError::TooLong => Refusal::invalid("the request is too large to be sampled"),
                ArrivalError::NoMemory(needed) => self.read_refusal(&part.charge, needed),
            })?;
            Ok(ArrivedRequest { part, arrival })
        };
        batch.into_parts().into_iter().map(read).collect()
    }

    /// Whether one of the request's shards has reached its limit of waiting traces.
    fn is_full(&self, requests: &[ArrivedRequest], rules: &TailSamplingRules) -> bool {
        let gets_some = |lane: usize| requests.iter().any(|request| request.arrival.share(lane).is_some());
        let mut full = self.lanes.iter().enumerate().filter(|(at, _)| gets_some(*at));
        // A retired sampler decides at once, so that nobody has to wait.
        !self.is_retired() && full.any(|(_, lane)| lane.shard.state().is_full(rules))
    }

    /// Accepts requests for which memory was reserved.
    fn accept(self: &Arc<Self>, requests: Vec<ArrivedRequest>, charges: Vec<Charge>) {
        let rules = self.rules.load_full();
        let mut charges = charges.into_iter();
        for ArrivedRequest { part, arrival } in requests {
            self.open_account(&part.charge);
            self.stats.incoming.fetch_add(arrival.records.len() as u64, Ordering::Relaxed);
            let moment = self.observe_moment();
            for (at, lane) in self.lanes.iter().enumerate() {
                if arrival.share(at).is_none() {
                    continue;
                }
                let charge = charges.next().unwrap_or_else(Charge::exempt);
                let (at_once, attend) = lane.add(&arrival, at, charge, &rules, moment, self.is_retired());
                if attend {
                    tokio::spawn(self.clone().supervise_shard(at));
                }
                self.forward(lane, &part, &arrival, &at_once, &rules);
            }
        }
    }

    /// Serves a shard until it is empty. A panic in there would be a defect of ours, and costs the spans that
    /// were being written, not the shard.
    async fn supervise_shard(self: Arc<Self>, at: usize) {
        while AssertUnwindSafe(self.clone().run_shard(at)).catch_unwind().await.is_err() {
            tracing::error!(processor = %self.id, shard = at, "a sampling decision panicked; its shard continues");
        }
    }

    /// Decides on a shard's traces when they are due, until the shard is empty.
    async fn run_shard(self: Arc<Self>, at: usize) {
        let Some(lane) = self.lanes.get(at) else { return };
        loop {
            let rules = self.rules.load_full();
            let moment = self.observe_moment();
            let began = Instant::now();
            let step = lane.shard.state().step(&rules, moment);
            if !matches!(step, ShardStep::SleepUntil(_)) {
                self.sampling.decision_time.record(began.elapsed().as_millis() as u64);
            }
            lane.shard.room.notify_waiters();
            match step {
                ShardStep::Write(work, pages) => {
                    let segments = self.write(lane, work, pages, &rules).await;
                    lane.shard.state().finish_write(&segments);
                    tokio::task::yield_now().await;
                }
                ShardStep::Continue => tokio::task::yield_now().await,
                ShardStep::SleepUntil(tick) => {
                    let time = TICK_INTERVAL.saturating_mul(u32::try_from(tick).unwrap_or(u32::MAX));
                    // Whichever comes first; then the shard is checked again.
                    let _ = tokio::time::timeout_at(self.start + time, lane.shard.wakeup.notified()).await;
                }
                ShardStep::Idle => return,
            }
        }
    }

    fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Relaxed)
    }
}

impl ShardLane {
    /// Gives a shard its part of a request. Returns spans that need not wait, and whether the shard needs a
    /// task.
    fn add(
        &self,
        arrival: &ParsedArrival,
        at: usize,
        charge: Charge,
        rules: &TailSamplingRules,
        moment: SamplingMoment,
        retired: bool,
    ) -> (Vec<(usize, KeepRecord)>, bool) {
        let mut state = self.shard.state();
        let at_once = state.add(arrival, at, charge, rules, moment);
        state.flushing |= retired;
        let attend = state.claim_attention(moment);
        let news = state.has_earlier_work() || retired;
        drop(state);
        if news {
            self.shard.wakeup.notify_one();
        }
        (at_once, attend)
    }

    /// Resolves when no trace waits, and everything was handed on.
    async fn wait_flushed(&self) {
        loop {
            let room = self.shard.room.notified();
            let sent = self.outbox.sent.notified();
            tokio::pin!(room, sent);
            // Registered before the check, so that no notification in between is missed.
            room.as_mut().enable();
            sent.as_mut().enable();
            if self.shard.state().is_idle() && self.outbox.is_empty() {
                return;
            }
            tokio::select! {
                () = room => {}
                () = sent => {}
            }
        }
    }
}

impl TailSamplingRules {
    fn new(settings: Settings, shards: usize, stats: &TailSamplerStats, old: Option<&PolicySet>) -> Self {
        let policies = PolicySet::new(&settings, stats, old);
        Self { traces: settings.num_traces.div_ceil(shards).max(1), policies, settings }
    }

    fn output_options(&self, late: bool) -> OutputOptions<'_> {
        OutputOptions { stamps: &self.policies.stamps, record: self.settings.record_policy, late }
    }
}

impl AsRef<ConsumerFanout> for TailSampler {
    fn as_ref(&self) -> &ConsumerFanout {
        &self.next
    }
}

impl Consumer for TailSampler {
    fn consume(self: Arc<Self>, batch: Batch, pressure: OverflowPolicy) -> ConsumeOutcome {
        let items = batch.items() as u64;
        if pressure == OverflowPolicy::Wait {
            return ConsumeOutcome::later(async move { self.accept_acknowledged(batch).await });
        }
        let rules = self.rules.load_full();
        let requests = match self.read_requests(batch, &rules) {
            Ok(requests) => requests,
            Err(refusal) => return self.refuse(items, refusal),
        };
        if rules.settings.block_on_overflow && self.is_full(&requests, &rules) {
            return ConsumeOutcome::later(async move { self.accept_when_there_is_room(requests).await });
        }
        match self.reserve(&requests) {
            Some(charges) => {
                self.accept(requests, charges);
                ConsumeOutcome::Now(Ok(()))
            }
            None => {
                let refusal = self.hold_refusal(&requests);
                self.refuse(items, refusal)
            }
        }
    }

    fn count_refused(&self, _: &Batch) {}

    fn count_lost(&self, batch: &Batch, reason: DropReason) {
        self.next.count_loss(batch, reason);
    }
}

impl TailSampler {
    /// Makes all waiting traces due.
    fn expire_all(&self) {
        for lane in &self.lanes {
            let mut state = lane.shard.state();
            state.flushing |= !state.is_idle();
            drop(state);
            lane.shard.wakeup.notify_one();
        }
    }

    fn refuse(&self, items: u64, refusal: Refusal) -> ConsumeOutcome {
        self.stats.refused.fetch_add(items, Ordering::Relaxed);
        ConsumeOutcome::Now(Err(refusal))
    }
}

impl Processor for TailSampler {
    fn output(&self) -> &ConsumerFanout {
        &self.next
    }

    fn retire(&self) {
        self.retired.store(true, Ordering::Relaxed);
        self.expire_all();
        // No late error can arrive here any more.
        self.give_up_lingering(0);
    }

    fn flush<'a>(&'a self) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(async move {
            self.expire_all();
            for lane in &self.lanes {
                lane.wait_flushed().await;
            }
        })
    }
}

impl Drop for TailSampler {
    fn drop(&mut self) {
        // Counters outlive the sampler, and this one is a state.
        if self.overloaded.swap(false, Ordering::Relaxed) {
            self.sampling.overloaded.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// One shard for each core, but so few that each gets a sufficient share of every limit.
fn number_of_shards(settings: &Settings) -> usize {
    if settings.num_shards > 0 {
        return settings.num_shards;
    }
    let limits = [settings.num_traces, settings.sampled_cache_size, settings.non_sampled_cache_size];
    let least = limits.into_iter().filter(|limit| *limit > 0).min().unwrap_or(0);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    cores.min(least / MIN_TRACES_PER_SHARD).clamp(1, 256)
}
