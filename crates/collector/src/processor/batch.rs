//! `batch`: joins small requests into larger ones.
//!
//! Joining costs nothing (the bytes stay where they are), so that the processor only holds requests until there
//! are enough of them or the oldest has waited long enough.
//!
//! *Guaranteed*: accepted data is handed on and never dropped. While the next component has no room, the
//! processor holds one batch that waits and one that fills, and refuses senders beyond that: they retry later,
//! and nothing is lost. The state of a combination of metadata values is charged to the pipeline of the request
//! that brought it. *Not done*: the order of requests of different senders is not kept.

use std::{
    collections::HashMap,
    future::Future,
    num::NonZeroUsize,
    pin::Pin,
    sync::{Arc, MutexGuard, atomic::Ordering},
    time::Duration,
};

use arc_swap::ArcSwap;
use kubewake_config::model::BatchProcessor as Settings;
use kubewake_otlp::{Signal, SplitLimit};
use kubewake_runtime::lock::Mutex;
use tokio::{sync::Notify, time::Instant};

use crate::{
    components::{BuildError, PrepareProcessor, PreparedProcessor, ProcessorContext, ProcessorSite},
    core::{
        Batch, Charge, ConsumeOutcome, Consumer, ConsumerFanout, DropReason, Origin, OverflowPolicy, Processor,
        ProcessorStats, Refusal, RefusalKind, one_by_one,
    },
};

pub(crate) fn prepare(settings: &Settings, _: &ProcessorContext<'_>) -> Result<PreparedProcessor, BuildError> {
    Ok(PreparedProcessor::node(PreparedBatching(settings.clone())))
}

struct PreparedBatching(Settings);

impl PrepareProcessor for PreparedBatching {
    type Node = BatchingProcessor;

    fn start(self, site: &ProcessorSite<'_>) -> Arc<BatchingProcessor> {
        BatchingProcessor::new(site.signal, self.0, site.registry.processor(site.id, site.signal))
    }

    fn reconfigure(self, node: &BatchingProcessor, _: &ProcessorSite<'_>) {
        node.reconfigure(self.0);
    }
}

/// The batch processor in one pipeline.
pub struct BatchingProcessor {
    signal: Signal,
    settings: ArcSwap<Settings>,
    stats: Arc<ProcessorStats>,
    next: ConsumerFanout,
    shards: Mutex<HashMap<Vec<String>, Arc<BatchShard>>>,
    /// The one shard of a processor without metadata keys, which is the usual case.
    default_shard: Arc<BatchShard>,
}

/// The open batch of one combination of metadata values.
struct BatchShard {
    state: Mutex<BatchShardState>,
    /// Notified when the open batch is full or a flush is requested.
    full: Notify,
    emitted: Notify,
    /// Charge for the shard itself, as long as it exists: senders choose the length of its values.
    _charge: Charge,
}

/// Memory of a shard beside its metadata values: the shard itself, and entries in a table that doubles.
const SHARD_BYTES: usize = 1 << 10;

struct BatchShardState {
    open: Batch,
    opened_at: Instant,
    flush: bool,
    /// A batch was taken out and is being handed on; it may wait for room.
    emitting: bool,
    /// A task serves this shard.
    has_task: bool,
}

impl BatchingProcessor {
    /// Creates a processor that is not connected to consumers yet.
    pub fn new(signal: Signal, settings: Settings, stats: Arc<ProcessorStats>) -> Arc<Self> {
        Arc::new(Self {
            signal,
            settings: ArcSwap::from_pointee(settings),
            stats,
            next: ConsumerFanout::default(),
            shards: Mutex::default(),
            default_shard: Arc::new(BatchShard::new(signal, Charge::exempt())),
        })
    }

    /// Applies new settings; held requests stay held.
    pub fn reconfigure(&self, settings: Settings) {
        let settings = Arc::new(settings);
        let old = self.settings.swap(settings.clone());
        self.all_shards().iter().for_each(|shard| shard.full.notify_one());
        if old.metadata_keys != settings.metadata_keys {
            // Shards of other keys must not count against the limit. Nonempty ones stay for `flush`.
            let mut shards = self.shards.lock();
            shards.retain(|_, shard| Arc::strong_count(shard) > 1 || shard.state().has_task);
            self.stats.metadata_cardinality.store(shards.len() as u64, Ordering::Relaxed);
        }
    }

