//! Hands requests to a pipeline, with receipts for the outputs that shall get them.

use std::sync::Arc;

use bytes::Bytes;
use kubewake_otlp::Signal;
use tokio::runtime::Handle;

use super::receipt_inbox::ReceiptInbox;
use crate::core::{
    Batch, Charge, ConsumeOutcome, Consumer, DeliveryReceipt, DropReason, Origin, OverflowPolicy, PART_OVERHEAD_BYTES,
    Part, Pipeline, ReceiptListener, ReceiptOutput,
};

/// Memory for a request; `None` if the pipeline has none now.
pub(super) fn reserve(pipeline: &Arc<Pipeline>, body: &Bytes) -> Option<Charge> {
    pipeline.reserve(body.len().max(PART_OVERHEAD_BYTES) as u64)
}

/// Counts a request as lost that the pipeline never has memory for; false if it may have some later.
pub(super) fn count_if_too_large(pipeline: &Arc<Pipeline>, body: &Bytes, records: usize) -> bool {
    if pipeline.member().could_ever_reserve(body.len().max(PART_OVERHEAD_BYTES) as u64) {
        return false;
    }
    tracing::error!(pipeline = %pipeline.id(), records, bytes = body.len(),
        "dropped records of log files: they need more memory than the pipeline may use");
    let tally = Part::new(Bytes::new(), records, Arc::default(), Arc::new(Charge::exempt()));
    pipeline.count_lost(&Batch::single(Signal::Logs, tally), DropReason::MemoryLimit);
    true
}

/// A request for some outputs of one pipeline.
pub(super) struct ReceiptedRequest<'a> {
    pub(super) number: u64,
    pub(super) body: Bytes,
    pub(super) records: usize,
    pub(super) charge: Charge,
    /// With the epoch of each.
    pub(super) outputs: Vec<(&'a Arc<ReceiptOutput>, u64)>,
}

impl ReceiptedRequest<'_> {
    /// Submits it. Whatever becomes of it, each output's receipt arrives in the inbox.
    pub(super) fn submit(self, pipeline: &Arc<Pipeline>, inbox: &Arc<ReceiptInbox>, runtime: &Handle) {
        let listener: Arc<dyn ReceiptListener> = inbox.clone();
        let receipt = DeliveryReceipt::new(self.number, self.outputs, &listener);
        let origin = Origin { receipt: Some(Arc::new(receipt)), ..Origin::default() };
        let part = Part::new(self.body, self.records, Arc::new(origin), Arc::new(self.charge));
        let batch = Batch::single(Signal::Logs, part);
        let tally = batch.clone_tally();
        let held = batch.hold_receipts();
        let outcome = pipeline.clone().consume(batch, OverflowPolicy::Refuse).settle_receipts(held);
        let pipeline = pipeline.clone();
        // What is refused for good, such as a request that can never fit into the memory, is lost.
        let count = move |result: Result<(), crate::core::Refusal>| {
            if let Err(refusal) = result
                && !refusal.is_temporary()
            {
                tracing::error!(pipeline = %pipeline.id(), records = tally.items(), error = %refusal,
                    "dropped records of log files");
                pipeline.count_lost(&tally, refusal.drop_reason());
            }
        };
        match outcome {
            ConsumeOutcome::Now(result) => count(result),
            ConsumeOutcome::Partial(_) => {}
            ConsumeOutcome::Later(future) => drop(runtime.spawn(async move { count(future.await) })),
        }
    }
}
