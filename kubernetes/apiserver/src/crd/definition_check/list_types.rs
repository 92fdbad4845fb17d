//! Validates lists of type `map` and `set`.

use serde_json::{Map, Value};

use super::{structural::properties, version_fields::texts};
use crate::{
    api::field::{FieldError, FieldErrors},
    crd::structural::{array_field, bool_field, text},
};

type JsonSchemaProps = Map<String, Value>;

/// Validates the keys of a list, and the type of its items.
pub(super) fn check(schema: &JsonSchemaProps, path: &str, errors: &mut FieldErrors) {
    let list = text(schema, "x-kubernetes-list-type");
    let keys = array_field(schema, "x-kubernetes-list-map-keys");
    if !keys.is_empty() && list != "map" {
        let (path, detail) =
            (format!("{path}.x-kubernetes-list-type"), "must be map if x-kubernetes-list-map-keys is non-empty");
        let error = if list.is_empty() {
            FieldError::required(path, detail)
        } else {
            FieldError::invalid(path, &list.into(), detail)
        };
        errors.push(error);
    }
    let items = schema.get("items").and_then(Value::as_object);
    if list == "map" {
        if keys.is_empty() {
            let path = format!("{path}.x-kubernetes-list-map-keys");
            errors.push(FieldError::required(path, "must not be empty if x-kubernetes-list-type is map"));
        }
        match items {
            None => {
                let detail = "must have a schema if x-kubernetes-list-type is map";
                errors.push(FieldError::required(format!("{path}.items"), detail));
            }
            Some(items) if text(items, "type") != "object" => {
                let detail = "must be object if parent array's x-kubernetes-list-type is map";
                errors.push(FieldError::invalid(format!("{path}.items.type"), &text(items, "type").into(), detail));
            }
            Some(items) => key_fields(schema, items, path, errors),
        }
    }
    if let Some(items) = items.filter(|_| matches!(list, "map" | "set")) {
        items_of_keyed(schema, items, list, path, errors);
    }
}

fn key_fields(schema: &JsonSchemaProps, items: &JsonSchemaProps, path: &str, errors: &mut FieldErrors) {
    let keys: Vec<&str> = texts(schema, "x-kubernetes-list-map-keys").collect();
    let shown: Value = keys.as_slice().into();
    for (index, key) in keys.iter().enumerate() {
        let field = properties(items).find(|(name, _)| name == key).map(|(_, field)| field);
        match field.map(|field| text(field, "type")) {
            Some("array" | "object") => {
                let path = format!("{path}.items.properties[{key}].type");
                let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                errors.push(FieldError::invalid(path, &text(items, "type").into(), detail));
            }
            Some(_) => {}
            None => {
                let path = format!("{path}.x-kubernetes-list-map-keys");
                errors.push(FieldError::invalid(path, &shown, "entries must all be names of item properties"));
            }
        }
        if keys.iter().take(index).any(|before| before == key) {
            let path = format!("{path}.x-kubernetes-list-map-keys");
            errors.push(FieldError::invalid(path, &shown, "must not contain duplicate entries"));
        }
    }
}

fn items_of_keyed(schema: &JsonSchemaProps, items: &JsonSchemaProps, list: &str, path: &str, errors: &mut FieldErrors) {
    if bool_field(items, "nullable") {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list}");
        errors.push(FieldError::forbidden(format!("{path}.items.nullable"), &detail));
    }
    if list != "map" {
        return;
    }
    for key in texts(schema, "x-kubernetes-list-map-keys") {
        let Some((_, field)) = properties(items).find(|(name, _)| *name == key) else { continue };
        let path = format!("{path}.items.properties[{key}]");
        let required = texts(items, "required").any(|required| required == key);
        if !required && field.get("default").is_none_or(Value::is_null) {
            let detail =
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            errors.push(FieldError::required(format!("{path}.default"), detail));
        }
        if bool_field(field, "nullable") {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(FieldError::forbidden(format!("{path}.nullable"), detail));
        }
    }
}
