//! `tail_sampling`: keeps whole traces, decided on when their spans are there.
//!
//! A request is read once, without a lock: each span's trace, what it says to the policies, and which shard it goes to. A shard copies its
//! spans into segments and adds what they say to their traces. When it is time, a trace is judged by what was noted of it, so that
//! only the spans of kept traces are ever touched again.
//!
//! *Guarantees.*
//! - What was acknowledged is held: its bytes, and the places of its traces in the table, are charged to the pipeline's memory until it is handed on or
//!   dropped by a decision. Decisions that are remembered are beside that, and bounded by `num_traces` and the sizes of the caches. A request for which there is no memory is refused as a whole. The next step's refusal is waited out, as for anything
//!   that was acknowledged.
//! - A sender waits for no decision and for no exporter, except where `block_on_overflow` asks for it: decisions take the shard's lock for a few
//!   hundred traces at a time, and what is kept is written and handed on without it. Shards share counters and limits, and no lock.
//! - Spans that come late follow the decision on their trace as long as it is remembered: in the table, up to `num_traces` traces, or in
//!   the decision caches. While the bytes of a dropped one linger, those of its late spans do, too, so that what a late error brings back is whole.
//! - A trace for which there is no room is decided on early, never dropped for that reason alone; only `maximum_trace_size_bytes` does so.
//! - When memory runs short, new traces do not wait: they are kept or dropped by their randomness alone, and kept spans say at which
//!   threshold (`ot=th`), so that counts stay true. That ends by itself when there is memory again. What lingers for late errors is given up before that.
//! - Spans of different requests leave as different requests of one batch, so that what a backend refuses can be taken apart.
//! - New policies and a shorter wait are in force for what waits already; limits of policies that did not change keep what they have used.
//!
//! *Assumes* that all spans of a trace come to this process; see the `loadbalancing` exporter.
//!
//! *Does not* keep the order of spans, nor know who sent them. Does not survive the process. Does not
//! change the number of shards while it runs. Decisions that are pushed out of a cache are forgotten, and late spans are a new trace then.

mod acknowledged;
mod arrival;
mod cache;
mod id;
mod outbox;
mod output;
mod policy;
mod pressure;
mod shard;
mod store;
#[cfg(test)]
mod tests;
mod wire;
mod write;

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
use kubewake_config::{ComponentId, model::TailSampling as Settings};
use tokio::time::Instant;

use self::{
    arrival::{Arrival, NotRead},
    id::IdHash,
    outbox::Outbox,
    output::{Kept, Marks},
    policy::Policies,
    shard::{Moment, Rules, Shard, Step, TICK},
};
use crate::core::{
    Answer, Batch, Charge, Consumer, DropReason, Link, Part, Pressure, Processor, ProcessorStats, Refusal, TailStats,
};

/// With fewer traces in a shard than that its share of a limit would be far from the limit.
const TRACES_PER_SHARD: usize = 1024;

/// The processor, in one pipeline.
pub struct TailSampler {
    id: ComponentId,
    rules: ArcSwap<Rules>,
    hash: IdHash,
    lanes: Vec<Lane>,
    next: Link,
    start: Instant,
    stats: Arc<ProcessorStats>,
    sampling: Arc<TailStats>,
    /// A charge for nothing, to reserve memory for what is written.
    account: ArcSwapOption<Charge>,
    overloaded: AtomicBool,
    /// Bytes of dropped traces linger in a shard.
    lingers: Arc<AtomicBool>,
    retired: AtomicBool,
}

/// A shard with what leaves it.
struct Lane {
    shard: Shard,
    outbox: Arc<Outbox>,
}

/// A request that was read.
struct Request {
    part: Part,
    arrival: Arrival,
}

impl TailSampler {
    /// A sampler that leads nowhere yet.
    pub fn new(
        id: &ComponentId,
        settings: Settings,
        stats: Arc<ProcessorStats>,
        sampling: Arc<TailStats>,
    ) -> Arc<Self> {
        let shards = number_of_shards(&settings);
        let rules = Rules::new(settings, shards, &sampling, None);
        let (hash, lingers) = (IdHash::new(), Arc::default());
        let shard = || Shard::new(hash, &rules, shards, &sampling, &lingers);
        let lane = |_| Lane { shard: shard(), outbox: Arc::default() };
        Arc::new(Self {
            id: id.clone(),
            lanes: (0..shards).map(lane).collect(),
            rules: ArcSwap::from_pointee(rules),
            hash,
            next: Link::default(),
            start: Instant::now(),
            stats,
            sampling,
            account: ArcSwapOption::empty(),
            overloaded: AtomicBool::new(false),
            lingers,
            retired: AtomicBool::new(false),
        })
    }