    /// The shard of the batch's metadata.
    fn shard_for(&self, settings: &Settings, batch: &Batch) -> Result<Arc<BatchShard>, Refusal> {
        let origin = batch.parts().first().map(|part| part.origin.clone()).unwrap_or_default();
        let values = metadata_values(&settings.metadata_keys, &origin);
        let mut shards = self.shards.lock();
        if let Some(shard) = shards.get(&values) {
            return Ok(shard.clone());
        }
        if shards.len() >= settings.metadata_cardinality_limit as usize && settings.metadata_cardinality_limit > 0 {
            return Err(too_many_metadata_combinations());
        }
        let bytes = values.iter().map(|value| value.capacity() + size_of::<String>()).sum::<usize>() + SHARD_BYTES;
        let charge =
            batch.parts().first().map_or_else(|| Some(Charge::exempt()), |part| part.charge.reserve_held(bytes as u64));
        let shard = Arc::new(BatchShard::new(self.signal, charge.ok_or_else(Refusal::out_of_memory)?));
        shards.insert(values, shard.clone());
        self.stats.metadata_cardinality.store(shards.len() as u64, Ordering::Relaxed);
        Ok(shard)
    }

    fn all_shards(&self) -> Vec<Arc<BatchShard>> {
        let shards = self.shards.lock();
        shards.values().chain([&self.default_shard]).cloned().collect()
    }

    /// Emits the shard's batches when they are due, until the shard is empty.
    async fn run_shard(self: Arc<Self>, shard: Arc<BatchShard>) {
        loop {
            let settings = self.settings.load_full();
            let Some(deadline) = shard.deadline(&settings) else { return };
            let full = shard.full.notified();
            let by_time = if shard.is_due(&settings) {
                Instant::now() >= deadline
            } else {
                tokio::time::timeout_at(deadline, full).await.is_err()
            };
            if !by_time && !shard.is_due(&settings) {
                continue;
            }
            self.emit(&shard, &settings, by_time).await;
        }
    }

    async fn emit(&self, shard: &BatchShard, settings: &Settings, by_time: bool) {
        for batch in one_by_one(shard.take_due(settings, by_time)) {
            let trigger = if by_time { &self.stats.timeout_triggers } else { &self.stats.size_triggers };
            trigger.fetch_add(1, Ordering::Relaxed);
            self.count_out(&batch);
            self.next.deliver(batch).await;
        }
        shard.state().emitting = false;
        shard.emitted.notify_waiters();
    }

    fn count_out(&self, batch: &Batch) {
        self.stats.outgoing.fetch_add(batch.items() as u64, Ordering::Relaxed);
        self.stats.batch_items.record(batch.items() as u64);
        self.stats.batch_bytes.record(batch.bytes() as u64);
    }
}

impl Consumer for BatchingProcessor {
    fn consume(self: Arc<Self>, batch: Batch, pressure: OverflowPolicy) -> ConsumeOutcome {
        let settings = self.settings.load();
        let items = batch.items() as u64;
        let one_of_many;
        let shard = if settings.metadata_keys.is_empty() {
            &self.default_shard
        } else {
            match self.shard_for(&settings, &batch) {
                Ok(shard) => {
                    one_of_many = shard;
                    &one_of_many
                }
                Err(refusal) => {
                    self.stats.refused.fetch_add(items, Ordering::Relaxed);
                    if pressure == OverflowPolicy::Wait {
                        // The data was acknowledged, so that no sender retries it: count the loss here.
                        self.next.count_loss(&batch, refusal.drop_reason());
                    }
                    return ConsumeOutcome::Now(Err(refusal));
                }
            }
        };
        let AddOutcome { taken, needs_task: attend, full } = shard.add(batch, &settings, pressure);
        if !taken {
            self.stats.refused.fetch_add(items, Ordering::Relaxed);
            return ConsumeOutcome::Now(Err(Refusal::queue_full()));
        }
        self.stats.incoming.fetch_add(items, Ordering::Relaxed);
        if attend {
            tokio::spawn(self.clone().run_shard(shard.clone()));
        } else if full {
            shard.full.notify_one();
        }
        ConsumeOutcome::Now(Ok(()))
    }

    fn count_refused(&self, _: &Batch) {}

    fn count_lost(&self, batch: &Batch, reason: DropReason) {
        self.next.count_loss(batch, reason);
    }
}

impl Processor for BatchingProcessor {
    fn output(&self) -> &ConsumerFanout {
        &self.next
    }

    fn retire(&self) {
        self.reconfigure(Settings { timeout: Duration::ZERO, ..Settings::clone(&self.settings.load()) });
    }

