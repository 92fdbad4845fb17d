//! Metadata fields that the server sets, not the writer.

use std::collections::HashMap;

use serde_json::Value;

use super::call::WarningRecorder;
use crate::api::{
    identity,
    meta::{MetaAccessor, remove_meta, set_meta},
};

/// Removes the fields that the creator of an object may not set.
pub fn strip_server_fields(object: &mut Value) {
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "uid", "creationTimestamp"] {
        remove_meta(object, field);
    }
}

/// Sets the metadata of a new object.
pub fn set_create_metadata(object: &mut Value, namespace: &str, now: &str) {
    strip_server_fields(object);
    remove_meta(object, "resourceVersion");
    if !namespace.is_empty() {
        set_meta(object, "namespace", namespace);
    } else {
        remove_meta(object, "namespace");
    }
    set_meta(object, "uid", identity::uid());
    set_meta(object, "creationTimestamp", now);
}

/// When duplicate owner references were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnersSeen {
    /// In the request.
    Sent,
    /// After mutating admission.
    Admitted,
}

/// Removes duplicate owner references, and warns the writer about them.
pub fn dedup_owners(object: &mut Value, seen: OwnersSeen, warnings: &WarningRecorder) {
    let owners = object.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut);
    let Some(owners) = owners.filter(|owners| owners.len() > 1) else { return };
    let mut known: HashMap<Option<&str>, Vec<&Value>> = HashMap::new();
    let mut twice = Vec::new();
    for (place, owner) in owners.iter().enumerate() {
        let same = known.entry(owner.get("uid").and_then(Value::as_str)).or_default();
        if same.iter().any(|other| is_same_owner(other, owner)) {
            twice.push(place);
        } else {
            same.push(owner);
        }
    }
    if twice.is_empty() {
        return;
    }
    let uids = twice.iter().filter_map(|place| owners.get(*place)?.get("uid")?.as_str());
    let when = match seen {
        OwnersSeen::Sent => "",
        OwnersSeen::Admitted => " after mutating admission happens",
    };
    warnings.add(format!(
        ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may reject such \
         requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
        uids.collect::<Vec<_>>().join(", ")
    ));
    let mut place = 0;
    owners.retain(|_| {
        place += 1;
        twice.binary_search(&(place - 1)).is_err()
    });
}

/// Whether two references are equal, field by field. Null counts as absent.
fn is_same_owner(one: &Value, other: &Value) -> bool {
    const FIELDS: [&str; 6] = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
    let field = |owner: &Value, name: &str| owner.get(name).filter(|value| !value.is_null()).cloned();
    FIELDS.iter().all(|name| field(one, name) == field(other, name))
}

/// Marks an object as being deleted. One that is marked already does not change.
pub fn mark_deleted(object: &mut Value, now: &str, grace: Option<i64>) {
    if !object.is_deleting() {
        set_meta(object, "deletionTimestamp", now);
        // Kinds without a grace period do not increment the generation here, either.
        if object.generation() > 0 && grace.is_some() {
            set_meta(object, "generation", object.generation() + 1);
        }
    }
    if let Some(grace) = grace {
        set_meta(object, "deletionGracePeriodSeconds", grace);
    }
}
