//! Lists of type `map` and `set`.

use serde_json::{Map, Value};

use super::{shared::texts, structural::properties};
use crate::{
    api::field::{Error, Errors},
    crd::structural::{array, flag, text},
};

type Props = Map<String, Value>;

/// The keys of a list, and what its items are for it.
pub(super) fn check(schema: &Props, path: &str, errors: &mut Errors) {
    let list = text(schema, "x-kubernetes-list-type");
    let keys = array(schema, "x-kubernetes-list-map-keys");
    if !keys.is_empty() && list != "map" {
        let (path, detail) =
            (format!("{path}.x-kubernetes-list-type"), "must be map if x-kubernetes-list-map-keys is non-empty");
        let error =
            if list.is_empty() { Error::required(path, detail) } else { Error::invalid(path, &list.into(), detail) };
        errors.push(error);
    }
    let items = schema.get("items").and_then(Value::as_object);
    if list == "map" {
        if keys.is_empty() {
            let path = format!("{path}.x-kubernetes-list-map-keys");
            errors.push(Error::required(path, "must not be empty if x-kubernetes-list-type is map"));
        }
        match items {
            None => {
                let detail = "must have a schema if x-kubernetes-list-type is map";
                errors.push(Error::required(format!("{path}.items"), detail));
            }
            Some(items) if text(items, "type") != "object" => {
                let detail = "must be object if parent array's x-kubernetes-list-type is map";
                errors.push(Error::invalid(format!("{path}.items.type"), &text(items, "type").into(), detail));
            }
            Some(items) => key_fields(schema, items, path, errors),
        }
    }
    if let Some(items) = items.filter(|_| matches!(list, "map" | "set")) {
        items_of_keyed(schema, items, list, path, errors);
    }
}

/// The fields that keys name.
fn key_fields(schema: &Props, items: &Props, path: &str, errors: &mut Errors) {
    let keys: Vec<&str> = texts(schema, "x-kubernetes-list-map-keys").collect();
    let shown: Value = keys.as_slice().into();
    for (index, key) in keys.iter().enumerate() {
        let field = properties(items).find(|(name, _)| name == key).map(|(_, field)| field);
        match field.map(|field| text(field, "type")) {
            Some("array" | "object") => {
                let path = format!("{path}.items.properties[{key}].type");
                let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                errors.push(Error::invalid(path, &text(items, "type").into(), detail));
            }
            Some(_) => {}
            None => {
                let path = format!("{path}.x-kubernetes-list-map-keys");
                errors.push(Error::invalid(path, &shown, "entries must all be names of item properties"));
            }
        }
        if keys.iter().take(index).any(|before| before == key) {
            let path = format!("{path}.x-kubernetes-list-map-keys");
            errors.push(Error::invalid(path, &shown, "must not contain duplicate entries"));
        }
    }
}

fn items_of_keyed(schema: &Props, items: &Props, list: &str, path: &str, errors: &mut Errors) {
    if flag(items, "nullable") {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list}");
        errors.push(Error::forbidden(format!("{path}.items.nullable"), &detail));
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
            errors.push(Error::required(format!("{path}.default"), detail));
        }
        if flag(field, "nullable") {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(Error::forbidden(format!("{path}.nullable"), detail));
        }
    }
}