    fn flush<'a>(&'a self) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(async move {
            for shard in self.all_shards() {
                shard.flush().await;
            }
        })
    }
}

/// The result of adding a request to a shard.
struct AddOutcome {
    taken: bool,
    /// No task serves the shard yet.
    needs_task: bool,
    full: bool,
}

impl BatchShard {
    fn new(signal: Signal, charge: Charge) -> Self {
        let open = Batch::empty(signal);
        let state = BatchShardState { open, opened_at: Instant::now(), flush: false, emitting: false, has_task: false };
        Self { state: Mutex::new(state), full: Notify::new(), emitted: Notify::new(), _charge: charge }
    }

    fn state(&self) -> MutexGuard<'_, BatchShardState> {
        self.state.lock()
    }

    fn add(&self, batch: Batch, settings: &Settings, pressure: OverflowPolicy) -> AddOutcome {
        let mut state = self.state();
        if state.emitting && pressure == OverflowPolicy::Refuse && state.open.items() >= max_open_items(settings) {
            return AddOutcome { taken: false, needs_task: false, full: false };
        }
        if state.open.is_empty() {
            state.opened_at = Instant::now();
        }
        state.open.append(batch);
        let attend = !std::mem::replace(&mut state.has_task, true);
        AddOutcome { taken: true, needs_task: attend, full: state.is_due(settings) }
    }

    /// Deadline of the open batch; `None` ends the task that serves the shard.
    fn deadline(&self, settings: &Settings) -> Option<Instant> {
        let mut state = self.state();
        if state.open.is_empty() {
            state.has_task = false;
            return None;
        }
        Some(state.opened_at + settings.timeout)
    }

    fn is_due(&self, settings: &Settings) -> bool {
        self.state().is_due(settings)
    }

    /// Takes the batches that are due. Unless the deadline has passed, a remainder too small for a batch of its
    /// own stays.
    fn take_due(&self, settings: &Settings, by_time: bool) -> Vec<Batch> {
        let mut state = self.state();
        let signal = state.open.signal();
        let by_time = std::mem::take(&mut state.flush) || by_time;
        let all = std::mem::replace(&mut state.open, Batch::empty(signal));
        // From here on the task holds the batch, and `flush` waits for it.
        state.emitting = true;
        drop(state);
        let Some(max) = NonZeroUsize::new(settings.send_batch_max_size as usize) else { return vec![all] };
        // Splitting copies the parts, so that it happens outside of the lock.
        let mut batches = all.split(SplitLimit::Items(max));
        if !by_time
            && batches.len() > 1
            && batches.last().is_some_and(|last| last.items() < settings.send_batch_size as usize)
            && let Some(rest) = batches.pop()
        {
            self.put_back(rest);
        }
        batches
    }

    fn put_back(&self, mut rest: Batch) {
        let mut state = self.state();
        rest.append(std::mem::replace(&mut state.open, Batch::empty(rest.signal())));
        state.open = rest;
        state.opened_at = Instant::now();
    }

    /// Resolves when everything that is held now was handed on.
    async fn flush(&self) {
        loop {
            let emitted = self.emitted.notified();
            tokio::pin!(emitted);
            emitted.as_mut().enable();
            {
                let mut state = self.state();
                if state.open.is_empty() && !state.emitting {
                    return;
                }
                state.flush = true;
            }
            self.full.notify_one();
            emitted.await;
        }
    }
}

impl BatchShardState {
    fn is_due(&self, settings: &Settings) -> bool {
        let size = settings.send_batch_size as usize;
        self.flush || settings.timeout.is_zero() || (size > 0 && self.open.items() >= size)
    }
}

/// Number of items that may gather while a batch waits for room. A processor that batches only by time has no
/// size limit: there the memory budget is the limit.
fn max_open_items(settings: &Settings) -> usize {
    match settings.send_batch_size.max(settings.send_batch_max_size) as usize {
        0 => usize::MAX,
        size => size,
    }
}

fn metadata_values(keys: &[String], origin: &Origin) -> Vec<String> {
    let value = |key: &String| {
        let values = origin.metadata.iter().filter(|(name, _)| name.eq_ignore_ascii_case(key)).map(|(_, v)| v.as_str());
        values.collect::<Vec<_>>().join("\u{1f}")
    };
    keys.iter().map(value).collect()
}

fn too_many_metadata_combinations() -> Refusal {
    Refusal { kind: RefusalKind::NoRoom, ..Refusal::invalid("too many combinations of metadata values") }
}

#[cfg(test)]
mod tests;