    /// Puts new settings in force; what waits still waits, no longer than it is to now, and is decided on by the new policies.
    pub fn reconfigure(&self, settings: Settings) {
        let old = self.rules.load_full();
        let new = Arc::new(Rules::new(settings, self.lanes.len(), &self.sampling, Some(&old.policies)));
        self.rules.store(new.clone());
        for lane in &self.lanes {
            lane.shard.state().resize_caches(&old.settings, &new.settings, self.lanes.len());
        }
        for lane in self.lanes.iter().filter(|_| new.settings.decision_wait < old.settings.decision_wait) {
            lane.shard.state().shorten(new.settings.decision_wait);
            lane.shard.news.notify_one();
        }
    }

    /// Reads all requests of a batch, if there is memory for what is noted of them.
    fn read(&self, batch: Batch, rules: &Rules) -> Result<Vec<Request>, Refusal> {
        let read = |part: Part| {
            let (bytes, shards) = (part.bytes.clone(), self.lanes.len());
            let arrival = Arrival::read(bytes, part.items, &rules.policies, &self.hash, shards, &part.charge);
            let arrival = arrival.map_err(|error| match error {
                NotRead::TooLong => Refusal::invalid("the request is too long to be sampled"),
                NotRead::NoMemory(needed) => self.unread(&part.charge, needed),
            })?;
            Ok(Request { part, arrival })
        };
        batch.into_parts().into_iter().map(read).collect()
    }

    /// Whether a shard that gets some of it has as many traces as may wait.
    fn is_full(&self, requests: &[Request], rules: &Rules) -> bool {
        let gets_some = |lane: usize| requests.iter().any(|request| request.arrival.share(lane).is_some());
        let mut full = self.lanes.iter().enumerate().filter(|(at, _)| gets_some(*at));
        // One that went decides at once, so that nobody need wait.
        !self.retired() && full.any(|(_, lane)| lane.shard.state().is_full(rules))
    }

    /// Takes requests for which memory was reserved.
    fn accept(self: &Arc<Self>, requests: Vec<Request>, charges: Vec<Charge>) {
        let rules = self.rules.load_full();
        let mut charges = charges.into_iter();
        for Request { part, arrival } in requests {
            self.open_account(&part.charge);
            self.stats.incoming.fetch_add(arrival.records.len() as u64, Ordering::Relaxed);
            let moment = self.moment();
            for (at, lane) in self.lanes.iter().enumerate() {
                if arrival.share(at).is_none() {
                    continue;
                }
                let charge = charges.next().unwrap_or_else(Charge::free);
                let (at_once, attend) = lane.add(&arrival, at, charge, &rules, moment, self.retired());
                if attend {
                    tokio::spawn(self.clone().look_after(at));
                }
                self.forward(lane, &part, &arrival, &at_once, &rules);
            }
        }
    }

    /// Looks after a shard until it holds nothing. A panic there would be a mistake of ours, and costs what was being written, not the shard.
    async fn look_after(self: Arc<Self>, at: usize) {
        while AssertUnwindSafe(self.clone().attend(at)).catch_unwind().await.is_err() {
            tracing::error!(processor = %self.id, shard = at, "a decision broke; the shard goes on");
        }
    }

    /// Decides on what a shard holds when it is time, until it holds nothing.
    async fn attend(self: Arc<Self>, at: usize) {
        let Some(lane) = self.lanes.get(at) else { return };
        loop {
            let rules = self.rules.load_full();
            let (moment, began) = (self.moment(), Instant::now());
            let step = lane.shard.state().step(&rules, moment);
            if !matches!(step, Step::Until(_)) {
                self.sampling.decision_time.record(began.elapsed().as_millis() as u64);
            }
            lane.shard.room.notify_waiters();
            match step {
                Step::Write(work, pages) => {
                    let segments = self.write(lane, work, pages, &rules).await;
                    lane.shard.state().written(&segments);
                    tokio::task::yield_now().await;
                }
                Step::Again => tokio::task::yield_now().await,
                Step::Until(tick) => {
                    let time = TICK.saturating_mul(u32::try_from(tick).unwrap_or(u32::MAX));
                    // Whichever is first; then it is looked at again.
                    let _ = tokio::time::timeout_at(self.start + time, lane.shard.news.notified()).await;
                }
                Step::Nothing => return,
            }
        }
    }

