//! `batch`: joins small requests into larger ones.
//!
//! Joining costs nothing (the bytes stay where they are), so that all this does is to hold requests until there are
//! enough of them or the oldest has waited long enough.
//!
//! *Guarantees.* What it took is handed on; it never drops. While the next step has no room it holds one batch that
//! waits and one that fills, and refuses senders beyond that: they are told to come back, and nothing is lost.
//! *Does not* keep the order of requests of different senders.

use std::{
    collections::HashMap,
    future::Future,
    num::NonZeroUsize,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering},
    time::Duration,
};

use arc_swap::ArcSwap;
use kubewake_config::model::Batch as Settings;
use kubewake_otlp::{Limit, Signal};
use tokio::{sync::Notify, time::Instant};

use crate::core::{
    Answer, Batch, Consumer, DropReason, Link, Origin, Pressure, Processor, ProcessorStats, Refusal, RefusalKind,
    one_by_one,
};

/// The processor, in one pipeline.
pub struct Batcher {
    signal: Signal,
    settings: ArcSwap<Settings>,
    stats: Arc<ProcessorStats>,
    next: Link,
    shards: Mutex<HashMap<Vec<String>, Arc<Shard>>>,
    /// The one shard of a batcher without metadata keys, which is nearly every batcher.
    only: Arc<Shard>,
}

/// What is held for one combination of metadata values.
struct Shard {
    state: Mutex<State>,
    /// The open batch is full, or is wanted at once.
    full: Notify,
    emitted: Notify,
}

struct State {
    open: Batch,
    since: Instant,
    flush: bool,
    /// What was taken out is being handed on, and may wait for room.
    emitting: bool,
    /// A task looks after this shard.
    attended: bool,
}

impl Batcher {
    /// A batcher that leads nowhere yet.
    pub fn new(signal: Signal, settings: Settings, stats: Arc<ProcessorStats>) -> Arc<Self> {
        Arc::new(Self {
            signal,
            settings: ArcSwap::from_pointee(settings),
            stats,
            next: Link::default(),
            shards: Mutex::default(),
            only: Arc::new(Shard::new(signal)),
        })
    }

    /// Puts new settings in force; what is held stays held.
    pub fn reconfigure(&self, settings: Settings) {
        let settings = Arc::new(settings);
        let old = self.settings.swap(settings.clone());
        self.all_shards().iter().for_each(|shard| shard.full.notify_one());
        if old.metadata_keys != settings.metadata_keys {
            // Combinations of other keys must not count against the limit. Those that hold something stay for `flush`.
            let mut shards = self.shards.lock().unwrap_or_else(PoisonError::into_inner);
            shards.retain(|_, shard| Arc::strong_count(shard) > 1 || shard.state().attended);
            self.stats.metadata_cardinality.store(shards.len() as u64, Ordering::Relaxed);
        }
    }

