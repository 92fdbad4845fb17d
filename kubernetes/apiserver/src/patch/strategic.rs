//! Strategic merge patch: a merge patch that knows which lists are merged, and by which key.

use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
};

use http::StatusCode;
use serde_json::{Map, Value};

use super::{merge::drop_nulls, order::order_items, unprocessable_patch};
use crate::{
    api::{StatusError, go_format},
    schema::{PatchStrategy, Schema, SchemaShape},
};

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList";
const ELEMENT_ORDER: &str = "$setElementOrder";

const BAD_DELETE_FROM: &str = "invalid patch format of primitive list";
const BAD_RETAIN_KEYS: &str = "invalid patch format of retainKeys";
const BAD_ELEMENT_ORDER: &str = "invalid patch format of setElementOrder list";

/// The schema of fields that the schema does not declare.
static UNKNOWN: LazyLock<Schema> = LazyLock::new(Schema::default);

type JsonObject = Map<String, Value>;

/// Merges a patch into an object of a built-in kind. [`super::parse_object`] decodes the patch.
pub fn apply_strategic_merge(
    original: Value,
    patch: Map<String, Value>,
    schema: &Schema,
) -> Result<Value, StatusError> {
    let original = match original {
        Value::Object(original) => original,
        _ => JsonObject::new(),
    };
    merge_object(original, patch, schema).map(Value::Object)
}

fn merge_object(mut original: JsonObject, mut patch: JsonObject, schema: &Schema) -> Result<JsonObject, StatusError> {
    if let Some(directive) = patch.remove(DIRECTIVE) {
        return match directive.as_str() {
            Some("replace") => Ok(patch),
            Some("delete") => Ok(JsonObject::new()),
            _ => Err(unknown_directive(directive, patch)),
        };
    }
    retain_keys(&mut original, &mut patch)?;
    merge_ordered_lists(&mut original, &mut patch, schema)?;
    for (key, value) in patch {
        match directive_of(&key, DELETE_FROM) {
            Some(directive) => delete_from(&mut original, directive.ok_or_else(|| bad(BAD_DELETE_FROM))?, value)?,
            None => merge_member(&mut original, key, value, schema)?,
        }
    }
    Ok(original)
}

fn merge_member(original: &mut JsonObject, key: String, value: Value, schema: &Schema) -> Result<(), StatusError> {
    let field = schema.field(&key).unwrap_or(&UNKNOWN);
    let merged = match (original.remove(&key), value) {
        (_, Value::Null) => None,
        (Some(Value::Object(original)), Value::Object(patch)) => {
            Some(Value::Object(merge_object(original, patch, field)?))
        }
        (Some(Value::Array(original)), Value::Array(patch)) => Some(Value::Array(merge_list(original, patch, field)?)),
        (Some(original), mut value) if same_json_type(&original, &value) => {
            without_directives(&mut value).then_some(value)
        }
        (_, mut value) => {
            drop_nulls(&mut value);
            without_directives(&mut value).then_some(value)
        }
    };
    if let Some(merged) = merged {
        original.insert(key, merged);
    }
    Ok(())
}

/// Whether two scalars are of the same type. Only then do nested nulls matter, and scalars have none.
fn same_json_type(left: &Value, right: &Value) -> bool {
    std::mem::discriminant(left) == std::mem::discriminant(right)
}

fn merge_list(original: Vec<Value>, patch: Vec<Value>, field: &Schema) -> Result<Vec<Value>, StatusError> {
    if !field.patch.merge || (original.is_empty() && patch.is_empty()) {
        return Ok(patch);
    }
    if are_objects(&original, &patch)? {
        return merge_objects(original, patch, field);
    }
    let mut seen = HashSet::new();
    let merged = original.iter().chain(&patch).filter(|item| seen.insert(*item)).cloned().collect();
    Ok(order_items(merged, &patch, &original, None))
}

/// Whether the items are objects. All must be of one type, and none a list.
fn are_objects(original: &[Value], patch: &[Value]) -> Result<bool, StatusError> {
    let mut items = original.iter().chain(patch);
    let Some(first) = items.next() else { return Ok(false) };
    if first.is_array() || items.clone().any(Value::is_array) {
        return Err(unprocessable_patch());
    }
    match items.find(|item| go_format::type_name(item) != go_format::type_name(first)) {
        Some(other) => {
            let first = go_format::type_name(first);
            let other = go_format::type_name(other);
            Err(failed(format!("list element types are not identical: {first} and {other}")))
        }
        None => Ok(first.is_object()),
    }
}

