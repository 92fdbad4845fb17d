//! Embedded resources: they say what they are.

use serde_json::Value;

use super::{Check, Parts, with_child, with_key};
use crate::{
    api::{
        GroupVersion,
        field::{Error, Errors},
    },
    crd::dns,
};

/// All errors of the embedded resources in a value.
pub(super) fn check(check: &Check, path: &mut String, value: &Value, errors: &mut Errors) {
    if !check.within.embedded {
        return;
    }
    match (&check.parts, value) {
        (Parts::Fields(known), Value::Object(fields)) => {
            if matches!(check.node.shape, crate::schema::Shape::Object { embedded: true, .. }) {
                api_version(path, fields.get("apiVersion"), errors);
                kind(path, fields.get("kind"), errors);
            }
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
        (Parts::Items(part, _), Value::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                with_key(path, index, |path| self::check(part, path, item, errors));
            }
        }
        _ => {}
    }
}

fn api_version(path: &str, value: Option<&Value>, errors: &mut Errors) {
    let path = format!("{path}.apiVersion");
    errors.extend(match value {
        None => Some(Error::required(path, "")),
        Some(value @ Value::String(text)) if text.is_empty() => Some(Error::invalid(path, value, "must not be empty")),
        Some(value @ Value::String(text)) if GroupVersion::parse(text).is_none() => {
            Some(Error::invalid(path, value, &format!("unexpected GroupVersion string: {text}")))
        }
        Some(Value::String(_)) => None,
        Some(other) => Some(Error::invalid(path, other, "must be a string")),
    });
}

fn kind(path: &str, value: Option<&Value>, errors: &mut Errors) {
    let path = format!("{path}.kind");
    errors.extend(match value {
        None => Some(Error::required(path, "")),
        Some(value @ Value::String(text)) if text.is_empty() => Some(Error::invalid(path, value, "must not be empty")),
        Some(value @ Value::String(text)) => dns::kind(text).map(|why| Error::invalid(path, value, &why)),
        Some(other) => Some(Error::invalid(path, other, "must be a string")),
    });
}
