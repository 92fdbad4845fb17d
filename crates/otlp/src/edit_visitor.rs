//! The walk that edits messages of a request, shared by the editing operations.

use bytes::Bytes;

use crate::field_numbers::{resource_entry, scope_entry};
use crate::memory::NoMemory;
use crate::nesting::is_child;
use crate::view::{ResourceEntry, ScopeEntry};
use crate::wire::{WireField, WireFields};
use crate::write_plan::WritePlan;

/// Edits messages during the walk. A method that returns true has put a replacement into the plan; false leaves
/// the plan as it was, and the message is copied unchanged.
pub(crate) trait EditVisitor {
    /// Whether records are visited; if not, they are copied as a whole.
    const VISITS_RECORDS: bool = true;

    /// Visits the resource of an entry. A replacement is written as a whole field.
    fn resource(&mut self, plan: &mut WritePlan<'_>, entry: &ResourceEntry<'_>) -> bool {
        let _ = (plan, entry);
        false
    }

    /// Visits the scope of an entry. A replacement is written as a whole field.
    fn scope(&mut self, plan: &mut WritePlan<'_>, entry: &ScopeEntry<'_>) -> bool {
        let _ = (plan, entry);
        false
    }

    /// Visits a record. A replacement is written as a whole field.
    fn record(&mut self, plan: &mut WritePlan<'_>, place: &RecordContext<'_>, field: &WireField<'_>) -> bool;
}

pub(crate) struct RecordContext<'a> {
    pub(crate) source: &'a [u8],
    pub(crate) resource: &'a ResourceEntry<'a>,
    pub(crate) scope: &'a ScopeEntry<'a>,
}

/// Walks a request. Without any change the same bytes are returned; unchanged entries are copied.
pub(crate) fn edit(bytes: &Bytes, walk: &mut impl EditVisitor, mut plan: WritePlan<'_>) -> Result<Bytes, NoMemory> {
    let mut changed = false;
    let mut fields = WireFields::new(bytes);
    for field in fields.by_ref() {
        changed |= is_child(0, &field)
            && replace(&mut plan, &field, |plan| edit_resource_entry(plan, bytes, field.value, walk))
            || copy(&mut plan, bytes, &field);
        if plan.is_exhausted() {
            return Err(NoMemory);
        }
    }
    plan.run(bytes, fields.rest());
    if changed { plan.write(bytes) } else { Ok(bytes.clone()) }
}

/// Puts a message into the plan whose content `write` plans; nothing if `write` reports no change.
pub(crate) fn replace(
    plan: &mut WritePlan<'_>,
    field: &WireField<'_>,
    write: impl FnOnce(&mut WritePlan<'_>) -> bool,
) -> bool {
    plan.open(field.number);
    let changed = write(plan);
    if changed {
        plan.close();
    } else {
        plan.abandon();
    }
    changed
}

/// Copies a field into the plan unchanged. Returns false: no change.
pub(crate) fn copy(plan: &mut WritePlan<'_>, source: &[u8], field: &WireField<'_>) -> bool {
    plan.run(source, field.raw);
    false
}

fn edit_resource_entry<W: EditVisitor>(plan: &mut WritePlan<'_>, source: &[u8], content: &[u8], walk: &mut W) -> bool {
    let resource = ResourceEntry::new(content);
    let replaced = walk.resource(plan, &resource);
    if !W::VISITS_RECORDS && !replaced {
        return false;
    }
    let mut changed = replaced;
    let mut fields = WireFields::new(content);
    for field in fields.by_ref() {
        if replaced && field.is_len(resource_entry::RESOURCE) {
            continue;
        }
        changed |= W::VISITS_RECORDS
            && is_child(1, &field)
            && replace(plan, &field, |plan| edit_scope_entry(plan, source, &resource, field.value, walk))
            || copy(plan, source, &field);
        if plan.is_exhausted() {
            break;
        }
    }
    plan.run(source, fields.rest());
    changed
}

fn edit_scope_entry(
    plan: &mut WritePlan<'_>,
    source: &[u8],
    resource: &ResourceEntry<'_>,
    content: &[u8],
    walk: &mut impl EditVisitor,
) -> bool {
    let scope = ScopeEntry::new(content);
    let place = RecordContext { source, resource, scope: &scope };
    let replaced = walk.scope(plan, &scope);
    let mut changed = replaced;
    let mut fields = WireFields::new(content);
    for field in fields.by_ref() {
        if replaced && field.is_len(scope_entry::SCOPE) {
            continue;
        }
        changed |= is_child(2, &field) && walk.record(plan, &place, &field) || copy(plan, source, &field);
        if plan.is_exhausted() {
            break;
        }
    }
    plan.run(source, fields.rest());
    changed
}
