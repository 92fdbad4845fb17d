//! Validates the environment of a container.

use crate::{
    api::field::{FieldError, FieldErrors},
    kinds::{field_value::FieldValue, names},
    schema::quantity::Quantity,
};

/// The fields of a pod that can be referenced at all. Environment variables and volumes take some of them.
const FIELDS: [&str; 14] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
const ENV_FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
const VOLUME_FIELDS: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];

/// The resources of a container that can be referenced, beside huge pages.
const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
const BYTE_DIVISORS: [&str; 13] = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

/// Where a field of the pod is referenced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldReference {
    Environment,
    Volume,
}

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
    let field = from.get("fieldRef");
    if field.is_set() {
        field_ref(&field, &field.path(), FieldReference::Environment, errors);
    }
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
        resource_field_ref(&resource, &resource.path(), errors);
    }
    let file = from.get("fileKeyRef");
    if file.is_set() {
        file_key_ref(&file, errors);
    }
}

fn file_key_ref(file: &FieldValue<'_>, errors: &mut FieldErrors) {
    let key = file.get("key");
    if key.require(errors, "") {
        key.report_invalid_each(errors, names::env_name(key.str()));
    }
    let volume = file.get("volumeName");
    if volume.require(errors, "") {
        volume.report_invalid_each(errors, names::label(volume.str()));
    }
    let path = file.get("path");
    if path.require(errors, "") && path.str().split('/').any(|part| part == "..") {
        path.report_invalid(errors, "must not contain '..'");
    }
}

/// Validates a reference to a field of the pod. Errors are reported at `at`.
pub(super) fn field_ref(field: &FieldValue<'_>, at: &str, from: FieldReference, errors: &mut FieldErrors) {
    let path = field.get("fieldPath");
    if path.is_empty() {
        return errors.push(FieldError::required(format!("{at}.fieldPath"), ""));
    }
    let refuse = |why: &str| FieldError::invalid(format!("{at}.fieldPath"), path.value, why);
    if let Some((map, key)) = path.str().strip_suffix("']").and_then(|path| path.split_once("['")) {
        let key = match map {
            "metadata.annotations" => key.to_lowercase(),
            "metadata.labels" => key.to_owned(),
            _ => {
                let why = format!("field label does not support subscript: {}", path.str());
                return errors.push(refuse(&format!("error converting fieldPath: {why}")));
            }
        };
        for wrong in names::qualified(&key) {
            errors.push(FieldError::invalid(at, &key.as_str().into(), &wrong));
        }
        return;
    }
    let name = if path.str() == "spec.host" { "spec.nodeName" } else { path.str() };
    if !FIELDS.contains(&name) {
        return errors.push(refuse(&format!("error converting fieldPath: field label not supported: {name}")));
    }
    let known = match from {
        FieldReference::Environment => &ENV_FIELDS[..],
        FieldReference::Volume => &VOLUME_FIELDS,
    };
    if !known.contains(&name) {
        errors.push(FieldError::not_supported(format!("{at}.fieldPath"), &name.into(), known));
    }
}

/// Validates a reference to a resource of a container. Errors are reported at `at`.
pub(super) fn resource_field_ref(reference: &FieldValue<'_>, at: &str, errors: &mut FieldErrors) {
    let resource = reference.get("resource");
    let name = resource.str();
    let is_huge = ["requests.hugepages-", "limits.hugepages-"].iter().any(|prefix| name.starts_with(prefix));
    if name.is_empty() {
        errors.push(FieldError::required(format!("{at}.resource"), ""));
    } else if !is_huge && !RESOURCES.contains(&name) {
        errors.push(FieldError::not_supported(format!("{at}.resource"), resource.value, &RESOURCES));
    }
    let divisor = reference.get("divisor").value;
    if Quantity::from_value(divisor).is_none_or(|divisor| divisor == Quantity::ZERO) {
        return;
    }
    let divisor = divisor.as_str().map_or_else(|| divisor.to_string(), str::to_owned);
    let (known, kind) = match name.split_once('.').map_or("", |(_, resource)| resource) {
        "cpu" => (&["1m", "1"][..], "cpu"),
        "memory" => (&BYTE_DIVISORS[..], "memory"),
        "ephemeral-storage" => (&BYTE_DIVISORS[..], "local ephemeral storage"),
        _ if is_huge => (&BYTE_DIVISORS[..], "hugepages"),
        _ => return,
    };
    if !known.contains(&divisor.as_str()) {
        let listed = if kind == "cpu" { "1m and 1".to_owned() } else { BYTE_DIVISORS.join(", ") };
        let detail = format!("only divisor's values {listed} are supported with the {kind} resource");
        errors.push(FieldError::invalid(format!("{at}.divisor"), resource.value, &detail));
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