    /// The shard of the batch's metadata.
    fn shard(&self, settings: &Settings, batch: &Batch) -> Result<Arc<Shard>, Refusal> {
        let origin = batch.parts().first().map(|part| part.origin.clone()).unwrap_or_default();
        let values = metadata_values(&settings.metadata_keys, &origin);
        let mut shards = self.shards.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shard) = shards.get(&values) {
            return Ok(shard.clone());
        }
        if shards.len() >= settings.metadata_cardinality_limit as usize && settings.metadata_cardinality_limit > 0 {
            return Err(too_many_combinations());
        }
        let shard = Arc::new(Shard::new(self.signal));
        shards.insert(values, shard.clone());
        self.stats.metadata_cardinality.store(shards.len() as u64, Ordering::Relaxed);
        Ok(shard)
    }

    fn all_shards(&self) -> Vec<Arc<Shard>> {
        let shards = self.shards.lock().unwrap_or_else(PoisonError::into_inner);
        shards.values().chain([&self.only]).cloned().collect()
    }

    /// Emits what a shard holds when it is time, until it holds nothing.
    async fn attend(self: Arc<Self>, shard: Arc<Shard>) {
        loop {
            let settings = self.settings.load_full();
            let Some(deadline) = shard.deadline(&settings) else { return };
            let full = shard.full.notified();
            let by_time = match shard.is_due(&settings) {
                true => Instant::now() >= deadline,
                false => tokio::time::timeout_at(deadline, full).await.is_err(),
            };
            if !by_time && !shard.is_due(&settings) {
                continue;
            }
            self.emit(&shard, &settings, by_time).await;
        }
    }

    async fn emit(&self, shard: &Shard, settings: &Settings, by_time: bool) {
        for batch in one_by_one(shard.take(settings, by_time)) {
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

impl Consumer for Batcher {
    fn consume(self: Arc<Self>, batch: Batch, pressure: Pressure) -> Answer {
        let settings = self.settings.load();
        let items = batch.items() as u64;
        let one_of_many;
        let shard = match settings.metadata_keys.is_empty() {
            true => &self.only,
            false => match self.shard(&settings, &batch) {
                Ok(shard) => {
                    one_of_many = shard;
                    &one_of_many
                }
                Err(refusal) => return Answer::Now(Err(refusal)),
            },
        };
        let Added { taken, attend, full } = shard.add(batch, &settings, pressure);
        if !taken {
            self.stats.refused.fetch_add(items, Ordering::Relaxed);
            return Answer::Now(Err(Refusal::queue_full()));
        }
        self.stats.incoming.fetch_add(items, Ordering::Relaxed);
        if attend {
            tokio::spawn(self.clone().attend(shard.clone()));
        } else if full {
            shard.full.notify_one();
        }
        Answer::Now(Ok(()))
    }

    fn refused(&self, _: &Batch) {}

    fn lost(&self, batch: &Batch, reason: DropReason) {
        self.next.count_loss(batch, reason);
    }
}

impl Processor for Batcher {
    fn next(&self) -> &Link {
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

/// What became of an addition.
struct Added {
    taken: bool,
    /// Nobody looks after the shard yet.
    attend: bool,
    full: bool,
}

impl Shard {
    fn new(signal: Signal) -> Self {
        let open = Batch::empty(signal);
        let state = State { open, since: Instant::now(), flush: false, emitting: false, attended: false };
        Self { state: Mutex::new(state), full: Notify::new(), emitted: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, batch: Batch, settings: &Settings, pressure: Pressure) -> Added {
        let mut state = self.state();
        if state.emitting && pressure == Pressure::Refuse && state.open.items() >= capacity(settings) {
            return Added { taken: false, attend: false, full: false };
        }
        if state.open.is_empty() {
            state.since = Instant::now();
        }
        state.open.append(batch);
        let attend = !std::mem::replace(&mut state.attended, true);
        Added { taken: true, attend, full: state.is_due(settings) }
    }

    /// Until when the open batch may wait; `None` ends the task that looks after the shard.
    fn deadline(&self, settings: &Settings) -> Option<Instant> {
        let mut state = self.state();
        if state.open.is_empty() {
            state.attended = false;
            return None;
        }
        Some(state.since + settings.timeout)
    }

    fn is_due(&self, settings: &Settings) -> bool {
        self.state().is_due(settings)
    }

    /// What is to leave now. Unless the time is up, a remainder that is too small for a batch of its own stays.
    fn take(&self, settings: &Settings, by_time: bool) -> Vec<Batch> {
        let mut state = self.state();
        let signal = state.open.signal();
        let by_time = std::mem::take(&mut state.flush) || by_time;
        let all = std::mem::replace(&mut state.open, Batch::empty(signal));
        // From here on it is held by whoever emits, and `flush` waits for that.
        state.emitting = true;
        drop(state);
        let Some(max) = NonZeroUsize::new(settings.send_batch_max_size as usize) else { return vec![all] };
        // It copies what it cuts, so that nobody should wait for it.
        let mut batches = all.split(Limit::Items(max));
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
        state.since = Instant::now();
    }

    /// Ends when everything that is held now was handed on.
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

impl State {
    fn is_due(&self, settings: &Settings) -> bool {
        let size = settings.send_batch_size as usize;
        self.flush || settings.timeout.is_zero() || (size > 0 && self.open.items() >= size)
    }
}

/// How many items may gather while a batch waits for room. A batcher that goes only by time has no size of its own:
/// there the memory budget is the limit.
fn capacity(settings: &Settings) -> usize {
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

fn too_many_combinations() -> Refusal {
    Refusal { kind: RefusalKind::NoRoom, ..Refusal::invalid("too many combinations of metadata values") }
}

#[cfg(test)]
mod tests;
