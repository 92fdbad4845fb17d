//! Access to JSON objects, and the parts of a write that most kinds share: defaults, status, spec and
//! generation.

use serde_json::{Map, Value};

use super::metadata;
use crate::api::meta::{MetaAccessor, child_mut, set_meta};

pub type JsonObject = Map<String, Value>;

/// A member that is an object.
pub fn object_member_mut<'a>(object: &'a mut Value, name: &str) -> Option<&'a mut JsonObject> {
    object.get_mut(name)?.as_object_mut()
}

/// The same, in a nested object.
pub fn nested_object_mut<'a>(object: &'a mut JsonObject, name: &str) -> Option<&'a mut JsonObject> {
    object.get_mut(name)?.as_object_mut()
}

/// A member, created as an object if absent.
pub fn made<'a>(object: &'a mut Value, name: &str) -> Option<&'a mut JsonObject> {
    child_mut(object.as_object_mut()?, name)
}

/// The items of a list that are objects.
pub fn object_items_mut<'a>(object: &'a mut JsonObject, list: &str) -> impl Iterator<Item = &'a mut JsonObject> {
    object.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}

pub fn set_if_absent(object: &mut JsonObject, field: &str, value: impl Into<Value>) {
    if object.get(field).is_none_or(Value::is_null) {
        object.insert(field.to_owned(), value.into());
    }
}

/// Sets a string that is absent or empty.
pub fn set_text_if_empty(object: &mut JsonObject, field: &str, value: &str) {
    if object.get(field).and_then(Value::as_str).is_none_or(str::is_empty) {
        object.insert(field.to_owned(), value.into());
    }
}

/// Sets a number that is absent or zero.
pub fn set_number_if_zero(object: &mut JsonObject, field: &str, value: i64) {
    if object.get(field).and_then(Value::as_i64).is_none_or(|number| number == 0) {
        object.insert(field.to_owned(), value.into());
    }
}

/// A string; empty if absent.
pub fn text<'a>(object: &'a JsonObject, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The string at a path; empty if absent.
pub fn text_at<'a>(object: &'a Value, path: &[&str]) -> &'a str {
    value_at(object, path).and_then(Value::as_str).unwrap_or_default()
}

/// The number at a path; zero if absent.
pub fn number_at(object: &Value, path: &[&str]) -> i64 {
    value_at(object, path).and_then(Value::as_i64).unwrap_or_default()
}

pub fn value_at<'a>(object: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(object, |object, name| object.get(name))
}

/// The items of the list at a path.
pub fn list_at<'a>(object: &'a Value, path: &[&str]) -> &'a [Value] {
    value_at(object, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub fn set(object: &mut Value, field: &str, value: Value) {
    if let Some(object) = object.as_object_mut() {
        object.insert(field.to_owned(), value);
    }
}

/// Restores a field to its old value, or removes it.
pub fn restore_field(new: &mut Value, old: &Value, field: &str) {
    let Some(object) = new.as_object_mut() else { return };
    match old.get(field) {
        Some(value) => drop(object.insert(field.to_owned(), value.clone())),
        None => drop(object.remove(field)),
    }
}

/// Restores all fields that a write through `status` may not change: everything but the status and most
/// metadata.
pub fn keep_all_but_status(new: &mut Value, old: &Value) {
    let names: Vec<String> = new.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
    let old_names = old.as_object().into_iter().flatten().map(|(name, _)| name.clone());
    for name in names.into_iter().chain(old_names) {
        if !["apiVersion", "kind", "metadata", "status"].contains(&name.as_str()) {
            restore_field(new, old, &name);
        }
    }
    metadata::restore_meta_field(new, old, "generation");
}

/// Restores the status on the main path, and all other fields on the path of the status.
pub fn keep_status_apart(new: &mut Value, old: &Value, subresource: &str) {
    match subresource {
        "status" => keep_all_but_status(new, old),
        _ => restore_field(new, old, "status"),
    }
}

/// The same, and increments the generation if anything beside metadata and status has changed.
pub fn keep_status_apart_and_bump_generation(new: &mut Value, old: &Value, subresource: &str) {
    keep_status_apart(new, old, subresource);
    if subresource != "status" {
        bump_generation_if_anything_changed(new, old);
    }
}

pub fn init_generation(object: &mut Value) {
    set_meta(object, "generation", 1);
}

/// Increments the generation if one of these fields has changed.
pub fn bump_generation_if_changed(new: &mut Value, old: &Value, fields: &[&str]) {
    if fields.iter().any(|field| new.get(field) != old.get(field)) {
        set_meta(new, "generation", old.generation().saturating_add(1));
    }
}

/// Increments the generation if anything beside metadata and status has changed.
pub fn bump_generation_if_anything_changed(new: &mut Value, old: &Value) {
    let differs = |one: &Value, other: &Value| {
        let fields = one.as_object().into_iter().flatten();
        fields
            .filter(|(name, _)| !["apiVersion", "kind", "metadata", "status"].contains(&name.as_str()))
            .any(|(name, value)| other.get(name) != Some(value))
    };
    if differs(new, old) || differs(old, new) {
        set_meta(new, "generation", old.generation().saturating_add(1));
    }
}
