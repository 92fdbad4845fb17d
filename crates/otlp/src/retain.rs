//! Some records of a request, without the others.

use bytes::Bytes;

use crate::Signal;
use crate::level::{RECORD, count_items, is_child};
use crate::numbers::span;
use crate::plan::Plan;
use crate::rewrite::{Bench, Edits};
use crate::view::{RecordRef, ResourceEntry, ScopeEntry};
use crate::wire::{Field, Fields, put_bytes};

/// What [`retain`] or [`select`] left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retained {
    /// The encoded request; empty if nothing is left.
    pub bytes: Bytes,
    /// How many items are in it.
    pub items: usize,
    /// How many items are not in it any more.
    pub dropped: usize,
}

/// Keeps the records that `keep` says yes to. A record is a span, a log record or a metric.
///
/// Guaranteed for bytes that [`scan`](crate::scan) accepted: `keep` is asked once for each record, in order; what is
/// kept is copied as it stands, in its order. A scope or resource entry that had records and has none left goes too; one
/// that had none stays. If every record is kept the same bytes are returned, and nothing is copied.
///
/// Assumed: the bytes were scanned. Others do not panic; what is not understood is kept.
pub fn retain(signal: Signal, bytes: &Bytes, mut keep: impl FnMut(&RecordRef<'_>) -> bool) -> Retained {
    select(signal, bytes, |record, _| keep(record))
}

/// As [`retain`], and changes what it keeps, in one walk: `keep` may add edits for the span or log record that it says yes
/// to. Edits of a metric have no effect.
pub fn select(signal: Signal, bytes: &Bytes, keep: impl FnMut(&RecordRef<'_>, &mut Edits) -> bool) -> Retained {
    let mut filter = Filter {
        signal,
        source: bytes,
        plan: Plan::with_room(ROOM),
        keep,
        edits: Edits::default(),
        bench: Bench::default(),
        items: 0,
        dropped: 0,
        changed: false,
    };
    filter.request();
    let bytes = if filter.changed { filter.plan.write(bytes) } else { bytes.clone() };
    Retained { bytes, items: filter.items, dropped: filter.dropped }
}

/// Parts of a plan for which there is room at first: as many as a request of a hundred records needs that loses some of them.
const ROOM: usize = 64;

struct Filter<'s, K> {
    signal: Signal,
    source: &'s [u8],
    plan: Plan,
    keep: K,
    edits: Edits,
    bench: Bench,
    items: usize,
    dropped: usize,
    /// Whether anything was dropped or edited; a metric without points is a record, but no item.
    changed: bool,
}

/// How many records an entry had, how many it has, and whether one of these is not what it was.
#[derive(Clone, Copy, Default)]
struct Records {
    before: usize,
    after: usize,
    edited: bool,
}

impl<'s, K: FnMut(&RecordRef<'_>, &mut Edits) -> bool> Filter<'s, K> {
    fn request(&mut self) {
        let mut fields = Fields::new(self.source);
        for field in fields.by_ref() {
            if is_child(0, &field) {
                self.entry(&field, Self::resource_entry);
            } else {
                self.plan.run(self.source, field.raw);
            }
        }
        self.plan.run(self.source, fields.rest());
    }

    /// An entry that lost nothing is copied as it stands; one that lost everything goes.
    fn entry(&mut self, field: &Field<'s>, walk: impl FnOnce(&mut Self, &'s [u8]) -> Records) -> Records {
        self.plan.open(field.number);
        let records = walk(self, field.value);
        if records.before == records.after && !records.edited {
            self.plan.abandon();
            self.plan.run(self.source, field.raw);
        } else if records.after == 0 {
            self.plan.abandon();
        } else {
            self.plan.close();
        }
        records
    }

    fn resource_entry(&mut self, content: &'s [u8]) -> Records {
        let resource = ResourceEntry::new(content);
        let mut records = Records::default();
        let mut fields = Fields::new(content);
        for field in fields.by_ref() {
            if is_child(1, &field) {
                let inner = self.entry(&field, |filter, content| filter.scope_entry(&resource, content));
                records.before += inner.before;
                records.after += inner.after;
                records.edited |= inner.edited;
            } else {
                self.plan.run(self.source, field.raw);
            }
        }
        self.plan.run(self.source, fields.rest());
        records
    }

    fn scope_entry(&mut self, resource: &ResourceEntry<'_>, content: &'s [u8]) -> Records {
        let scope = ScopeEntry::new(content);
        let mut records = Records::default();
        let mut fields = Fields::new(content);
        for field in fields.by_ref() {
            if is_child(2, &field) {
                records.before += 1;
                if !self.record(&RecordRef::new(self.signal, resource, &scope, field.value)) {
                    continue;
                }
                records.after += 1;
                if self.edit(&field) {
                    records.edited = true;
                    continue;
                }
            }
            self.plan.run(self.source, field.raw);
        }
        self.plan.run(self.source, fields.rest());
        records
    }

    fn record(&mut self, record: &RecordRef<'_>) -> bool {
        let items = count_items(self.signal, RECORD, record.as_bytes(), usize::MAX);
        self.edits.clear();
        let kept = (self.keep)(record, &mut self.edits);
        if kept {
            self.items += items;
        } else {
            self.dropped += items;
            self.changed = true;
        }
        kept
    }

    /// Puts the record into the plan with its edits done, if that makes a difference.
    fn edit(&mut self, field: &Field<'s>) -> bool {
        let edited = match self.edits.as_first_trace_state() {
            // Without a copy of the span.
            Some(state) if self.signal == Signal::Traces => {
                self.plan.open(field.number);
                self.plan.run(self.source, field.value);
                self.plan.new_bytes(|out| put_bytes(out, span::TRACE_STATE, state));
                self.plan.close();
                true
            }
            _ => self.bench.record(&mut self.plan, self.signal, field, &self.edits),
        };
        self.changed |= edited;
        edited
    }
}