fn merge_objects(original: Vec<Value>, patch: Vec<Value>, field: &Schema) -> Result<Vec<Value>, StatusError> {
    let (Some(key), SchemaShape::List { items: schema, .. }) = (field.patch.merge_key.as_deref(), &field.shape) else {
        return Err(failed(format!("cannot merge lists without merge key for {}", go_type_name(field))));
    };
    let (live, patch) = apply_directives(original, patch, key)?;
    let mut merged = live.clone();
    let mut places: HashMap<&Value, usize> = HashMap::new();
    for (place, item) in live.iter().enumerate() {
        item.get(key).map(|value| places.entry(value).or_insert(place));
    }
    for item in &patch {
        let place = *places.entry(merge_key(item, key)?).or_insert(merged.len());
        match (merged.get_mut(place), item) {
            (Some(found), Value::Object(item)) => {
                let Value::Object(original) = found.take() else { continue };
                *found = Value::Object(merge_object(original, item.clone(), schema)?);
            }
            _ => merged.push(item.clone()),
        }
    }
    merged.iter().try_for_each(|item| merge_key(item, key).map(drop))?;
    Ok(order_items(merged, &patch, &live, Some(key)))
}

/// Executes the `$patch` items of a list, and returns the list and the patch without them.
fn apply_directives(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>), StatusError> {
    let mut plain = Vec::with_capacity(patch.len());
    let mut replace = false;
    let mut deleted = HashSet::new();
    for item in patch {
        match item.get(DIRECTIVE).map(|directive| directive.as_str().unwrap_or_default()) {
            None => plain.push(item),
            Some("replace") => replace = true,
            Some("delete") => {
                deleted.insert(merge_key(&item, key)?.clone());
            }
            Some("merge") => return Err(failed("merging lists cannot yet be specified in the patch")),
            Some(_) => {
                let Value::Object(mut item) = item else { continue };
                let directive = item.get(DIRECTIVE).cloned().unwrap_or_default();
                item.remove(DIRECTIVE);
                return Err(unknown_directive(directive, item));
            }
        }
    }
    // All at once: one pass for each of them would be quadratic.
    original.retain(|other| other.get(key).is_none_or(|value| !deleted.contains(value)));
    Ok(if replace { (plain, Vec::new()) } else { (original, plain) })
}

/// `$retainKeys`: only these members of the original are kept, and the patch may have no others.
fn retain_keys(original: &mut JsonObject, patch: &mut JsonObject) -> Result<(), StatusError> {
    let Some(keys) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let keys = keys.as_array().ok_or_else(|| bad(BAD_RETAIN_KEYS))?;
    let keys: HashSet<&str> = keys.iter().filter_map(Value::as_str).collect();
    let kept = |key: &str| keys.contains(key);
    let directive = |key: &str| key.starts_with(DELETE_FROM) || key.starts_with(ELEMENT_ORDER);
    if patch.iter().any(|(key, value)| !value.is_null() && !directive(key) && !kept(key)) {
        return Err(bad(BAD_RETAIN_KEYS));
    }
    original.retain(|key, _| kept(key));
    Ok(())
}

fn delete_from(original: &mut JsonObject, key: &str, gone: Value) -> Result<(), StatusError> {
    match (original.get_mut(key), gone) {
        (Some(_), Value::Null) => _ = original.remove(key),
        (Some(Value::Array(items)), Value::Array(gone)) => {
            are_objects(items, &gone)?;
            let gone: HashSet<&Value> = gone.iter().collect();
            items.retain(|item| !gone.contains(item));
        }
        _ => {}
    }
    Ok(())
}