    fn retired(&self) -> bool {
        self.retired.load(Ordering::Relaxed)
    }
}

impl Lane {
    /// Hands a shard its part. Says which spans need not wait, and whether somebody must look after the shard.
    fn add(
        &self,
        arrival: &Arrival,
        at: usize,
        charge: Charge,
        rules: &Rules,
        moment: Moment,
        retired: bool,
    ) -> (Vec<(usize, Kept)>, bool) {
        let mut state = self.shard.state();
        let at_once = state.add(arrival, at, charge, rules, moment);
        state.flushing |= retired;
        let attend = state.wants_attention(moment);
        let news = state.has_news() || retired;
        drop(state);
        if news {
            self.shard.news.notify_one();
        }
        (at_once, attend)
    }

    /// Ends when nothing waits, and everything was handed on.
    async fn flushed(&self) {
        loop {
            let (room, sent) = (self.shard.room.notified(), self.outbox.sent.notified());
            tokio::pin!(room, sent);
            // Registered before the look, so that nothing that happens in between is missed.
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

impl Rules {
    fn new(settings: Settings, shards: usize, stats: &TailStats, old: Option<&Policies>) -> Self {
        let policies = Policies::new(&settings, stats, old);
        Self { traces: settings.num_traces.div_ceil(shards).max(1), policies, settings }
    }

    fn marks(&self, late: bool) -> Marks<'_> {
        Marks { stamps: &self.policies.stamps, record: self.settings.record_policy, late }
    }
}

impl AsRef<Link> for TailSampler {
    fn as_ref(&self) -> &Link {
        &self.next
    }
}

impl Consumer for TailSampler {
    fn consume(self: Arc<Self>, batch: Batch, pressure: Pressure) -> Answer {
        let items = batch.items() as u64;
        if pressure == Pressure::Wait {
            return Answer::later(async move { self.accept_acknowledged(batch).await });
        }
        let rules = self.rules.load_full();
        let requests = match self.read(batch, &rules) {
            Ok(requests) => requests,
            Err(refusal) => return self.refuse(items, refusal),
        };
        if rules.settings.block_on_overflow && self.is_full(&requests, &rules) {
            return Answer::later(async move { self.accept_when_there_is_room(requests).await });
        }
        match self.reserve(&requests) {
            Some(charges) => {
                self.accept(requests, charges);
                Answer::Now(Ok(()))
            }
            None => {
                let refusal = self.unheld(&requests);
                self.refuse(items, refusal)
            }
        }
    }

    fn refused(&self, _: &Batch) {}

    fn lost(&self, batch: &Batch, reason: DropReason) {
        self.next.count_loss(batch, reason);
    }
}

impl TailSampler {
    /// It is time for everything that waits.
    fn hurry(&self) {
        for lane in &self.lanes {
            let mut state = lane.shard.state();
            state.flushing |= !state.is_idle();
            drop(state);
            lane.shard.news.notify_one();
        }
    }

    fn refuse(&self, items: u64, refusal: Refusal) -> Answer {
        self.stats.refused.fetch_add(items, Ordering::Relaxed);
        Answer::Now(Err(refusal))
    }
}

impl Processor for TailSampler {
    fn next(&self) -> &Link {
        &self.next
    }

    fn retire(&self) {
        self.retired.store(true, Ordering::Relaxed);
        self.hurry();
        // No late error comes here any more.
        self.give_up_lingering(0);
    }

    fn flush<'a>(&'a self) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(async move {
            self.hurry();
            for lane in &self.lanes {
                lane.flushed().await;
            }
        })
    }
}

impl Drop for TailSampler {
    fn drop(&mut self) {
        // Counters outlive whoever counts, and this is a state.
        if self.overloaded.swap(false, Ordering::Relaxed) {
            self.sampling.overloaded.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// One for each core, but no more than leave each of them enough of what is limited.
fn number_of_shards(settings: &Settings) -> usize {
    if settings.num_shards > 0 {
        return settings.num_shards;
    }
    let limits = [settings.num_traces, settings.sampled_cache_size, settings.non_sampled_cache_size];
    let least = limits.into_iter().filter(|limit| *limit > 0).min().unwrap_or(0);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    cores.min(least / TRACES_PER_SHARD).clamp(1, 256)
}
