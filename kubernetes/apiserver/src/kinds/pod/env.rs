//! Validates the environment of a container.

use crate::{
    api::field::FieldErrors,
    kinds::{field_value::FieldValue, names},
};

const FIELDS: [&str; 11] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
    "metadata.labels",
    "metadata.annotations",
];

pub(super) fn env(env: &FieldValue<'_>, errors: &mut FieldErrors) {
    for variable in env.items() {
        let name = variable.get("name");
        if name.require(errors, "") {
            name.report_invalid_each(errors, names::env_name(name.str()));
        }
        let from = variable.get("valueFrom");
        if from.is_set() {
            value_from(&from, !variable.get("value").is_empty(), errors);
        }
    }
}

fn value_from(from: &FieldValue<'_>, has_value: bool, errors: &mut FieldErrors) {
    const SOURCES: [&str; 5] = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];
    let count = SOURCES.iter().filter(|source| from.get(source).is_set()).count();
    let wrong = |detail: &str, errors: &mut FieldErrors| from.report_invalid_as(errors, "\"\"", detail);
    if count == 0 {
        let sources = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`";
        wrong(&format!("must specify one of: {sources}"), errors);
    } else if has_value {
        wrong("may not be specified when `value` is not empty", errors);
    } else if count > 1 {
        wrong("may not have more than one field specified at a time", errors);
    }
    field_ref(&from.get("fieldRef"), errors);
    for source in ["configMapKeyRef", "secretKeyRef"] {
        let reference = from.get(source);
        if reference.is_set() {
            let name = reference.get("name");
            let key = reference.get("key");
            name.report_invalid_each(errors, names::subdomain(name.str()));
            if key.require(errors, "") {
                key.report_invalid_each(errors, names::config_key(key.str()));
            }
        }
    }
    let resource = from.get("resourceFieldRef");
    if resource.is_set() {
        resource.get("resource").require(errors, "");
    }
}

/// Validates a reference to a field of the pod, in variables and volumes.
pub(super) fn field_ref(field: &FieldValue<'_>, errors: &mut FieldErrors) {
    if !field.is_set() {
        return;
    }
    let path = field.get("fieldPath");
    if !path.require(errors, "") {
        return;
    }
    let map = ["metadata.labels['", "metadata.annotations['"].iter().any(|start| path.str().starts_with(start));
    if !map && !FIELDS.contains(&path.str()) {
        let detail = format!("error converting fieldPath: field label not supported: {}", path.str());
        path.report_invalid(errors, &detail);
    }
}

pub(super) fn env_from(env: &FieldValue<'_>, errors: &mut FieldErrors) {
    for source in env.items() {
        let prefix = source.get("prefix");
        if !prefix.is_empty() {
            prefix.report_invalid_each(errors, names::env_name(prefix.str()));
        }
        let references = ["configMapRef", "secretRef"];
        for reference in references {
            let reference = source.get(reference);
            let name = reference.get("name");
            if reference.is_set() && name.require(errors, "") {
                name.report_invalid_each(errors, names::subdomain(name.str()));
            }
        }
        match references.iter().filter(|name| source.get(name).is_set()).count() {
            0 => env.report_invalid_as(errors, "\"\"", "must specify one of: `configMapRef` or `secretRef`"),
            1 => {}
            _ => env.report_invalid_as(errors, "\"\"", "may not have more than one field specified at a time"),
        }
    }
}
