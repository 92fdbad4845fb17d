//! Filling in what is absent, and the parts of a write that most kinds share: status, spec and generation.

use serde_json::{Map, Value};

use super::metadata;
use crate::api::meta::{Meta, child_mut, set_meta};

/// A JSON object.
pub type Object = Map<String, Value>;

/// A part of an object that is there and is an object itself.
pub fn part<'a>(object: &'a mut Value, name: &str) -> Option<&'a mut Object> {
    object.get_mut(name)?.as_object_mut()
}

/// The same, one step further down.
pub fn sub<'a>(object: &'a mut Object, name: &str) -> Option<&'a mut Object> {
    object.get_mut(name)?.as_object_mut()
}

/// A part that is made when it is not there.
pub fn made<'a>(object: &'a mut Value, name: &str) -> Option<&'a mut Object> {
    child_mut(object.as_object_mut()?, name)
}

/// The items of a list that are objects.
pub fn each<'a>(object: &'a mut Object, list: &str) -> impl Iterator<Item = &'a mut Object> {
    object.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}

/// Sets a field that is absent or null.
pub fn fill(object: &mut Object, field: &str, value: impl Into<Value>) {
    if object.get(field).is_none_or(Value::is_null) {
        object.insert(field.to_owned(), value.into());
    }
}

/// Sets a text that is absent or empty.
pub fn fill_text(object: &mut Object, field: &str, value: &str) {
    if object.get(field).and_then(Value::as_str).is_none_or(str::is_empty) {
        object.insert(field.to_owned(), value.into());
    }
}

/// Sets a number that is absent or zero.
pub fn fill_number(object: &mut Object, field: &str, value: i64) {
    if object.get(field).and_then(Value::as_i64).is_none_or(|number| number == 0) {
        object.insert(field.to_owned(), value.into());
    }
}

/// A text, empty if there is none.
pub fn text<'a>(object: &'a Object, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The text at a path, empty if there is none.
pub fn text_at<'a>(object: &'a Value, path: &[&str]) -> &'a str {
    at(object, path).and_then(Value::as_str).unwrap_or_default()
}

/// The number at a path, zero if there is none.
pub fn number_at(object: &Value, path: &[&str]) -> i64 {
    at(object, path).and_then(Value::as_i64).unwrap_or_default()
}

/// The value at a path.
pub fn at<'a>(object: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(object, |object, name| object.get(name))
}

/// The items of the list at a path.
pub fn list_at<'a>(object: &'a Value, path: &[&str]) -> &'a [Value] {
    at(object, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Sets a field of the object.
pub fn set(object: &mut Value, field: &str, value: Value) {
    if let Some(object) = object.as_object_mut() {
        object.insert(field.to_owned(), value);
    }
}

/// Makes a field what it was, or absent if it was.
pub fn keep(new: &mut Value, old: &Value, field: &str) {
    let Some(object) = new.as_object_mut() else { return };
    match old.get(field) {
        Some(value) => drop(object.insert(field.to_owned(), value.clone())),
        None => drop(object.remove(field)),
    }
}

/// What a write through `status` leaves as it was: everything but the status and most of the metadata.
pub fn keep_all_but_status(new: &mut Value, old: &Value) {
    let names: Vec<String> = new.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
    let old_names = old.as_object().into_iter().flatten().map(|(name, _)| name.clone());
    for name in names.into_iter().chain(old_names) {
        if !["apiVersion", "kind", "metadata", "status"].contains(&name.as_str()) {
            keep(new, old, &name);
        }
    }
    metadata::restore(new, old, "generation");
}

/// What a write leaves as it was: the status on the main path, and all else on the path of the status.
pub fn keep_status_apart(new: &mut Value, old: &Value, subresource: &str) {
    match subresource {
        "status" => keep_all_but_status(new, old),
        _ => keep(new, old, "status"),
    }
}

/// The same, and counts one up when anything beside metadata and status has changed.
pub fn keep_status_apart_and_count(new: &mut Value, old: &Value, subresource: &str) {
    keep_status_apart(new, old, subresource);
    if subresource != "status" {
        next_generation_of_all(new, old);
    }
}

/// Begins counting.
pub fn first_generation(object: &mut Value) {
    set_meta(object, "generation", 1);
}

/// Counts one up when one of these fields has changed.
pub fn next_generation(new: &mut Value, old: &Value, fields: &[&str]) {
    if fields.iter().any(|field| new.get(field) != old.get(field)) {
        set_meta(new, "generation", old.generation().saturating_add(1));
    }
}

/// Counts one up when anything beside metadata and status has changed.
pub fn next_generation_of_all(new: &mut Value, old: &Value) {
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
