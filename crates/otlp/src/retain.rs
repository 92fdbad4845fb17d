//! Keeps some records of a request, and drops the others.

mod editing_chooser;
mod trace_chooser;

use bytes::Bytes;

use crate::Signal;
use crate::memory::{Allowance, NoMemory, UnlimitedAllowance};
use crate::nesting::is_child;
use crate::rewrite::EditList;
use crate::view::{RecordRef, ResourceEntry};
use crate::wire::{WireField, WireFields};
use crate::write_plan::WritePlan;
use editing_chooser::EditingChooser;
use trace_chooser::TraceChooser;

pub use trace_chooser::{SpanDisposition, TraceId};

/// The result of [`retain`], [`select`] or [`select_traces`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetainedRecords {
    /// The encoded request; empty if nothing is left.
    pub bytes: Bytes,
    /// Number of items in the result.
    pub items: usize,
    /// Number of items that were dropped.
    pub dropped: usize,
}

impl RetainedRecords {
    fn nothing() -> Self {
        Self { bytes: Bytes::new(), items: 0, dropped: 0 }
    }
}

/// Keeps the records for which `keep` returns true. A record is a span, a log record or a metric.
///
/// Guaranteed for bytes that [`scan`](crate::scan) accepted: `keep` is called once for each record, in order;
/// kept records are copied unchanged, in their order. A scope or resource entry that loses its last record is
/// dropped too; an entry that had none stays. If every record is kept the same bytes are returned, and nothing
/// is copied.
///
/// Assumed: the bytes were scanned. Other bytes do not panic; parts that are not understood are kept.
pub fn retain(signal: Signal, bytes: &Bytes, keep: impl FnMut(&RecordRef<'_>) -> bool) -> RetainedRecords {
    retain_within(signal, bytes, keep, &mut UnlimitedAllowance).unwrap_or_else(|NoMemory| RetainedRecords::nothing())
}

/// As [`retain`], but reserves memory before it allocates.
///
/// # Errors
///
/// If the allowance refuses the memory for the result and the work.
pub fn retain_within(
    signal: Signal,
    bytes: &Bytes,
    mut keep: impl FnMut(&RecordRef<'_>) -> bool,
    allowance: &mut dyn Allowance,
) -> Result<RetainedRecords, NoMemory> {
    select_within(signal, bytes, |record, _| keep(record), allowance)
}

/// As [`retain`], and edits kept records in the same walk: `keep` may add edits for the span or log record that
/// it keeps. Edits of a metric have no effect.
pub fn select(
    signal: Signal,
    bytes: &Bytes,
    keep: impl FnMut(&RecordRef<'_>, &mut EditList) -> bool,
) -> RetainedRecords {
    select_within(signal, bytes, keep, &mut UnlimitedAllowance).unwrap_or_else(|NoMemory| RetainedRecords::nothing())
}

/// As [`select`], but reserves memory before it allocates.
///
/// # Errors
///
/// As for [`retain_within`].
pub fn select_within(
    signal: Signal,
    bytes: &Bytes,
    keep: impl FnMut(&RecordRef<'_>, &mut EditList) -> bool,
    allowance: &mut dyn Allowance,
) -> Result<RetainedRecords, NoMemory> {
    RequestFilter::run(bytes, EditingChooser::new(signal, keep), WritePlan::within(allowance))
}

/// As [`select`], for spans that are decided by their trace id alone: `decide` is called once for consecutive
/// spans of one trace, with their number.
///
/// Assumed: [`SpanTraits::has_plain_ids`](crate::SpanTraits::has_plain_ids). A span that does not begin with
/// its trace id is kept.
pub fn select_traces(bytes: &Bytes, decide: impl FnMut(&TraceId, usize) -> SpanDisposition) -> RetainedRecords {
    select_traces_within(bytes, decide, &mut UnlimitedAllowance).unwrap_or_else(|NoMemory| RetainedRecords::nothing())
}

/// As [`select_traces`], but reserves memory before it allocates.
///
/// # Errors
///
/// As for [`retain_within`].
pub fn select_traces_within(
    bytes: &Bytes,
    decide: impl FnMut(&TraceId, usize) -> SpanDisposition,
    allowance: &mut dyn Allowance,
) -> Result<RetainedRecords, NoMemory> {
    RequestFilter::run(bytes, TraceChooser::new(decide), WritePlan::within(allowance))
}

/// Initial capacity of a plan: enough for a request of a hundred records that loses some of them.
const INITIAL_PLAN_PARTS: usize = 64;

/// Decides on the records of a scope.
trait RecordChooser {
    /// Puts the kept part of this scope entry's content into the plan.
    fn scope<'s>(
        &mut self,
        out: &mut RetainOutput<'s, '_>,
        resource: &ResourceEntry<'_>,
        content: &'s [u8],
    ) -> RecordTally;
}

/// The result so far.
struct RetainOutput<'s, 'm> {
    source: &'s [u8],
    plan: WritePlan<'m>,
    items: usize,
    dropped: usize,
    /// Whether anything was dropped or edited; a metric without points is a record, but no item.
    changed: bool,
}

impl<'s> RetainOutput<'s, '_> {
    /// Keeps these bytes of the source.
    fn copy_bytes(&mut self, raw: &'s [u8]) {
        self.plan.run(self.source, raw);
    }

    fn count_kept(&mut self, items: usize) {
        self.items += items;
    }

    /// Counts a dropped record of so many items.
    fn count_dropped(&mut self, items: usize) {
        self.dropped += items;
        self.changed = true;
    }
}

/// Records of an entry before and after, and whether one of the kept ones was edited.
#[derive(Clone, Copy, Default)]
struct RecordTally {
    before: usize,
    after: usize,
    edited: bool,
}

struct RequestFilter<'s, 'm, C> {
    out: RetainOutput<'s, 'm>,
    chooser: C,
}

impl<'s, 'm, C: RecordChooser> RequestFilter<'s, 'm, C> {
    fn run(bytes: &'s Bytes, chooser: C, plan: WritePlan<'m>) -> Result<RetainedRecords, NoMemory> {
        let out = RetainOutput {
            source: bytes,
            plan: plan.with_room(INITIAL_PLAN_PARTS),
            items: 0,
            dropped: 0,
            changed: false,
        };
        let mut filter = Self { out, chooser };
        filter.request();
        let RetainOutput { mut plan, items, dropped, changed, .. } = filter.out;
        if plan.is_exhausted() {
            return Err(NoMemory);
        }
        let bytes = if changed { plan.write(bytes)? } else { bytes.clone() };
        Ok(RetainedRecords { bytes, items, dropped })
    }

    fn request(&mut self) {
        let mut fields = WireFields::new(self.out.source);
        for field in fields.by_ref() {
            if is_child(0, &field) {
                self.entry(&field, Self::resource_entry);
            } else {
                self.out.copy_bytes(field.raw);
            }
            if self.out.plan.is_exhausted() {
                return;
            }
        }
        self.out.copy_bytes(fields.rest());
    }

    fn resource_entry(&mut self, content: &'s [u8]) -> RecordTally {
        let resource = ResourceEntry::new(content);
        let mut records = RecordTally::default();
        let mut fields = WireFields::new(content);
        for field in fields.by_ref() {
            if is_child(1, &field) {
                let scope = |filter: &mut Self, content| filter.chooser.scope(&mut filter.out, &resource, content);
                let inner = self.entry(&field, scope);
                records.before += inner.before;
                records.after += inner.after;
                records.edited |= inner.edited;
            } else {
                self.out.copy_bytes(field.raw);
            }
            if self.out.plan.is_exhausted() {
                break;
            }
        }
        self.out.copy_bytes(fields.rest());
        records
    }

    /// Writes an entry. One that lost nothing is copied unchanged; one that lost everything is dropped.
    fn entry(&mut self, field: &WireField<'s>, walk: impl FnOnce(&mut Self, &'s [u8]) -> RecordTally) -> RecordTally {
        self.out.plan.open(field.number);
        let records = walk(self, field.value);
        if records.before == records.after && !records.edited {
            self.out.plan.abandon();
            self.out.copy_bytes(field.raw);
        } else if records.after == 0 {
            self.out.plan.abandon();
        } else {
            self.out.plan.close();
        }
        records
    }
}
