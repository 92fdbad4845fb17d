//! Every record is asked about, and may be changed.

use super::{Chooser, Output, Records};
use crate::Signal;
use crate::level::{RECORD, count_items, is_child};
use crate::rewrite::{Bench, Edits};
use crate::view::{RecordRef, ResourceEntry, ScopeEntry, View};
use crate::wire::{Field, Fields};

pub(super) struct Each<K> {
    signal: Signal,
    keep: K,
    edits: Edits,
    bench: Bench,
}

impl<K: FnMut(&RecordRef<'_>, &mut Edits) -> bool> Each<K> {
    pub(super) fn new(signal: Signal, keep: K) -> Self {
        Self { signal, keep, edits: Edits::default(), bench: Bench::default() }
    }

    fn keeps(&mut self, out: &mut Output<'_, '_>, record: &RecordRef<'_>) -> bool {
        let items = count_items(self.signal, RECORD, record.as_bytes(), usize::MAX);
        self.edits.clear();
        let kept = (self.keep)(record, &mut self.edits);
        if kept {
            out.kept(items);
        } else {
            out.drop(items);
        }
        kept
    }

    /// Puts the record into the plan with its edits done, if that makes a difference.
    fn edit(&mut self, out: &mut Output<'_, '_>, field: &Field<'_>) -> bool {
        let edited = self.bench.record(&mut out.plan, self.signal, field, &self.edits);
        out.changed |= edited;
        edited
    }
}

impl<K: FnMut(&RecordRef<'_>, &mut Edits) -> bool> Chooser for Each<K> {
    fn scope<'s>(&mut self, out: &mut Output<'s, '_>, resource: &ResourceEntry<'_>, content: &'s [u8]) -> Records {
        let scope = ScopeEntry::new(content);
        covers_headers(out, resource, &scope);
        let mut records = Records::default();
        let mut fields = Fields::new(content);
        for field in fields.by_ref() {
            if is_child(2, &field) {
                if out.plan.is_exhausted() || !out.plan.covers_work_on(field.value) {
                    break;
                }
                records.before += 1;
                if !self.keeps(out, &RecordRef::new(self.signal, resource, &scope, field.value)) {
                    continue;
                }
                records.after += 1;
                if self.edit(out, &field) {
                    records.edited = true;
                    continue;
                }
            }
            out.keep(field.raw);
        }
        out.keep(fields.rest());
        records
    }
}

/// An entry that is larger may have a resource or a scope for which memory is needed to read it.
const SMALL_ENTRY_BYTES: usize = 64 << 10;

/// Asks for what it takes to read the resource and the scope around records, where they may be large.
fn covers_headers(out: &mut Output<'_, '_>, resource: &ResourceEntry<'_>, scope: &ScopeEntry<'_>) {
    if resource.as_bytes().len() > SMALL_ENTRY_BYTES {
        let _ = out.plan.covers_work_on(resource.resource().as_bytes())
            && out.plan.covers_work_on(scope.scope().as_bytes());
    }
}
