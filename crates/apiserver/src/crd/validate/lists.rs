//! Lists of type `set` and `map`: no two items are the same, or have the same keys.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use serde_json::{Map, Value};

use super::{Check, Parts, with_child, with_key};
use crate::{
    api::field::{Error, Errors},
    schema::ListType,
};

/// Items by their keys, as JSON.
pub(super) type ByKey<'a> = HashMap<String, &'a Value>;

/// All duplicates in a value.
pub(super) fn check(check: &Check, path: &mut String, value: &Value, errors: &mut Errors) {
    if !check.within.keyed_lists {
        return;
    }
    match (&check.parts, value) {
        (Parts::Fields(known), Value::Object(fields)) => {
            for (name, part) in known {
                if let Some(value) = fields.get(&**name) {
                    with_child(path, name, |path| self::check(part, path, value, errors));
                }
            }
        }
        (Parts::Values(part), Value::Object(fields)) => {
            for (name, value) in fields {
                with_key(path, name, |path| self::check(part, path, value, errors));
            }
        }
        (Parts::Items(part, list), Value::Array(items)) => {
            duplicates(list, path, items, errors);
            for (index, item) in items.iter().enumerate() {
                with_key(path, index, |path| self::check(part, path, item, errors));
            }
        }
        _ => {}
    }
}

fn duplicates(list: &ListType, path: &str, items: &[Value], errors: &mut Errors) {
    match list {
        ListType::Atomic => {}
        ListType::Set => {
            let found = repeated(items.iter()).filter_map(|index| Some((index, items.get(index)?)));
            errors.extend(found.map(|(index, item)| Error::duplicate(format!("{path}[{index}]"), item)));
        }
        ListType::Map(keys) => {
            if let Some(index) = items.iter().position(|item| !item.is_object() && !item.is_null()) {
                let item = items.get(index).unwrap_or(&Value::Null);
                let detail = "must be an object for an array of list-type map";
                errors.push(Error::invalid(format!("{path}[{index}]"), item, detail));
                return;
            }
            let of: Vec<Value> = items.iter().map(|item| key_of(keys, item)).collect();
            let found = repeated(of.iter()).filter_map(|index| Some((index, of.get(index)?)));
            errors.extend(found.map(|(index, key)| Error::duplicate(format!("{path}[{index}]"), key)));
        }
    }
}

/// The places of values that have been there once before. A third one is not told.
pub(super) fn repeated<'a>(values: impl Iterator<Item = &'a Value>) -> impl Iterator<Item = usize> {
    let mut seen: HashMap<String, bool> = HashMap::new();
    values.enumerate().filter_map(move |(index, value)| match seen.entry(value.to_string()) {
        std::collections::hash_map::Entry::Vacant(first) => {
            first.insert(false);
            None
        }
        std::collections::hash_map::Entry::Occupied(mut again) => (!again.insert(true)).then_some(index),
    })
}

/// The keys of an item that it has.
fn key_of(keys: &[Arc<str>], item: &Value) -> Value {
    let has = keys.iter().filter_map(|key| Some((key.to_string(), item.get(&**key)?.clone())));
    Value::Object(has.collect::<Map<_, _>>())
}

/// The keys of an item, as JSON.
pub(super) fn key(keys: &[Arc<str>], item: &Value) -> String {
    key_of(keys, item).to_string()
}

/// Items by their keys. Items whose keys are not unique are not found.
pub(super) fn by_key<'a>(keys: &[Arc<str>], items: &'a [Value]) -> ByKey<'a> {
    let mut found = ByKey::with_capacity(items.len());
    let mut ambiguous = HashSet::new();
    for item in items {
        let key = key(keys, item);
        if found.insert(key.clone(), item).is_some() {
            ambiguous.insert(key);
        }
    }
    found.retain(|key, _| !ambiguous.contains(key));
    found
}
