//! Validation of CustomResourceDefinitions, in kube-apiserver's words.
//!
//! kube-apiserver checks an internal form in which what all versions have in common stands once, at the top of the spec. Its
//! messages show that form, and so do these. Rules in CEL must compile, and their worst case must be within kube-apiserver's limits
//! (`estimate.rs`). Not done: relaxations for CRDs that older releases let in.

mod budget;
mod conversion;
mod declared;
mod defaults;
mod estimate;
mod expressions;
mod keyed;
mod openapi;
mod shared;
mod structural;
mod versions;

use serde_json::{Map, Value};

use self::shared::Shared;
use crate::{
    api::{
        field::{Error, Errors},
        meta::Meta,
    },
    crd::{
        dns,
        structural::{array, flag, text},
    },
};

const APPROVED: &str = "api-approved.kubernetes.io";

/// What is wrong with a new CRD.
pub(crate) fn create(crd: &Value, errors: &mut Errors) {
    let empty = Map::new();
    let spec = crd.get("spec").and_then(Value::as_object).unwrap_or(&empty);
    let names = spec.get("names").and_then(Value::as_object).unwrap_or(&empty);
    if crd.name() != format!("{}.{}", text(names, "plural"), text(spec, "group")) {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        errors.push(Error::invalid("metadata.name", &crd.name().into(), detail));
    }
    self::spec(spec, names, errors);
    status(crd, spec, errors);
    approval(crd, None, errors);
}

/// What is wrong with a change of a CRD.
pub(crate) fn update(new: &Value, old: &Value, errors: &mut Errors) {
    let empty = Map::new();
    let spec = new.get("spec").and_then(Value::as_object).unwrap_or(&empty);
    let names = spec.get("names").and_then(Value::as_object).unwrap_or(&empty);
    self::spec(spec, names, errors);
    let mut fixed = vec!["/spec/group", "/spec/names/plural"];
    if super::names::is_true(old, "Established") {
        fixed.extend(["/spec/scope", "/spec/names/kind"]);
    }
    for pointer in fixed {
        let now = new.pointer(pointer).unwrap_or(&Value::Null);
        if Some(now) != old.pointer(pointer) {
            let path = pointer.trim_start_matches('/').replace('/', ".");
            errors.push(Error::invalid(path, now, "field is immutable"));
        }
    }
    status(new, spec, errors);
    approval(new, Some(old), errors);
}

/// What is wrong with a change of a CRD's status.
pub(crate) fn update_status(new: &Value, errors: &mut Errors) {
    if let Some(names) = new.pointer("/status/acceptedNames").and_then(Value::as_object) {
        self::names(names, "status.acceptedNames", errors);
    }
}

fn spec(spec: &Map<String, Value>, names: &Map<String, Value>, errors: &mut Errors) {
    group(text(spec, "group"), errors);
    one_of("spec.scope", text(spec, "scope"), &["Cluster", "Namespaced"], errors);
    let shared = Shared::of(array(spec, "versions"));
    shared.require_schemas(errors);
    versions::check(&shared, errors);
    for name in ["plural", "singular", "kind", "listKind"] {
        if text(names, name).is_empty() {
            errors.push(Error::required(format!("spec.names.{name}"), ""));
        }
    }
    self::names(names, "spec.names", errors);
    versions::check_shared(&shared, errors);
    conversion::check(spec, errors);
    if flag(spec, "preserveUnknownFields") {
        let detail =
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        errors.push(Error::invalid("spec.preserveUnknownFields", &true.into(), detail));
    }
}

fn group(group: &str, errors: &mut Errors) {
    let path = "spec.group";
    if group.is_empty() {
        errors.push(Error::required(path, ""));
    } else if let Some(why) = dns::subdomain(group) {
        errors.push(Error::invalid(path, &group.into(), &why));
    } else if !group.contains('.') {
        errors.push(Error::invalid(path, &group.into(), "should be a domain with at least one dot"));
    }
}