/// `$setElementOrder/…`, each together with the list that it orders.
fn merge_ordered_lists(original: &mut JsonObject, patch: &mut JsonObject, schema: &Schema) -> Result<(), StatusError> {
    let directives: Vec<String> = patch.keys().filter(|key| key.starts_with(ELEMENT_ORDER)).cloned().collect();
    for directive in directives {
        let order = array(patch.remove(&directive).unwrap_or_default())?;
        let key = directive_of(&directive, ELEMENT_ORDER).flatten().ok_or_else(|| bad(BAD_ELEMENT_ORDER))?;
        let field = schema.field(key).unwrap_or(&UNKNOWN);
        let live = original.get(key).cloned().map(array).transpose()?;
        let patched = patch.remove(key).map(array).transpose()?;
        check_order(patched.as_deref().unwrap_or_default(), &order, &field.patch)?;
        let merged = match (live.clone(), patched) {
            (None, None) => continue,
            (Some(live), None) => live,
            (None, Some(patched)) => {
                patched.into_iter().filter_map(|mut item| without_directives(&mut item).then_some(item)).collect()
            }
            (Some(live), Some(patched)) => merge_list(live, patched, field)?,
        };
        let by = field.patch.merge_key.as_deref();
        if let Some(by) = by {
            merged.iter().try_for_each(|item| merge_key(item, by).map(drop))?;
        }
        let all = order_items(merged, &order, &live.unwrap_or_default(), by);
        original.insert(key.to_owned(), Value::Array(all));
    }
    Ok(())
}

/// The items of a patch must be in its `$setElementOrder`, in that order.
fn check_order(patch: &[Value], order: &[Value], strategy: &PatchStrategy) -> Result<(), StatusError> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut left = order.iter();
    for item in patch.iter().filter(|item| item.get(DIRECTIVE).is_none()) {
        let found = match strategy.merge_key.as_deref() {
            None => left.any(|other| other == item),
            Some(key) => {
                let value = merge_key(item, key)?;
                left.any(|other| other.get(key) == Some(value))
            }
        };
        if !found {
            let patch = Value::from(patch);
            let order = Value::from(order);
            return Err(failed(format!(
                "The order in patch list:\n{}\n doesn't match {ELEMENT_ORDER} list:\n{}\n",
                go_format::printed(&patch),
                go_format::printed(&order)
            )));
        }
    }
    Ok(())
}

/// Removes directives at every depth. False if the value itself is one.
fn without_directives(value: &mut Value) -> bool {
    match value {
        Value::Object(members) => {
            if members.contains_key(DIRECTIVE) {
                return false;
            }
            members.retain(|_, member| without_directives(member));
        }
        Value::Array(items) => items.retain_mut(without_directives),
        _ => {}
    }
    true
}

/// The field of a directive: none if the key is not such a directive, some of none if it names no field.
fn directive_of<'a>(key: &'a str, prefix: &str) -> Option<Option<&'a str>> {
    key.strip_prefix(prefix).map(|rest| rest.strip_prefix('/'))
}

fn merge_key<'a>(item: &'a Value, key: &str) -> Result<&'a Value, StatusError> {
    let missing = || failed(format!("map: {} does not contain declared merge key: {key}", go_format::printed(item)));
    item.get(key).ok_or_else(missing)
}

fn array(value: Value) -> Result<Vec<Value>, StatusError> {
    match value {
        Value::Array(items) => Ok(items),
        other => Err(failed(format!("expected a []interface {{}}, but received a {}", go_format::type_name(&other)))),
    }
}

fn unknown_directive(directive: Value, mut patch: JsonObject) -> StatusError {
    let shown = go_format::printed(&directive);
    patch.insert(DIRECTIVE.to_owned(), directive);
    failed(format!("unknown patch type: {shown} in map: {}", go_format::printed(&Value::Object(patch))))
}

fn go_type_name(field: &Schema) -> String {
    let name = match &field.shape {
        SchemaShape::List { items, .. } => &items.name,
        _ => &field.name,
    };
    let mut parts = name.rsplit('.');
    let kind = parts.next().unwrap_or_default();
    let version = parts.next().unwrap_or_default();
    format!("{version}.{kind}")
}

fn bad(message: &str) -> StatusError {
    StatusError::bad_request(message)
}

/// An inconsistent patch. kube-apiserver has no status for it, so the response is 500 without a reason.
fn failed(message: impl Into<String>) -> StatusError {
    StatusError::new(StatusCode::INTERNAL_SERVER_ERROR, "", message)
}
