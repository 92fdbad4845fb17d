//! The targets of a fan-out, and what they mean for receipts.

use std::sync::Arc;

use kubewake_config::{ComponentId, PipelineId};

use super::{Batch, ConsumeOutcome, Consumer, OverflowPolicy, Refusal, deliver_to_many, offer_to_many, offer_to_one};

#[derive(Default)]
pub(super) struct FanoutTargets {
    pub(super) consumers: Vec<Arc<dyn Consumer>>,
    pub(super) kind: TargetKind,
}

/// What the targets are.
#[derive(Default)]
pub(super) enum TargetKind {
    /// Components inside of a pipeline, which are no outputs.
    #[default]
    Components,
    /// The exporters and connectors of a pipeline, with their ids in the same order.
    Exporters(PipelineId, Vec<ComponentId>),
    /// The entries of pipelines behind a connector.
    Pipelines,
}

impl FanoutTargets {
    /// Whether requests with receipts take a way of their own.
    pub(super) fn splits_receipts(&self) -> bool {
        !matches!(self.kind, TargetKind::Components)
    }

    /// Offers the batch to all targets; `None` if there are none.
    pub(super) fn offer(&self, batch: Batch) -> Option<ConsumeOutcome> {
        match self.consumers.as_slice() {
            [] => {
                drop(batch.hold_receipts());
                None
            }
            [only] => Some(offer_to_one(only, batch)),
            many => Some(offer_to_many(many.iter().map(|target| (target.clone(), batch.clone())).collect())),
        }
    }

    /// Passes on a batch that was acknowledged already.
    pub(super) async fn deliver(&self, batch: Batch) {
        if self.splits_receipts() && batch.has_receipts() {
            return self.offer_receipted(batch);
        }
        match self.consumers.as_slice() {
            [] => {}
            // A refusal here is final and counted by the target.
            [only] => drop(only.clone().consume(batch, OverflowPolicy::Wait).wait().await),
            many => deliver_to_many(many, batch).await,
        }
    }

    /// Offers requests with receipts to the targets that shall get them. What a target does not take is returned.
    pub(super) fn offer_receipted(&self, mut batch: Batch) {
        match &self.kind {
            TargetKind::Exporters(pipeline, ids) => {
                for (id, target) in ids.iter().zip(&self.consumers) {
                    let mut copy = batch.copy_for_output(pipeline, id);
                    copy.return_stale();
                    offer_copy(target, copy);
                }
                batch.return_unknown(pipeline, ids);
            }
            TargetKind::Components | TargetKind::Pipelines => {
                batch.return_stale();
                self.consumers.iter().for_each(|target| offer_copy(target, batch.clone()));
            }
        }
        if self.consumers.is_empty() {
            drop(batch.hold_receipts());
        }
    }
}

/// Offers a target its own copy of requests with receipts. What it has no room for is returned, and what it refuses for
/// good is lost.
fn offer_copy(target: &Arc<dyn Consumer>, copy: Batch) {
    if copy.is_empty() {
        return;
    }
    let held = copy.hold_receipts();
    let tally = copy.clone_tally();
    let count = move |target: &dyn Consumer, result: Result<(), Refusal>| {
        if let Err(refusal) = result
            && !refusal.is_temporary()
        {
            target.count_lost(&tally, refusal.drop_reason());
        }
    };
    match target.clone().consume(copy, OverflowPolicy::Refuse).poll_once().settle_receipts(held) {
        ConsumeOutcome::Now(result) => count(&**target, result),
        ConsumeOutcome::Partial(_) => {}
        ConsumeOutcome::Later(future) => {
            let target = target.clone();
            // If the task is cancelled, the receipts are returned.
            tokio::spawn(async move { count(&*target, future.await) });
        }
    }
}
