//! The metadata of every object, of built-in and custom kinds alike: its validation, and the fields that the
//! server controls.
//!
//! Assumed: types are valid (decoding checks them), and the server has set name, uid and creationTimestamp of a
//! new object.

use serde_json::Value;

use super::{field_value::FieldValue, names};
use crate::{
    api::{
        field::{FieldError, FieldErrors},
        meta::{MetaAccessor, remove_meta, set_meta},
    },
    registry::NameRule,
};

/// The limit of an object's annotations, keys and values, in bytes (256 KiB, as etcd objects are small).
const MAX_ANNOTATION_BYTES: usize = 256 * 1024;
/// The longest name of a field manager, in bytes.
const MAX_MANAGER_BYTES: usize = 128;
/// The longest name of a subresource in `managedFields`, in bytes.
const MAX_SUBRESOURCE_BYTES: usize = 256;
/// Finalizers without a domain that kube-apiserver accepts.
const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];
/// The order in which kube-apiserver shows the fields of an owner reference.
const OWNER_FIELDS: [&str; 6] = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];

/// The parameters of the validation for a kind.
#[derive(Clone, Copy, Debug)]
pub struct MetaRules {
    pub namespaced: bool,
    pub names: NameRule,
    /// Whether finalizers without a domain are allowed, as for custom resources.
    pub custom: bool,
}

/// Restores fields that only the server sets, and drops unused ones. It precedes the strategy's own part.
pub fn prepare_update(new: &mut Value, old: &Value) {
    remove_meta(new, "selfLink");
    for field in ["generation", "creationTimestamp"] {
        restore_meta_field(new, old, field);
    }
    for field in ["uid", "deletionGracePeriodSeconds"] {
        if new.meta(field).is_none_or(Value::is_null) {
            restore_meta_field(new, old, field);
        }
    }
    if old.is_deleting() {
        restore_meta_field(new, old, "deletionTimestamp");
    }
}

/// Restores a field of `metadata`.
pub fn restore_meta_field(new: &mut Value, old: &Value, field: &str) {
    match old.meta(field) {
        Some(value) => set_meta(new, field, value.clone()),
        None => drop(remove_meta(new, field)),
    }
}

/// Validates the metadata of a new object.
pub fn validate_create(object: &Value, rules: MetaRules, errors: &mut FieldErrors) {
    let root = FieldValue::root(object);
    let meta = root.get("metadata");
    let prefix = meta.get("generateName");
    if !prefix.is_empty() {
        prefix.report_invalid_each(errors, names::validate_name(rules.names, prefix.str(), true));
    }
    let name = meta.get("name");
    if name.require(errors, "name or generateName is required") {
        let mut wrong = names::validate_name(rules.names, name.str(), false);
        if wrong.is_empty() {
            wrong = names::path_segment(name.str(), false);
        }
        name.report_invalid_each(errors, wrong);
    }
    namespace(&meta.get("namespace"), rules.namespaced, errors);
    meta.get("generation").require_non_negative(errors);
    common(&meta, errors);
    finalizers(&meta.get("finalizers"), rules.custom, errors);
}

/// Validates the metadata of a changed object, after [`prepare_update`].
pub fn validate_update(new: &Value, old: &Value, rules: MetaRules, errors: &mut FieldErrors) {
    let root = FieldValue::root(new);
    let old_root = FieldValue::root(old);
    let meta = root.get("metadata");
    let old_meta = old_root.get("metadata");
    if old.is_deleting() {
        no_new_finalizers(&meta.get("finalizers"), old, errors);
    }
    for field in ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        meta.get(field).require_unchanged(errors, &old_meta.get(field));
    }
    common(&meta, errors);
    if old_meta.get("finalizers").value != meta.get("finalizers").value {
        finalizers(&meta.get("finalizers"), rules.custom, errors);
    }
}

/// Warnings about the finalizers of an accepted custom resource.
pub fn finalizer_warnings(object: &Value) -> Vec<String> {
    let plain = object.finalizers().filter(|name| !name.contains('/') && !STANDARD_FINALIZERS.contains(name));
    plain
        .map(|name| {
            format!(
                "metadata.finalizers: {name:?}: prefer a domain-qualified finalizer name including a path (/) to avoid \
                 accidental conflicts with other finalizer writers"
            )
        })
        .collect()
}

/// Validates labels, each key and value.
pub fn labels(labels: &FieldValue<'_>, errors: &mut FieldErrors) {
    for (key, value) in labels.map().into_iter().flatten() {
        wrong_text(labels, key, names::qualified(key), errors);
        let value = value.as_str().unwrap_or_default();
        wrong_text(labels, value, names::label_value(value), errors);
    }
}

/// Validates a path after a domain: `example.com/controller`.
pub fn domain_prefixed_path(at: &FieldValue<'_>, errors: &mut FieldErrors) {
    if !at.require(errors, "") {
        return;
    }
    let Some((host, path)) = at.str().split_once('/').filter(|(host, path)| !host.is_empty() && !path.is_empty())
    else {
        return at.report_invalid(errors, "must be a domain-prefixed path (such as \"acme.io/foo\")");
    };
    for wrong in names::subdomain(host) {
        errors.push(FieldError::invalid(at.path(), &host.into(), &wrong));
    }
    if !path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte)) {
        let detail = r"Invalid path (regex used for validation is '[A-Za-z0-9/\-._~%!$&'()*+,;=:]+')";
        errors.push(FieldError::invalid(at.path(), &path.into(), detail));
    }
}

