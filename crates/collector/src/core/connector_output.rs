//! The pipelines that a connector feeds.
//!
//! *Guarantees.* The bytes of a batch are shared and never copied. The outcome is that of fan-out: taken when at least
//! one pipeline took it, and refused when none did. Each pipeline charges a batch to its own budget before it holds it.
//! A pipeline without memory refuses, and counts a loss if another pipeline took the batch. The pipelines can be
//! replaced while data flows.
//!
//! Data that was acknowledged before it came here cannot be refused. If a pipeline has no memory for it, it stays
//! charged to the pipeline that it comes from, whose senders are then refused. Waiting for memory instead could wait
//! forever: the memory may be held by the very data that waits.

use std::sync::Arc;

use kubewake_otlp::Signal;
use kubewake_runtime::lock::Mutex;

use super::{
    Batch, Charge, ConsumeOutcome, Consumer, ConsumerFanout, DropReason, OverflowPolicy, PART_OVERHEAD_BYTES, Part,
    Pipeline, Refusal, RefusalKind, pipeline_set,
};

/// The pipelines that a connector feeds, by signal.
#[derive(Default)]
pub struct ConnectorOutput {
    traces: SignalOutput,
    metrics: SignalOutput,
    logs: SignalOutput,
}

#[derive(Default)]
struct SignalOutput {
    fanout: ConsumerFanout,
    /// The targets of the fan-out. A pipeline that stays keeps its inlet, so that a batch which waits for it goes on
    /// waiting.
    inlets: Mutex<Vec<Arc<PipelineInlet>>>,
}

impl ConnectorOutput {
    /// Feeds `pipelines` from now on.
    pub fn set_pipelines(&self, signal: Signal, pipelines: Vec<Arc<Pipeline>>) {
        let SignalOutput { fanout, inlets } = self.signal(signal);
        let mut inlets = inlets.lock();
        let inlet = |pipeline: Arc<Pipeline>| {
            let existing = inlets.iter().find(|inlet| Arc::ptr_eq(&inlet.pipeline, &pipeline));
            existing.cloned().unwrap_or_else(|| Arc::new(PipelineInlet { pipeline }))
        };
        let wanted: Vec<Arc<PipelineInlet>> = pipelines.into_iter().map(inlet).collect();
        fanout.set_pipelines(wanted.iter().map(|inlet| inlet.clone() as Arc<dyn Consumer>).collect());
        *inlets = wanted;
    }

    /// Feeds no pipeline any more. Data that still arrives is refused.
    pub fn clear(&self) {
        Signal::ALL.into_iter().for_each(|signal| self.set_pipelines(signal, Vec::new()));
    }

    /// Whether any pipeline takes this signal.
    pub fn serves(&self, signal: Signal) -> bool {
        !self.signal(signal).inlets.lock().is_empty()
    }

    /// Passes a batch on to the pipelines of its signal.
    pub fn pass_on(self: &Arc<Self>, batch: Batch, pressure: OverflowPolicy) -> ConsumeOutcome {
        match pressure {
            OverflowPolicy::Refuse => self.offer(batch),
            OverflowPolicy::Wait => ConsumeOutcome::later(self.clone().deliver(batch)),
        }
    }

    fn offer(&self, batch: Batch) -> ConsumeOutcome {
        match self.signal(batch.signal()).fanout.offer_if_connected(batch) {
            None => ConsumeOutcome::Now(Err(Refusal::shutting_down())),
            Some(ConsumeOutcome::Now(Err(refusal))) => ConsumeOutcome::Now(Err(for_sender(refusal))),
            Some(outcome) => outcome,
        }
    }

    async fn deliver(self: Arc<Self>, batch: Batch) -> Result<(), Refusal> {
        if self.signal(batch.signal()).fanout.deliver_if_connected(batch).await {
            return Ok(());
        }
        // A caller that reached a connector which was just replaced notices that now, and turns to the new one.
        tokio::task::yield_now().await;
        Err(Refusal::shutting_down())
    }

    fn signal(&self, signal: Signal) -> &SignalOutput {
        match signal {
            Signal::Traces => &self.traces,
            Signal::Metrics => &self.metrics,
            Signal::Logs => &self.logs,
        }
    }
}

/// The entry of a pipeline for data of other pipelines.
struct PipelineInlet {
    pipeline: Arc<Pipeline>,
}

impl Consumer for PipelineInlet {
    fn consume(self: Arc<Self>, mut batch: Batch, pressure: OverflowPolicy) -> ConsumeOutcome {
        let bytes = batch.parts().iter().map(held_bytes).sum();
        match (self.pipeline.reserve(bytes), pressure) {
            (Some(charge), _) => set_charge(&mut batch, charge),
            (None, OverflowPolicy::Wait) => {}
            (None, OverflowPolicy::Refuse) => return ConsumeOutcome::Now(Err(self.memory_refusal(bytes))),
        }
        self.pipeline.clone().consume(batch, pressure)
    }

    fn count_refused(&self, batch: &Batch) {
        self.pipeline.count_refused(batch);
    }

    fn count_lost(&self, batch: &Batch, reason: DropReason) {
        self.pipeline.count_lost(batch, reason);
    }
}

impl PipelineInlet {
    /// A lack of room in any case: a batch that was acknowledged waits, and is then taken with the charge that it has.
    #[cold]
    fn memory_refusal(&self, bytes: u64) -> Refusal {
        let full = std::slice::from_ref(&self.pipeline);
        let refusal = pipeline_set::memory_refusal(full, |member| member.could_ever_reserve(bytes));
        Refusal { kind: RefusalKind::NoMemory, ..refusal }
    }
}

/// The refusal that a sender sees. A request that never fits is its sender's affair.
fn for_sender(refusal: Refusal) -> Refusal {
    match refusal.kind {
        RefusalKind::NoMemory if !refusal.is_retryable() => Refusal { kind: RefusalKind::BadRequest, ..refusal },
        _ => refusal,
    }
}

/// A request keeps at most this multiple of its bytes allocated: it may be a slice of at least half of another
/// request, which may lie in a read buffer of twice its length.
const MAX_HELD_FACTOR: u64 = 4;

/// The memory that a request keeps allocated. The pieces of a split request share its charge, which is more than each
/// of them holds.
fn held_bytes(part: &Part) -> u64 {
    let bytes = part.bytes.len() as u64;
    part.charge.bytes().min(bytes * MAX_HELD_FACTOR).max(bytes).max(PART_OVERHEAD_BYTES as u64)
}

/// Divides a charge among the requests of a batch, in place of their own charges.
fn set_charge(batch: &mut Batch, mut charge: Charge) {
    batch.retain_mut(|part| {
        if let Some(own) = charge.split_off(held_bytes(part)) {
            part.charge = Arc::new(own);
        }
        true
    });
}

#[cfg(test)]
mod tests;
