//! Validation of CustomResourceDefinitions, with kube-apiserver's messages.
//!
//! kube-apiserver validates an internal form, in which fields that all versions have in common are at the top
//! of the spec. Its messages show that form, and so do these. CEL rules must compile, and their worst case must
//! be within kube-apiserver's limits (`cost_estimate.rs`). Not done: relaxations for CRDs that older releases
//! accepted.

mod conversion;
mod cost_budget;
mod cost_estimate;
mod declared_types;
mod defaults;
mod expressions;
mod list_types;
mod openapi;
mod structural;
mod version_fields;
mod versions;

use serde_json::{Map, Value};

use self::version_fields::VersionFields;
use crate::{
    api::{
        field::{FieldError, FieldErrors},
        meta::MetaAccessor,
    },
    crd::{
        name_checks,
        structural::{array_field, bool_field, text},
    },
};

const APPROVED_ANNOTATION: &str = "api-approved.kubernetes.io";

/// Validates a new CRD.
pub(crate) fn create(crd: &Value, errors: &mut FieldErrors) {
    let empty = Map::new();
    let spec = crd.get("spec").and_then(Value::as_object).unwrap_or(&empty);
    let names = spec.get("names").and_then(Value::as_object).unwrap_or(&empty);
    if crd.name() != format!("{}.{}", text(names, "plural"), text(spec, "group")) {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        errors.push(FieldError::invalid("metadata.name", &crd.name().into(), detail));
    }
    self::spec(spec, names, errors);
    status(crd, spec, errors);
    approval(crd, None, errors);
}

/// Validates a change of a CRD.
pub(crate) fn check_update(new: &Value, old: &Value, errors: &mut FieldErrors) {
    let empty = Map::new();
    let spec = new.get("spec").and_then(Value::as_object).unwrap_or(&empty);
    let names = spec.get("names").and_then(Value::as_object).unwrap_or(&empty);
    self::spec(spec, names, errors);
    let mut fixed = vec!["/spec/group", "/spec/names/plural"];
    if super::names::is_condition_true(old, "Established") {
        fixed.extend(["/spec/scope", "/spec/names/kind"]);
    }
    for pointer in fixed {
        let now = new.pointer(pointer).unwrap_or(&Value::Null);
        if Some(now) != old.pointer(pointer) {
            let path = pointer.trim_start_matches('/').replace('/', ".");
            errors.push(FieldError::invalid(path, now, "field is immutable"));
        }
    }
    status(new, spec, errors);
    approval(new, Some(old), errors);
}

/// Validates a change of a CRD's status.
pub(crate) fn check_status_update(new: &Value, errors: &mut FieldErrors) {
    if let Some(names) = new.pointer("/status/acceptedNames").and_then(Value::as_object) {
        self::names(names, "status.acceptedNames", errors);
    }
}

fn spec(spec: &Map<String, Value>, names: &Map<String, Value>, errors: &mut FieldErrors) {
    group(text(spec, "group"), errors);
    one_of("spec.scope", text(spec, "scope"), &["Cluster", "Namespaced"], errors);
    let shared = VersionFields::from_versions(array_field(spec, "versions"));
    shared.require_schemas(errors);
    versions::check(&shared, errors);
    for name in ["plural", "singular", "kind", "listKind"] {
        if text(names, name).is_empty() {
            errors.push(FieldError::required(format!("spec.names.{name}"), ""));
        }
    }
    self::names(names, "spec.names", errors);
    versions::check_shared(&shared, errors);
    conversion::check(spec, errors);
    if bool_field(spec, "preserveUnknownFields") {
        let detail =
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        errors.push(FieldError::invalid("spec.preserveUnknownFields", &true.into(), detail));
    }
}

fn group(group: &str, errors: &mut FieldErrors) {
    let path = "spec.group";
    if group.is_empty() {
        errors.push(FieldError::required(path, ""));
    } else if let Some(why) = name_checks::subdomain(group) {
        errors.push(FieldError::invalid(path, &group.into(), &why));
    } else if !group.contains('.') {
        errors.push(FieldError::invalid(path, &group.into(), "should be a domain with at least one dot"));
    }
}

