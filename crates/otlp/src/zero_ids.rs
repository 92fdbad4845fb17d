//! Ids of zeroes alone, which mean that there is none.

use bytes::Bytes;

use crate::Signal;
use crate::edit::{Place, Walk, edit, replace};
use crate::memory::{Allowance, NoMemory, Unlimited};
use crate::numbers::{log, span};
use crate::plan::Plan;
use crate::wire::{Field, Fields};

/// Drops the trace, span and parent ids of spans and log records that are zeroes alone, as the Collector writes them.
///
/// For the requests that [`scan`](crate::scan) says `zero_ids` of; others are returned as they are, and so are metrics.
/// Ids inside links and exemplars stay.
pub fn clear_zero_ids(signal: Signal, bytes: &Bytes) -> Bytes {
    clear_zero_ids_within(signal, bytes, &mut Unlimited).unwrap_or_else(|NoMemory| bytes.clone())
}

/// As [`clear_zero_ids`], with memory that is asked for before it is allocated.
///
/// # Errors
///
/// If the allowance does not grant what the result takes and what it takes to make it.
pub fn clear_zero_ids_within(signal: Signal, bytes: &Bytes, allowance: &mut dyn Allowance) -> Result<Bytes, NoMemory> {
    let ids: &[u32] = match signal {
        Signal::Traces => &[span::TRACE_ID, span::SPAN_ID, span::PARENT_SPAN_ID],
        Signal::Logs => &[log::TRACE_ID, log::SPAN_ID],
        Signal::Metrics => return Ok(bytes.clone()),
    };
    edit(bytes, &mut ClearIds(ids), Plan::within(allowance))
}

/// The field numbers of the ids.
struct ClearIds(&'static [u32]);

impl ClearIds {
    /// The ids that are none by number: the last one counts, and it is zero. A set of bits.
    fn none(&self, record: &[u8]) -> u32 {
        let ids = Fields::new(record).filter(|field| self.is_id(field));
        ids.fold(0, |none, id| if is_zero(&id) { none | 1 << id.number } else { none & !(1 << id.number) })
    }

    fn is_id(&self, field: &Field<'_>) -> bool {
        self.0.iter().any(|&id| field.is_len(id))
    }
}

fn is_zero(field: &Field<'_>) -> bool {
    !field.value.is_empty() && field.value.iter().all(|&byte| byte == 0)
}

impl Walk for ClearIds {
    fn record(&mut self, plan: &mut Plan<'_>, place: &Place<'_>, field: &Field<'_>) -> bool {
        let none = self.none(field.value);
        replace(plan, field, |plan| {
            let mut changed = false;
            let mut fields = Fields::new(field.value);
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
