//! Clears ids of all zeroes, which mean "no id".

use bytes::Bytes;

use crate::Signal;
use crate::edit_visitor::{EditVisitor, RecordContext, edit, replace};
use crate::field_numbers::{log, span};
use crate::memory::{Allowance, NoMemory, UnlimitedAllowance};
use crate::wire::{WireField, WireFields};
use crate::write_plan::WritePlan;

/// Removes all-zero trace, span and parent ids of spans and log records, as the Collector does.
///
/// For requests for which [`scan`](crate::scan) reports `zero_ids`; others are returned unchanged, and so are
/// metrics. Ids inside links and exemplars stay.
pub fn clear_zero_ids(signal: Signal, bytes: &Bytes) -> Bytes {
    clear_zero_ids_within(signal, bytes, &mut UnlimitedAllowance).unwrap_or_else(|NoMemory| bytes.clone())
}

/// As [`clear_zero_ids`], but reserves memory before it allocates.
///
/// # Errors
///
/// If the allowance refuses the memory for the result and the work.
pub fn clear_zero_ids_within(signal: Signal, bytes: &Bytes, allowance: &mut dyn Allowance) -> Result<Bytes, NoMemory> {
    let ids: &[u32] = match signal {
        Signal::Traces => &[span::TRACE_ID, span::SPAN_ID, span::PARENT_SPAN_ID],
        Signal::Logs => &[log::TRACE_ID, log::SPAN_ID],
        Signal::Metrics => return Ok(bytes.clone()),
    };
    edit(bytes, &mut ClearIds(ids), WritePlan::within(allowance))
}

/// The field numbers of the ids.
struct ClearIds(&'static [u32]);

impl ClearIds {
    /// A set of bits by field number: the ids whose last occurrence is all zeroes.
    fn none(&self, record: &[u8]) -> u32 {
        let ids = WireFields::new(record).filter(|field| self.is_id(field));
        ids.fold(0, |none, id| if is_zero(&id) { none | 1 << id.number } else { none & !(1 << id.number) })
    }

    fn is_id(&self, field: &WireField<'_>) -> bool {
        self.0.iter().any(|&id| field.is_len(id))
    }
}

fn is_zero(field: &WireField<'_>) -> bool {
    !field.value.is_empty() && field.value.iter().all(|&byte| byte == 0)
}

impl EditVisitor for ClearIds {
    fn record(&mut self, plan: &mut WritePlan<'_>, place: &RecordContext<'_>, field: &WireField<'_>) -> bool {
        let none = self.none(field.value);
        replace(plan, field, |plan| {
            let mut changed = false;
            let mut fields = WireFields::new(field.value);
            for inner in fields.by_ref() {
                if self.is_id(&inner) && (none >> inner.number & 1 == 1 || is_zero(&inner)) {
                    changed = true;
                } else {
                    plan.run(place.source, inner.raw);
                }
            }
            plan.run(place.source, fields.rest());
            changed
        })
    }
}