fn one_of(path: &str, value: &str, known: &[&str], errors: &mut FieldErrors) {
    if value.is_empty() {
        errors.push(FieldError::required(path, ""));
    } else if !known.contains(&value) {
        errors.push(FieldError::not_supported(path, &value.into(), known));
    }
}

fn names(names: &Map<String, Value>, path: &str, errors: &mut FieldErrors) {
    let mut check = |path: String, name: &str, why: Option<String>| {
        if let (false, Some(why)) = (name.is_empty(), why) {
            errors.push(FieldError::invalid(path, &name.into(), &why));
        }
    };
    for field in ["plural", "singular"] {
        let name = text(names, field);
        check(format!("{path}.{field}"), name, name_checks::label(name));
    }
    for field in ["kind", "listKind"] {
        let name = text(names, field);
        check(format!("{path}.{field}"), name, name_checks::kind(name));
    }
    for (index, name) in array_field(names, "shortNames").iter().filter_map(Value::as_str).enumerate() {
        check(format!("{path}.shortNames[{index}]"), name, name_checks::label(name));
    }
    let kind = text(names, "kind");
    let same = (kind == text(names, "listKind")).then(|| "kind and listKind may not be the same".to_owned());
    check(format!("{path}.listKind"), kind, same);
    for (index, name) in array_field(names, "categories").iter().filter_map(Value::as_str).enumerate() {
        check(format!("{path}.categories[{index}]"), name, name_checks::label(name));
    }
}

fn status(crd: &Value, spec: &Map<String, Value>, errors: &mut FieldErrors) {
    check_status_update(crd, errors);
    let path = "status.storedVersions";
    let stored = crd.pointer("/status/storedVersions").and_then(Value::as_array).filter(|stored| !stored.is_empty());
    let Some(stored) = stored else {
        errors.push(FieldError::invalid(path, &Value::Null, "must have at least one stored version"));
        return;
    };
    let versions = array_field(spec, "versions");
    let name = |version: &Value| version.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    for version in versions.iter().filter(|version| version.get("storage") == Some(&true.into())).map(name) {
        if !stored.iter().any(|stored| *stored == version.as_str()) {
            let detail = format!("must have the storage version {version}");
            errors.push(FieldError::invalid(path, &stored.as_slice().into(), &detail));
        }
    }
    for (index, version) in stored.iter().enumerate() {
        let text = version.as_str().unwrap_or_default();
        if !versions.iter().any(|known| name(known) == text) {
            let detail = format!(
                "missing from spec.versions; {text} was previously a storage version, and must remain in spec.versions until a \
                 storage migration ensures no data remains persisted in {text} and removes {text} from status.storedVersions"
            );
            errors.push(FieldError::invalid(format!("{path}[{index}]"), version, &detail));
        }
    }
}

/// Groups of the Kubernetes community require an approval annotation.
fn approval(crd: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    let group = crd.pointer("/spec/group").and_then(Value::as_str).unwrap_or_default();
    let within = |domain: &str| group == domain || group.ends_with(&format!(".{domain}"));
    let of = |crd: &Value| {
        crd.meta("annotations")
            .and_then(|all| all.get(APPROVED_ANNOTATION)?.as_str().map(str::to_owned))
            .unwrap_or_default()
    };
    let approval = of(crd);
    let before = old.map(of);
    let state = |text: &str| (text.is_empty(), text.starts_with("unapproved"), is_url(text));
    if !within("k8s.io") && !within("kubernetes.io") || before.is_some_and(|before| state(&before) == state(&approval))
    {
        return;
    }
    let path = format!("metadata.annotations[{APPROVED_ANNOTATION}]");
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    match state(&approval) {
        (true, ..) => errors.push(FieldError::required(
            path,
            &format!("protected groups must have approval annotation {APPROVED_ANNOTATION:?}, {see}"),
        )),
        (_, true, _) | (_, _, true) => {}
        _ => {
            let either = "with either a URL or a reason starting with \"unapproved\"";
            let detail =
                format!("protected groups must have approval annotation {APPROVED_ANNOTATION:?} {either}, {see}");
            errors.push(FieldError::invalid(path, &approval.into(), &detail));
        }
    }
}

fn is_url(text: &str) -> bool {
    text.split_once("://")
        .is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty() && !rest.starts_with('/'))
}

#[cfg(test)]
mod tests;
