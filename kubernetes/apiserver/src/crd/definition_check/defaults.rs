//! Validates defaults: a default must be valid by its schema, and have no fields that would be pruned.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::structural::properties;
use crate::{
    api::field::{FieldError, FieldErrors},
    crd::{structural::build_part, validate::SchemaValidator},
    schema::{Schema, SchemaShape},
};

pub(super) fn check(schema: &Map<String, Value>, path: &str, errors: &mut FieldErrors) {
    if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
        let own = Arc::new(build_part(&Value::Object(schema.clone())));
        let path = format!("{path}.default");
        if has_unknown(default, &own) {
            errors.push(FieldError::invalid(path.clone(), default, "must not have unknown fields"));
        }
        errors.extend(SchemaValidator::for_part(&own).validate_default(&path, default));
    }
    if let Some(items) = schema.get("items").and_then(Value::as_object) {
        check(items, &format!("{path}.items"), errors);
    }
    for (name, part) in properties(schema) {
        check(part, &format!("{path}.properties[{name}]"), errors);
    }
}

/// Whether pruning would remove a field.
fn has_unknown(value: &Value, schema: &Schema) -> bool {
    match (value, &schema.shape) {
        (Value::Object(object), SchemaShape::Object { fields, open, .. }) => object
            .iter()
            .any(|(name, value)| fields.get(name.as_str()).map_or(!open, |field| has_unknown(value, field))),
        (Value::Object(object), SchemaShape::Map { values, .. }) => {
            object.values().any(|value| has_unknown(value, values))
        }
        (Value::Array(list), SchemaShape::List { items, .. }) => list.iter().any(|item| has_unknown(item, items)),
        _ => false,
    }
}
