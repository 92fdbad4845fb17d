//! The walk that changes messages in place of others, for the operations that do.

use bytes::Bytes;

use crate::level::is_child;
use crate::memory::NoMemory;
use crate::numbers::{resource_entry, scope_entry};
use crate::plan::Plan;
use crate::view::{ResourceEntry, ScopeEntry};
use crate::wire::{Field, Fields};

/// What may be changed on the way. A method that returns true has put another message into the plan; false leaves the
/// plan as it was, and the message is copied as it stands.
pub(crate) trait Walk {
    /// Whether records are looked at; if not, they are passed over as a whole.
    const RECORDS: bool = true;

    /// The resource of an entry. Another one is written as a whole field.
    fn resource(&mut self, plan: &mut Plan<'_>, entry: &ResourceEntry<'_>) -> bool {
        let _ = (plan, entry);
        false
    }

    /// The scope of an entry. Another one is written as a whole field.
    fn scope(&mut self, plan: &mut Plan<'_>, entry: &ScopeEntry<'_>) -> bool {
        let _ = (plan, entry);
        false
    }

    /// A record. Another one is written as a whole field.
    fn record(&mut self, plan: &mut Plan<'_>, place: &Place<'_>, field: &Field<'_>) -> bool;
}

/// Where a record is.
pub(crate) struct Place<'a> {
    /// The whole request.
    pub(crate) source: &'a [u8],
    pub(crate) resource: &'a ResourceEntry<'a>,
    pub(crate) scope: &'a ScopeEntry<'a>,
}

/// Walks a request. If nothing was changed the same bytes are returned; entries without a change are copied as they stand.
pub(crate) fn edit(bytes: &Bytes, walk: &mut impl Walk, mut plan: Plan<'_>) -> Result<Bytes, NoMemory> {
    let mut changed = false;
    let mut fields = Fields::new(bytes);
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

/// Puts a message into the plan whose content `write` plans, unless that says that nothing changed.
pub(crate) fn replace(plan: &mut Plan<'_>, field: &Field<'_>, write: impl FnOnce(&mut Plan<'_>) -> bool) -> bool {
    plan.open(field.number);
    let changed = write(plan);
    if changed {
        plan.close();
    } else {
        plan.abandon();
    }
    changed
}

/// Puts a field into the plan as it stands. Returns false: nothing changed.
pub(crate) fn copy(plan: &mut Plan<'_>, source: &[u8], field: &Field<'_>) -> bool {
    plan.run(source, field.raw);
    false
}

fn edit_resource_entry<W: Walk>(plan: &mut Plan<'_>, source: &[u8], content: &[u8], walk: &mut W) -> bool {
    let resource = ResourceEntry::new(content);
    let replaced = walk.resource(plan, &resource);
    if !W::RECORDS && !replaced {
        return false;
    }
    let mut changed = replaced;
    let mut fields = Fields::new(content);
    for field in fields.by_ref() {
        if replaced && field.is_len(resource_entry::RESOURCE) {
            continue;
        }
        changed |= W::RECORDS
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
    plan: &mut Plan<'_>,
    source: &[u8],
    resource: &ResourceEntry<'_>,
    content: &[u8],
    walk: &mut impl Walk,
) -> bool {
    let scope = ScopeEntry::new(content);
    let place = Place { source, resource, scope: &scope };
    let replaced = walk.scope(plan, &scope);
    let mut changed = replaced;
    let mut fields = Fields::new(content);
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
