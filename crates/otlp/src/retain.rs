//! Some records of a request, without the others.

mod each;
mod runs;

use bytes::Bytes;

use crate::Signal;
use crate::level::is_child;
use crate::memory::{Allowance, NoMemory, Unlimited};
use crate::plan::Plan;
use crate::rewrite::Edits;
use crate::view::{RecordRef, ResourceEntry};
use crate::wire::{Field, Fields};
use each::Each;
use runs::Runs;

pub use runs::{Fate, TraceId};

/// What [`retain`], [`select`] or [`select_traces`] left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retained {
    /// The encoded request; empty if nothing is left.
    pub bytes: Bytes,
    /// How many items are in it.
    pub items: usize,
    /// How many items are not in it any more.
    pub dropped: usize,
}

impl Retained {
    fn nothing() -> Self {
        Self { bytes: Bytes::new(), items: 0, dropped: 0 }
    }
}

/// Keeps the records that `keep` says yes to. A record is a span, a log record or a metric.
///
/// Guaranteed for bytes that [`scan`](crate::scan) accepted: `keep` is asked once for each record, in order; what is
/// kept is copied as it stands, in its order. A scope or resource entry that had records and has none left goes too; one
/// that had none stays. If every record is kept the same bytes are returned, and nothing is copied.
///
/// Assumed: the bytes were scanned. Others do not panic; what is not understood is kept.
pub fn retain(signal: Signal, bytes: &Bytes, keep: impl FnMut(&RecordRef<'_>) -> bool) -> Retained {
    retain_within(signal, bytes, keep, &mut Unlimited).unwrap_or_else(|NoMemory| Retained::nothing())
}

/// As [`retain`], with memory that is asked for before it is allocated.
///
/// # Errors
///
/// If the allowance does not grant what the result takes and what it takes to make it.
pub fn retain_within(
    signal: Signal,
    bytes: &Bytes,
    mut keep: impl FnMut(&RecordRef<'_>) -> bool,
    allowance: &mut dyn Allowance,
) -> Result<Retained, NoMemory> {
    select_within(signal, bytes, |record, _| keep(record), allowance)
}

/// As [`retain`], and changes what it keeps, in one walk: `keep` may add edits for the span or log record that it says yes
/// to. Edits of a metric have no effect.
pub fn select(signal: Signal, bytes: &Bytes, keep: impl FnMut(&RecordRef<'_>, &mut Edits) -> bool) -> Retained {
    select_within(signal, bytes, keep, &mut Unlimited).unwrap_or_else(|NoMemory| Retained::nothing())
}

/// As [`select`], with memory that is asked for before it is allocated.
///
/// # Errors
///
/// As for [`retain_within`].
pub fn select_within(
    signal: Signal,
    bytes: &Bytes,
    keep: impl FnMut(&RecordRef<'_>, &mut Edits) -> bool,
    allowance: &mut dyn Allowance,
) -> Result<Retained, NoMemory> {
    Filter::run(bytes, Each::new(signal, keep), Plan::within(allowance))
}

/// As [`select`], for spans on which their trace id alone decides: `decide` is asked once for neighbours of one trace, and told how many they
/// are.
///
/// Assumed: [`Traits::has_plain_ids`](crate::Traits::has_plain_ids). A span that does not begin with its trace id is kept.
pub fn select_traces(bytes: &Bytes, decide: impl FnMut(&TraceId, usize) -> Fate) -> Retained {
    select_traces_within(bytes, decide, &mut Unlimited).unwrap_or_else(|NoMemory| Retained::nothing())
}

/// As [`select_traces`], with memory that is asked for before it is allocated.
///
/// # Errors
///
/// As for [`retain_within`].
pub fn select_traces_within(
    bytes: &Bytes,
    decide: impl FnMut(&TraceId, usize) -> Fate,
    allowance: &mut dyn Allowance,
) -> Result<Retained, NoMemory> {
    Filter::run(bytes, Runs::new(decide), Plan::within(allowance))
}

/// Parts of a plan for which there is room at first: as many as a request of a hundred records needs that loses some of them.
const ROOM: usize = 64;

/// Who decides on the records of a scope.
trait Chooser {
    /// Puts into the plan what is left of this content of a scope entry.
    fn scope<'s>(&mut self, out: &mut Output<'s, '_>, resource: &ResourceEntry<'_>, content: &'s [u8]) -> Records;
}

/// What is left so far.
struct Output<'s, 'm> {
    source: &'s [u8],
    plan: Plan<'m>,
    items: usize,
    dropped: usize,
    /// Whether anything was dropped or edited; a metric without points is a record, but no item.
    changed: bool,
}

impl<'s> Output<'s, '_> {
    /// These bytes of the source stay as they are.
    fn keep(&mut self, raw: &'s [u8]) {
        self.plan.run(self.source, raw);
    }

    /// So many items stay.
    fn kept(&mut self, items: usize) {
        self.items += items;
    }

    /// A record of so many items goes.
    fn drop(&mut self, items: usize) {
        self.dropped += items;
        self.changed = true;
    }
}

/// How many records an entry had, how many it has, and whether one of these is not what it was.
#[derive(Clone, Copy, Default)]
struct Records {
    before: usize,
    after: usize,
    edited: bool,
}

struct Filter<'s, 'm, C> {
    out: Output<'s, 'm>,
    chooser: C,
}

impl<'s, 'm, C: Chooser> Filter<'s, 'm, C> {
    fn run(bytes: &'s Bytes, chooser: C, plan: Plan<'m>) -> Result<Retained, NoMemory> {
        let out = Output { source: bytes, plan: plan.with_room(ROOM), items: 0, dropped: 0, changed: false };
        let mut filter = Self { out, chooser };
        filter.request();
        let Output { mut plan, items, dropped, changed, .. } = filter.out;
        if plan.is_exhausted() {
            return Err(NoMemory);
        }
        let bytes = if changed { plan.write(bytes)? } else { bytes.clone() };
        Ok(Retained { bytes, items, dropped })
    }

    fn request(&mut self) {
        let mut fields = Fields::new(self.out.source);
        for field in fields.by_ref() {
            if is_child(0, &field) {
                self.entry(&field, Self::resource_entry);
            } else {
                self.out.keep(field.raw);
            }
            if self.out.plan.is_exhausted() {
                return;
            }
        }
        self.out.keep(fields.rest());
    }

    fn resource_entry(&mut self, content: &'s [u8]) -> Records {
        let resource = ResourceEntry::new(content);
        let mut records = Records::default();
        let mut fields = Fields::new(content);
        for field in fields.by_ref() {
            if is_child(1, &field) {
                let scope = |filter: &mut Self, content| filter.chooser.scope(&mut filter.out, &resource, content);
                let inner = self.entry(&field, scope);
                records.before += inner.before;
                records.after += inner.after;
                records.edited |= inner.edited;
            } else {
                self.out.keep(field.raw);
            }
            if self.out.plan.is_exhausted() {
                break;
            }
        }
        self.out.keep(fields.rest());
        records
    }

    /// An entry that lost nothing is copied as it stands; one that lost everything goes.
    fn entry(&mut self, field: &Field<'s>, walk: impl FnOnce(&mut Self, &'s [u8]) -> Records) -> Records {
        self.out.plan.open(field.number);
        let records = walk(self, field.value);
        if records.before == records.after && !records.edited {
            self.out.plan.abandon();
            self.out.keep(field.raw);
        } else if records.after == 0 {
            self.out.plan.abandon();
        } else {
            self.out.plan.close();
        }
        records
    }
}
