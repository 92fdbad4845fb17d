//! Defaults: a default is a valid value of its schema, with no fields that would be pruned.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::structural::properties;
use crate::{
    api::field::{Error, Errors},
    crd::{structural::part, validate::Validator},
    schema::{Schema, Shape},
};

/// All errors of the defaults in a schema.
pub(super) fn check(schema: &Map<String, Value>, path: &str, errors: &mut Errors) {
    if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
        let own = Arc::new(part(&Value::Object(schema.clone())));
        let path = format!("{path}.default");
        if has_unknown(default, &own) {
            errors.push(Error::invalid(path.clone(), default, "must not have unknown fields"));
        }
        errors.extend(Validator::part(&own).validate_default(&path, default));
    }
    if let Some(items) = schema.get("items").and_then(Value::as_object) {
        check(items, &format!("{path}.items"), errors);
    }
    for (name, part) in properties(schema) {
        check(part, &format!("{path}.properties[{name}]"), errors);
    }
}

/// Whether pruning would take something away.
fn has_unknown(value: &Value, schema: &Schema) -> bool {
    match (value, &schema.shape) {
        (Value::Object(object), Shape::Object { fields, open, .. }) => object
            .iter()
            .any(|(name, value)| fields.get(name.as_str()).map_or(!open, |field| has_unknown(value, field))),
        (Value::Object(object), Shape::Map { values, .. }) => object.values().any(|value| has_unknown(value, values)),
        (Value::Array(list), Shape::List { items, .. }) => list.iter().any(|item| has_unknown(item, items)),
        _ => false,
    }
}
