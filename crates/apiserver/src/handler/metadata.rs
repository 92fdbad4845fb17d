//! The fields of metadata that belong to the server, not to the writer.

use serde_json::Value;

use crate::api::{
    identity,
    meta::{Meta, remove_meta, set_meta},
};

/// What the server gives to a new object.
pub fn stamp_new(object: &mut Value, namespace: &str, now: &str) {
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "resourceVersion"] {
        remove_meta(object, field);
    }
    if !namespace.is_empty() {
        set_meta(object, "namespace", namespace);
    } else {
        remove_meta(object, "namespace");
    }
    set_meta(object, "uid", identity::uid());
    set_meta(object, "creationTimestamp", now);
}

/// What a writer leaves out, or may not change, comes from what is stored.
pub fn carry_over(object: &mut Value, live: &Value, namespace: &str) {
    remove_meta(object, "selfLink");
    if !namespace.is_empty() {
        set_meta(object, "namespace", namespace);
    }
    for field in ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        if object.meta(field).is_none_or(Value::is_null)
            && let Some(value) = live.meta(field)
        {
            set_meta(object, field, value.clone());
        }
    }
    // creationTimestamp and generation never change, whatever the writer says.
    for field in ["creationTimestamp", "generation"] {
        match live.meta(field) {
            Some(value) => set_meta(object, field, value.clone()),
            None => drop(remove_meta(object, field)),
        }
    }
}

/// Marks an object as being deleted. What is marked already stays as it is.
pub fn mark_deleted(object: &mut Value, now: &str, grace: Option<i64>) {
    if !object.is_deleting() {
        set_meta(object, "deletionTimestamp", now);
        if object.generation() > 0 {
            set_meta(object, "generation", object.generation() + 1);
        }
    }
    if let Some(grace) = grace {
        set_meta(object, "deletionGracePeriodSeconds", grace);
    }
}

/// Adds or removes a finalizer.
pub fn set_finalizer(object: &mut Value, finalizer: &str, wanted: bool) {
    let mut all: Vec<String> = object.finalizers().map(str::to_owned).filter(|known| known != finalizer).collect();
    if wanted {
        all.push(finalizer.to_owned());
    }
    match all.is_empty() {
        true => drop(remove_meta(object, "finalizers")),
        false => set_meta(object, "finalizers", all),
    }
}

/// Whether nothing keeps a deleted object any longer.
pub fn is_gone(object: &Value) -> bool {
    let grace = object.meta("deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0);
    object.is_deleting() && grace == 0 && object.finalizers().next().is_none()
}
