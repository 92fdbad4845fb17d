//! Decides each record by itself, with edits.

use super::{RecordChooser, RecordTally, RetainOutput};
use crate::Signal;
use crate::nesting::{RECORD_LEVEL, count_items, is_child};
use crate::rewrite::{EditList, MessageRewriter};
use crate::view::{MessageView, RecordRef, ResourceEntry, ScopeEntry};
use crate::wire::{WireField, WireFields};

pub(super) struct EditingChooser<K> {
    signal: Signal,
    keep: K,
    edits: EditList,
    bench: MessageRewriter,
}

impl<K: FnMut(&RecordRef<'_>, &mut EditList) -> bool> EditingChooser<K> {
    pub(super) fn new(signal: Signal, keep: K) -> Self {
        Self { signal, keep, edits: EditList::default(), bench: MessageRewriter::default() }
    }

    fn keeps(&mut self, out: &mut RetainOutput<'_, '_>, record: &RecordRef<'_>) -> bool {
        let items = count_items(self.signal, RECORD_LEVEL, record.as_bytes(), usize::MAX);
        self.edits.clear();
        let kept = (self.keep)(record, &mut self.edits);
        if kept {
            out.count_kept(items);
        } else {
            out.count_dropped(items);
        }
        kept
    }

    /// Puts the edited record into the plan, if the edits change it.
    fn edit(&mut self, out: &mut RetainOutput<'_, '_>, field: &WireField<'_>) -> bool {
        let edited = self.bench.record(&mut out.plan, self.signal, field, &self.edits);
        out.changed |= edited;
        edited
    }
}

impl<K: FnMut(&RecordRef<'_>, &mut EditList) -> bool> RecordChooser for EditingChooser<K> {
    fn scope<'s>(
        &mut self,
        out: &mut RetainOutput<'s, '_>,
        resource: &ResourceEntry<'_>,
        content: &'s [u8],
    ) -> RecordTally {
        let scope = ScopeEntry::new(content);
        reserve_headers(out, resource, &scope);
        let mut records = RecordTally::default();
        let mut fields = WireFields::new(content);
        for field in fields.by_ref() {
            if is_child(2, &field) {
                if out.plan.is_exhausted() || !out.plan.reserve_work(field.value) {
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
            out.copy_bytes(field.raw);
        }
        out.copy_bytes(fields.rest());
        records
    }
}

/// A larger entry may have a resource or a scope that takes memory to read.
const SMALL_ENTRY_BYTES: usize = 64 << 10;

/// Reserves memory to read the resource and the scope of records, where they may be large.
fn reserve_headers(out: &mut RetainOutput<'_, '_>, resource: &ResourceEntry<'_>, scope: &ScopeEntry<'_>) {
    if resource.as_bytes().len() > SMALL_ENTRY_BYTES {
        let _ =
            out.plan.reserve_work(resource.resource().as_bytes()) && out.plan.reserve_work(scope.scope().as_bytes());
    }
}
