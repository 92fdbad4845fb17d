//! Delivery receipts: how a receiver that can read its data again learns what became of its requests.
//!
//! A receipt is part of the origin of a request, which every piece of the request keeps. It holds a token for each
//! output that shall get the request; an output is an exporter, or a connector, of one pipeline. The fan-out in
//! front of the exporters gives each of them a copy with its own token, and leaves out those without one.
//!
//! *Guarantees.* Each token ends exactly once, when the last piece that refers to it is dropped: as *settled* if the
//! output has dealt with all pieces (it delivered them, a processor dropped them, or the backend refused them for good,
//! which is counted as always), and as *returned* if any piece was not sent (the queue was full, the retries are used
//! up, the process ends). Nothing that is returned is counted as dropped, since its receiver reads it again. Once a
//! token of an output is returned, no later request of the same epoch overtakes it: the fan-out and the workers of the
//! queue return its other tokens, too, except those that are being sent at that moment. A request with a receipt does
//! not wait for room.
//!
//! *Assumes* that a component which loses data that it had accepted calls [`Batch::return_unsent`] or
//! [`super::ConsumerFanout::count_loss`] before it drops the data. Data that is dropped without a remark counts as
//! dealt with: that is what a filter does.
//!
//! *Does not* tell outputs apart behind a connector: a receipt that came through one stands for all of its pipelines,
//! and is returned if any of their outputs returns it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use kubewake_config::{ComponentId, PipelineId};

use super::Refusal;

/// What became of a request at one output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryOutcome {
    /// It was delivered, dropped on purpose, or refused for good.
    Settled,
    /// It was not sent, at least in part. The receiver has to read it again.
    Returned,
}

/// Learns what became of requests. It is called from the threads that send, and must return at once.
pub trait ReceiptListener: Send + Sync {
    fn end_token(&self, request: u64, output: &ReceiptOutput, outcome: DeliveryOutcome);
}

/// An exporter or a connector of a pipeline, from the view of the receiver that wants receipts.
#[derive(Debug)]
pub struct ReceiptOutput {
    pub pipeline: PipelineId,
    pub exporter: ComponentId,
    /// A number of the receiver's own.
    pub number: u64,
    /// Incremented when a token of the current epoch is returned.
    epoch: AtomicU64,
}

impl ReceiptOutput {
    pub fn new(pipeline: PipelineId, exporter: ComponentId, number: u64) -> Arc<Self> {
        Arc::new(Self { pipeline, exporter, number, epoch: AtomicU64::new(0) })
    }

    /// The epoch for requests that are submitted after all earlier ones have ended.
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    fn end_epoch(&self, epoch: u64) {
        self.epoch.fetch_max(epoch + 1, Ordering::AcqRel);
    }
}

/// The receipt of a request.
#[derive(Debug)]
pub struct DeliveryReceipt {
    tokens: Vec<DeliveryToken>,
}

impl PartialEq for DeliveryReceipt {
    /// Receipts are equal if they stand for the same tokens.
    fn eq(&self, other: &Self) -> bool {
        let same = |(a, b): (&DeliveryToken, &DeliveryToken)| Arc::ptr_eq(&a.0, &b.0);
        self.tokens.len() == other.tokens.len() && self.tokens.iter().zip(&other.tokens).all(same)
    }
}

impl Eq for DeliveryReceipt {}

impl DeliveryReceipt {
    /// A receipt for a request to these outputs, each in an epoch of its own. `listener` learns of each.
    pub fn new<'a>(
        request: u64,
        outputs: impl IntoIterator<Item = (&'a Arc<ReceiptOutput>, u64)>,
        listener: &Arc<dyn ReceiptListener>,
    ) -> Self {
        let token = |(output, epoch): (&Arc<ReceiptOutput>, u64)| {
            let output = output.clone();
            let listener = listener.clone();
            DeliveryToken(Arc::new(TokenState { request, output, epoch, listener, returned: AtomicBool::new(false) }))
        };
        Self { tokens: outputs.into_iter().map(token).collect() }
    }

    /// The receipt for one output; `None` if the request is not for it. A receipt that came through a connector is
    /// for every output.
    pub(super) fn for_output(self: &Arc<Self>, pipeline: &PipelineId, exporter: &ComponentId) -> Option<Arc<Self>> {
        match self.tokens.as_slice() {
            [only] if only.is_for(pipeline, exporter) => Some(self.clone()),
            tokens => {
                let own = tokens.iter().find(|token| token.is_for(pipeline, exporter))?;
                Some(Arc::new(Self { tokens: vec![own.clone()] }))
            }
        }
    }

    /// Returns the tokens for outputs of the pipeline other than these.
    pub(super) fn return_others(&self, pipeline: &PipelineId, exporters: &[ComponentId]) {
        let is_other = |token: &&DeliveryToken| !exporters.iter().any(|exporter| token.is_for(pipeline, exporter));
        self.tokens.iter().filter(is_other).for_each(DeliveryToken::mark_returned);
    }

    /// Whether a token belongs to an epoch that has ended, so that the request must not be sent any more.
    pub(super) fn is_stale(&self) -> bool {
        self.tokens.iter().any(|token| token.0.epoch != token.0.output.epoch())
    }

    pub(super) fn mark_returned(&self) {
        self.tokens.iter().for_each(DeliveryToken::mark_returned);
    }
}

/// One output's share of a receipt. It ends with its last clone.
#[derive(Clone, Debug)]
pub(super) struct DeliveryToken(Arc<TokenState>);

struct TokenState {
    request: u64,
    output: Arc<ReceiptOutput>,
    epoch: u64,
    listener: Arc<dyn ReceiptListener>,
    returned: AtomicBool,
}

impl DeliveryToken {
    fn is_for(&self, pipeline: &PipelineId, exporter: &ComponentId) -> bool {
        let output = &self.0.output;
        output.pipeline != *pipeline || output.exporter == *exporter
    }

    pub(super) fn mark_returned(&self) {
        self.0.output.end_epoch(self.0.epoch);
        self.0.returned.store(true, Ordering::Release);
    }
}

impl std::fmt::Debug for TokenState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { request, output, epoch, listener: _, returned } = self;
        write!(f, "request {request} to {}/{} in epoch {epoch}", output.pipeline, output.exporter)?;
        if returned.load(Ordering::Relaxed) { f.write_str(", returned") } else { Ok(()) }
    }
}

impl Drop for TokenState {
    fn drop(&mut self) {
        let returned = *self.returned.get_mut();
        let outcome = if returned { DeliveryOutcome::Returned } else { DeliveryOutcome::Settled };
        self.listener.end_token(self.request, &self.output, outcome);
    }
}

/// The receipts of a batch whose fate is not known yet. They are returned when it is dropped, unless
/// [`HeldReceipts::release`] says that the batch was taken.
#[derive(Debug, Default)]
#[must_use]
pub struct HeldReceipts(Vec<Arc<DeliveryReceipt>>);

impl HeldReceipts {
    pub(super) fn new(receipts: Vec<Arc<DeliveryReceipt>>) -> Self {
        Self(receipts)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Leaves the receipts to the component that took the batch.
    pub fn release(mut self) {
        self.0.clear();
    }

    /// Releases the receipts of a batch that was taken, or refused for good, and returns the others.
    pub fn settle(self, result: &Result<(), Refusal>) {
        if !result.as_ref().is_err_and(Refusal::is_temporary) {
            self.release();
        }
    }
}

impl Drop for HeldReceipts {
    fn drop(&mut self) {
        self.0.iter().for_each(|receipt| receipt.mark_returned());
    }
}

#[cfg(test)]
mod tests;
