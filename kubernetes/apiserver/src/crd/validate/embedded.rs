//! Validates embedded resources, which must have an `apiVersion` and a `kind`.

use serde_json::Value;

use super::{ChildValidators, NodeValidator, with_field_segment, with_key_segment};
use crate::{
    api::{
        GroupVersion,
        field::{FieldError, FieldErrors},
    },
    crd::name_checks,
};

/// Validates the embedded resources in a value.
pub(super) fn check(check: &NodeValidator, path: &mut String, value: &Value, errors: &mut FieldErrors) {
    if !check.subtree.embedded {
        return;
    }
    match (&check.parts, value) {
        (ChildValidators::Fields(known), Value::Object(fields)) => {
            if matches!(check.node.shape, crate::schema::SchemaShape::Object { embedded: true, .. }) {
                api_version(path, fields.get("apiVersion"), errors);
                kind(path, fields.get("kind"), errors);
            }
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
        (ChildValidators::Items(part, _), Value::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                with_key_segment(path, index, |path| self::check(part, path, item, errors));
            }
        }
        _ => {}
    }
}

fn api_version(path: &str, value: Option<&Value>, errors: &mut FieldErrors) {
    let path = format!("{path}.apiVersion");
    errors.extend(match value {
        None => Some(FieldError::required(path, "")),
        Some(value @ Value::String(text)) if text.is_empty() => {
            Some(FieldError::invalid(path, value, "must not be empty"))
        }
        Some(value @ Value::String(text)) if GroupVersion::parse(text).is_none() => {
            Some(FieldError::invalid(path, value, &format!("unexpected GroupVersion string: {text}")))
        }
        Some(Value::String(_)) => None,
        Some(other) => Some(FieldError::invalid(path, other, "must be a string")),
    });
}

fn kind(path: &str, value: Option<&Value>, errors: &mut FieldErrors) {
    let path = format!("{path}.kind");
    errors.extend(match value {
        None => Some(FieldError::required(path, "")),
        Some(value @ Value::String(text)) if text.is_empty() => {
            Some(FieldError::invalid(path, value, "must not be empty"))
        }
        Some(value @ Value::String(text)) => name_checks::kind(text).map(|why| FieldError::invalid(path, value, &why)),
        Some(other) => Some(FieldError::invalid(path, other, "must be a string")),
    });
}
