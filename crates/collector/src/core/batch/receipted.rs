//! What a batch does with the receipts of its requests ([`crate::core::DeliveryReceipt`]).

use std::sync::Arc;

use kubewake_config::{ComponentId, PipelineId};

use super::{Batch, Origin, Part};
use crate::core::{DeliveryReceipt, HeldReceipts};

impl Part {
    fn receipt(&self) -> Option<&Arc<DeliveryReceipt>> {
        self.origin.receipt.as_ref()
    }
}

impl Batch {
    /// Whether the receiver of any of its requests awaits a receipt.
    pub fn has_receipts(&self) -> bool {
        self.parts.iter().any(|part| part.origin.receipt.is_some())
    }

    /// Separates the requests with receipts from the others.
    pub fn split_receipts(self) -> (Batch, Batch) {
        let Self { signal, parts, failing_since, .. } = self;
        let mut receipted = Self { failing_since, ..Self::empty(signal) };
        let mut others = Self { failing_since, ..Self::empty(signal) };
        for part in parts {
            let side = if part.receipt().is_some() { &mut receipted } else { &mut others };
            side.push(part);
        }
        (receipted, others)
    }

    /// A copy of the requests with receipts that this output shall get. Each has a receipt for it alone.
    pub(in crate::core) fn copy_for_output(&self, pipeline: &PipelineId, exporter: &ComponentId) -> Batch {
        let mut copy = Self { failing_since: self.failing_since, ..Self::empty(self.signal) };
        for part in &self.parts {
            let Some(receipt) = part.receipt() else { continue };
            let Some(own) = receipt.for_output(pipeline, exporter) else { continue };
            let origin = if Arc::ptr_eq(&own, receipt) {
                part.origin.clone()
            } else {
                Arc::new(Origin { receipt: Some(own), ..Origin::clone(&part.origin) })
            };
            copy.push(Part { origin, ..part.clone() });
        }
        copy
    }

    /// Removes and returns to their receivers the requests that an earlier one of the same output has stopped.
    pub(in crate::core) fn return_stale(&mut self) {
        let is_stale = |part: &Part| part.receipt().is_some_and(|receipt| receipt.is_stale());
        if !self.parts.iter().any(is_stale) {
            return;
        }
        self.retain_mut(|part| {
            let stale = part.receipt().filter(|receipt| receipt.is_stale());
            stale.inspect(|receipt| receipt.mark_returned()).is_none()
        });
    }

    /// Returns the tokens for outputs of the pipeline other than these, which nobody would settle.
    pub(in crate::core) fn return_unknown(&self, pipeline: &PipelineId, exporters: &[ComponentId]) {
        self.parts.iter().filter_map(Part::receipt).for_each(|receipt| receipt.return_others(pipeline, exporters));
    }

    /// Returns its requests to the receivers that can read them again. What is left is a tally of the others, which are
    /// lost.
    pub fn return_unsent(&self) -> Batch {
        let mut lost = self.clone_tally();
        for part in &self.parts {
            let Some(receipt) = part.receipt() else { continue };
            receipt.mark_returned();
            lost.items = lost.items.saturating_sub(part.items);
            lost.bytes = lost.bytes.saturating_sub(part.bytes.len());
        }
        lost
    }

    /// The receipts of its requests, for a caller that gives the batch away and does not know yet whether it is taken.
    pub fn hold_receipts(&self) -> HeldReceipts {
        HeldReceipts::new(self.parts.iter().filter_map(Part::receipt).cloned().collect())
    }
}
