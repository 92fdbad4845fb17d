//! The fields of metadata that belong to the server, not to the writer.

use serde_json::Value;

use crate::api::{
    identity,
    meta::{Meta, remove_meta, set_meta},
};

/// Drops what the creator of an object may not choose.
pub fn strip(object: &mut Value) {
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "uid", "creationTimestamp"] {
        remove_meta(object, field);
    }
}

/// What the server gives to a new object.
pub fn stamp_new(object: &mut Value, namespace: &str, now: &str) {
    strip(object);
    remove_meta(object, "resourceVersion");
    if !namespace.is_empty() {
        set_meta(object, "namespace", namespace);
    } else {
        remove_meta(object, "namespace");
    }
    set_meta(object, "uid", identity::uid());
    set_meta(object, "creationTimestamp", now);
}

/// Marks an object as being deleted. What is marked already stays as it is.
pub fn mark_deleted(object: &mut Value, now: &str, grace: Option<i64>) {
    if !object.is_deleting() {
        set_meta(object, "deletionTimestamp", now);
        // Kinds that do without a grace period count no generation here, either.
        if object.generation() > 0 && grace.is_some() {
            set_meta(object, "generation", object.generation() + 1);
        }
    }
    if let Some(grace) = grace {
        set_meta(object, "deletionGracePeriodSeconds", grace);
    }
}
