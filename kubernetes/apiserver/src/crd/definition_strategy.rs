//! The rules of the kind CustomResourceDefinition.

use serde_json::{Map, Value, json};

use super::{definition_check, names, structural, validate::is_known_format};
use crate::{
    api::{
        field,
        meta::{self, MetaAccessor, child_mut},
    },
    registry::Strategy,
};

#[derive(Clone, Copy, Debug, Default)]
pub struct DefinitionStrategy;

impl Strategy for DefinitionStrategy {
    fn runs_expressions(&self) -> bool {
        true
    }

    fn prepare_delete(&self, object: &mut Value, now: &str) {
        names::set_terminating(object, names::DeletionProgress::Pending, now);
    }

    fn default(&self, object: &mut Value) {
        let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
        default_names(spec);
        let conversion = spec.entry("conversion").or_insert(Value::Null);
        if conversion.is_null() {
            *conversion = json!({"strategy": "None"});
        }
        let service = conversion.pointer_mut("/webhook/clientConfig/service").and_then(Value::as_object_mut);
        if let Some(service) = service.filter(|service| service.get("port").is_none_or(Value::is_null)) {
            service.insert("port".to_owned(), 443.into());
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        let stored = storage_version(object).map_or(Value::Null, |version| json!([version]));
        if let Some(crd) = object.as_object_mut() {
            let status =
                json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": stored});
            crd.insert("status".to_owned(), status);
        }
        meta::set_meta(object, "generation", 1);
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str) {
        let kept = if subresource == "status" { "spec" } else { "status" };
        if let Some(crd) = new.as_object_mut() {
            match old.get(kept) {
                Some(value) => _ = crd.insert(kept.to_owned(), value.clone()),
                None => _ = crd.remove(kept),
            }
        }
        if subresource == "status" {
            return;
        }
        let changed = i64::from(new.get("spec") != old.get("spec"));
        meta::set_meta(new, "generation", old.generation() + changed);
        add_stored_version(new);
    }

    fn validate_create(&self, object: &Value, errors: &mut field::FieldErrors) {
        definition_check::create(object, errors);
    }

    fn validate_update(&self, new: &Value, old: &Value, subresource: &str, errors: &mut field::FieldErrors) {
        match subresource {
            "status" => definition_check::check_status_update(new, errors),
            _ => definition_check::check_update(new, old, errors),
        }
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        let mut unknown = Vec::new();
        for version in object.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten() {
            if let Some(schema) = version.pointer("/schema/openAPIV3Schema") {
                unknown_formats(schema, &mut unknown);
            }
        }
        unknown.into_iter().map(|format| format!("unrecognized format {format:?}")).collect()
    }

    fn warnings_on_update(&self, new: &Value, old: &Value) -> Vec<String> {
        let before = self.warnings(old);
        self.warnings(new).into_iter().filter(|warning| !before.contains(warning)).collect()
    }

    fn unconditional_update(&self) -> bool {
        false
    }
}

fn default_names(spec: &mut Map<String, Value>) {
    let Some(names) = child_mut(spec, "names") else { return };
    let kind = structural::text(names, "kind").to_owned();
    if kind.is_empty() {
        return;
    }
    if structural::text(names, "singular").is_empty() {
        names.insert("singular".to_owned(), kind.to_lowercase().into());
    }
    if structural::text(names, "listKind").is_empty() {
        names.insert("listKind".to_owned(), format!("{kind}List").into());
    }
}

fn storage_version(crd: &Value) -> Option<String> {
    let versions = crd.pointer("/spec/versions")?.as_array()?;
    let storage = versions.iter().find(|version| version.get("storage") == Some(&Value::Bool(true)))?;
    Some(storage.get("name")?.as_str()?.to_owned())
}

fn add_stored_version(crd: &mut Value) {
    let Some(version) = storage_version(crd) else { return };
    let Some(status) = crd.as_object_mut().and_then(|crd| child_mut(crd, "status")) else { return };
    let stored = status.entry("storedVersions").or_insert(Value::Null);
    match stored.as_array_mut() {
        Some(stored) if stored.iter().any(|known| *known == version) => {}
        Some(stored) => stored.push(version.into()),
        None => *stored = json!([version]),
    }
}

/// Unknown formats, each as often as it occurs, once per version.
fn unknown_formats(schema: &Value, found: &mut Vec<String>) {
    let Some(schema) = schema.as_object() else { return };
    let format = structural::text(schema, "format");
    if !format.is_empty()
        && !is_known_format(format, structural::text(schema, "type"))
        && !found.iter().any(|known| known == format)
    {
        found.push(format.to_owned());
    }
    for name in ["items", "not", "additionalProperties"] {
        schema.get(name).into_iter().for_each(|part| unknown_formats(part, found));
    }
    for name in ["allOf", "anyOf", "oneOf"] {
        structural::array_field(schema, name).iter().for_each(|part| unknown_formats(part, found));
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flat_map(Map::values).for_each(|part| unknown_formats(part, found));
}

#[cfg(test)]
mod tests;