/// Validates annotations: their keys, ignoring case, and their total size.
pub fn annotations(annotations: &FieldValue<'_>, errors: &mut FieldErrors) {
    let mut size = 0;
    for (key, value) in annotations.map().into_iter().flatten() {
        wrong_text(annotations, key, names::qualified(&key.to_lowercase()), errors);
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > MAX_ANNOTATION_BYTES {
        errors.push(FieldError::too_long(annotations.path(), MAX_ANNOTATION_BYTES));
    }
}

fn namespace(at: &FieldValue<'_>, namespaced: bool, errors: &mut FieldErrors) {
    if namespaced && at.require(errors, "") {
        at.report_invalid_each(errors, names::label(at.str()));
    }
    if !namespaced && !at.is_empty() {
        at.report_forbidden(errors, "not allowed on this type");
    }
}

fn common(meta: &FieldValue<'_>, errors: &mut FieldErrors) {
    labels(&meta.get("labels"), errors);
    annotations(&meta.get("annotations"), errors);
    owners(&meta.get("ownerReferences"), errors);
    managed_fields(&meta.get("managedFields"), errors);
}

fn owners(at: &FieldValue<'_>, errors: &mut FieldErrors) {
    let mut controller: Option<String> = None;
    for owner in at.items() {
        one_owner(&owner, errors);
        if !owner.get("controller").is_true() {
            continue;
        }
        let this = format!("{}/{}", owner.get("kind").str(), owner.get("name").str());
        match &controller {
            None => controller = Some(this),
            Some(first) => {
                let found = format!("Found \"true\" in references for {first} and {this}");
                let all: Vec<String> = at.items().map(|owner| format_owner(owner.value)).collect();
                let detail = format!("Only one reference can have Controller set to true. {found}");
                at.report_invalid_as(errors, &format!("[{}]", all.join(",")), &detail);
            }
        }
    }
}

fn one_owner(owner: &FieldValue<'_>, errors: &mut FieldErrors) {
    let api_version = owner.get("apiVersion");
    let kind = owner.get("kind");
    let (group, version) = api_version.str().split_once('/').unwrap_or(("", api_version.str()));
    if version.is_empty() {
        api_version.report_invalid_each(errors, vec!["version must not be empty".to_owned()]);
    }
    for field in [kind, owner.get("name"), owner.get("uid")] {
        field.require(errors, "must not be empty");
    }
    if group.is_empty() && version == "v1" && kind.str() == "Event" {
        let shown = format_owner(owner.value);
        owner.report_invalid_as(errors, &shown, "/v1, Kind=Event is disallowed from being an owner");
    }
}

fn format_owner(owner: &Value) -> String {
    format_in_order(owner, &OWNER_FIELDS)
}

/// An object as JSON with its fields in the order of kube-apiserver's own type.
pub fn format_in_order(object: &Value, order: &[&str]) -> String {
    let shown = order.iter().filter_map(|field| Some(format!("{field:?}:{}", object.get(field)?)));
    format!("{{{}}}", shown.collect::<Vec<_>>().join(","))
}

fn finalizers(at: &FieldValue<'_>, custom: bool, errors: &mut FieldErrors) {
    for finalizer in at.items() {
        let name = finalizer.str();
        let wrong = names::qualified(name);
        if wrong.is_empty() && !custom && !name.contains('/') && !STANDARD_FINALIZERS.contains(&name) {
            finalizer.report_invalid(errors, "name is neither a standard finalizer name nor is it fully qualified");
        }
        wrong_text(at, name, wrong, errors);
    }
    let has = |name: &str| at.items().any(|finalizer| finalizer.str() == name);
    if has("orphan") && has("foregroundDeletion") {
        at.report_invalid(errors, "finalizer orphan and foregroundDeletion cannot be both set");
    }
}

fn no_new_finalizers(at: &FieldValue<'_>, old: &Value, errors: &mut FieldErrors) {
    let known: Vec<&str> = old.finalizers().collect();
    let mut added: Vec<&str> = at.items().map(|name| name.str()).filter(|name| !known.contains(name)).collect();
    added.sort_unstable();
    added.dedup();
    if !added.is_empty() {
        let list: Vec<String> = added.iter().map(|name| format!("{name:?}")).collect();
        let found = format!("found new finalizers []string{{{}}}", list.join(", "));
        at.report_forbidden(errors, &format!("no new finalizers can be added if the object is being deleted, {found}"));
    }
}

fn managed_fields(at: &FieldValue<'_>, errors: &mut FieldErrors) {
    for entry in at.items() {
        let operation = entry.get("operation");
        if !["Apply", "Update"].contains(&operation.str()) {
            operation.report_invalid_each(errors, vec!["must be `Apply` or `Update`".to_owned()]);
        }
        let fields_type = entry.get("fieldsType");
        if !["", "FieldsV1"].contains(&fields_type.str()) {
            fields_type.report_invalid(errors, "must be `FieldsV1`");
        }
        for (field, max) in [("manager", MAX_MANAGER_BYTES), ("subresource", MAX_SUBRESOURCE_BYTES)] {
            if entry.get(field).str().len() > max {
                errors.push(FieldError::too_long(entry.get(field).path(), max));
            }
        }
    }
}

/// Errors about a text that is not a value in the object, such as a key.
fn wrong_text(at: &FieldValue<'_>, text: &str, wrong: Vec<String>, errors: &mut FieldErrors) {
    for detail in wrong {
        errors.push(FieldError::invalid(at.path(), &Value::from(text), &detail));
    }
}