fn one_of(path: &str, value: &str, known: &[&str], errors: &mut Errors) {
    if value.is_empty() {
        errors.push(Error::required(path, ""));
    } else if !known.contains(&value) {
        errors.push(Error::not_supported(path, &value.into(), known));
    }
}

fn names(names: &Map<String, Value>, path: &str, errors: &mut Errors) {
    let mut check = |path: String, name: &str, why: Option<String>| {
        if let (false, Some(why)) = (name.is_empty(), why) {
            errors.push(Error::invalid(path, &name.into(), &why));
        }
    };
    for field in ["plural", "singular"] {
        let name = text(names, field);
        check(format!("{path}.{field}"), name, dns::label(name));
    }
    for field in ["kind", "listKind"] {
        let name = text(names, field);
        check(format!("{path}.{field}"), name, dns::kind(name));
    }
    for (index, name) in array(names, "shortNames").iter().filter_map(Value::as_str).enumerate() {
        check(format!("{path}.shortNames[{index}]"), name, dns::label(name));
    }
    let kind = text(names, "kind");
    let same = (kind == text(names, "listKind")).then(|| "kind and listKind may not be the same".to_owned());
    check(format!("{path}.listKind"), kind, same);
    for (index, name) in array(names, "categories").iter().filter_map(Value::as_str).enumerate() {
        check(format!("{path}.categories[{index}]"), name, dns::label(name));
    }
}

fn status(crd: &Value, spec: &Map<String, Value>, errors: &mut Errors) {
    update_status(crd, errors);
    let path = "status.storedVersions";
    let stored = crd.pointer("/status/storedVersions").and_then(Value::as_array).filter(|stored| !stored.is_empty());
    let Some(stored) = stored else {
        errors.push(Error::invalid(path, &Value::Null, "must have at least one stored version"));
        return;
    };
    let versions = array(spec, "versions");
    let name = |version: &Value| version.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    for version in versions.iter().filter(|version| version.get("storage") == Some(&true.into())).map(name) {
        if !stored.iter().any(|stored| *stored == version.as_str()) {
            let detail = format!("must have the storage version {version}");
            errors.push(Error::invalid(path, &stored.as_slice().into(), &detail));
        }
    }
    for (index, version) in stored.iter().enumerate() {
        let text = version.as_str().unwrap_or_default();
        if !versions.iter().any(|known| name(known) == text) {
            let detail = format!(
                "missing from spec.versions; {text} was previously a storage version, and must remain in spec.versions until a \
                 storage migration ensures no data remains persisted in {text} and removes {text} from status.storedVersions"
            );
            errors.push(Error::invalid(format!("{path}[{index}]"), version, &detail));
        }
    }
}

/// Groups of the Kubernetes community need an approval.
fn approval(crd: &Value, old: Option<&Value>, errors: &mut Errors) {
    let group = crd.pointer("/spec/group").and_then(Value::as_str).unwrap_or_default();
    let within = |domain: &str| group == domain || group.ends_with(&format!(".{domain}"));
    let of = |crd: &Value| {
        crd.meta("annotations").and_then(|all| all.get(APPROVED)?.as_str().map(str::to_owned)).unwrap_or_default()
    };
    let (approval, before) = (of(crd), old.map(of));
    let state = |text: &str| (text.is_empty(), text.starts_with("unapproved"), is_url(text));
    if !within("k8s.io") && !within("kubernetes.io") || before.is_some_and(|before| state(&before) == state(&approval))
    {
        return;
    }
    let path = format!("metadata.annotations[{APPROVED}]");
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    match state(&approval) {
        (true, ..) => errors.push(Error::required(
            path,
            &format!("protected groups must have approval annotation {APPROVED:?}, {see}"),
        )),
        (_, true, _) | (_, _, true) => {}
        _ => {
            let either = "with either a URL or a reason starting with \"unapproved\"";
            let detail = format!("protected groups must have approval annotation {APPROVED:?} {either}, {see}");
            errors.push(Error::invalid(path, &approval.into(), &detail));
        }
    }
}

fn is_url(text: &str) -> bool {
    text.split_once("://")
        .is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty() && !rest.starts_with('/'))
}

#[cfg(test)]
mod tests;
