//! Lists of type `set` and `map`: items, or their keys, must be unique.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use serde_json::{Map, Value};

use super::{ChildValidators, NodeValidator, with_field_segment, with_key_segment};
use crate::{
    api::field::{FieldError, FieldErrors},
    schema::ListType,
};

/// Items by their keys, as JSON.
pub(super) type ItemsByKey<'a> = HashMap<String, &'a Value>;

/// Reports all duplicates in a value.
pub(super) fn check(check: &NodeValidator, path: &mut String, value: &Value, errors: &mut FieldErrors) {
    if !check.subtree.keyed_lists {
        return;
    }
    match (&check.parts, value) {
        (ChildValidators::Fields(known), Value::Object(fields)) => {
            for (name, part) in known {
                if let Some(value) = fields.get(&**name) {
                    with_field_segment(path, name, |path| self::check(part, path, value, errors));
                }
            }
        }
        (ChildValidators::Values(part), Value::Object(fields)) => {
            for (name, value) in fields {
                with_key_segment(path, name, |path| self::check(part, path, value, errors));
            }
        }
        (ChildValidators::Items(part, list), Value::Array(items)) => {
            duplicates(list, path, items, errors);
            for (index, item) in items.iter().enumerate() {
                with_key_segment(path, index, |path| self::check(part, path, item, errors));
            }
        }
        _ => {}
    }
}

fn duplicates(list: &ListType, path: &str, items: &[Value], errors: &mut FieldErrors) {
    match list {
        ListType::Atomic => {}
        ListType::Set => {
            let found = repeated_indexes(items.iter()).filter_map(|index| Some((index, items.get(index)?)));
            errors.extend(found.map(|(index, item)| FieldError::duplicate(format!("{path}[{index}]"), item)));
        }
        ListType::Map(keys) => {
            if let Some(index) = items.iter().position(|item| !item.is_object() && !item.is_null()) {
                let item = items.get(index).unwrap_or(&Value::Null);
                let detail = "must be an object for an array of list-type map";
                errors.push(FieldError::invalid(format!("{path}[{index}]"), item, detail));
                return;
            }
            let of: Vec<Value> = items.iter().map(|item| key_value(keys, item)).collect();
            let found = repeated_indexes(of.iter()).filter_map(|index| Some((index, of.get(index)?)));
            errors.extend(found.map(|(index, key)| FieldError::duplicate(format!("{path}[{index}]"), key)));
        }
    }
}

/// The indexes of values that occurred once before. Third occurrences are not reported.
pub(super) fn repeated_indexes<'a>(values: impl Iterator<Item = &'a Value>) -> impl Iterator<Item = usize> {
    let mut seen: HashMap<String, bool> = HashMap::new();
    values.enumerate().filter_map(move |(index, value)| match seen.entry(value.to_string()) {
        std::collections::hash_map::Entry::Vacant(first) => {
            first.insert(false);
            None
        }
        std::collections::hash_map::Entry::Occupied(mut again) => (!again.insert(true)).then_some(index),
    })
}

/// The present keys of an item.
fn key_value(keys: &[Arc<str>], item: &Value) -> Value {
    let has = keys.iter().filter_map(|key| Some((key.to_string(), item.get(&**key)?.clone())));
    Value::Object(has.collect::<Map<_, _>>())
}

/// The keys of an item, as JSON.
pub(super) fn key_json(keys: &[Arc<str>], item: &Value) -> String {
    key_value(keys, item).to_string()
}

/// Items by their keys, without those whose keys are not unique.
pub(super) fn index_by_key<'a>(keys: &[Arc<str>], items: &'a [Value]) -> ItemsByKey<'a> {
    let mut found = ItemsByKey::with_capacity(items.len());
    let mut ambiguous = HashSet::new();
    for item in items {
        let key = key_json(keys, item);
        if found.insert(key.clone(), item).is_some() {
            ambiguous.insert(key);
        }
    }
    found.retain(|key, _| !ambiguous.contains(key));
    found
}
