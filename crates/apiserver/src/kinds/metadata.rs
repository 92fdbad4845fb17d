//! The metadata of every object, of built-in and custom kinds alike: what a writer may say in it, and what the server keeps.
//!
//! Assumed: types are right already (decoding checks them), and the server has set name, uid and creationTimestamp of a new object.

use serde_json::Value;

use super::{at::At, names};
use crate::{
    api::{
        field::{Error, Errors},
        meta::{Meta, remove_meta, set_meta},
    },
    registry::NameRule,
};

/// All keys and values of an object's annotations together, in bytes (256 KiB, as etcd objects are small).
const ANNOTATIONS_MAX: usize = 256 * 1024;
/// The longest name of a field manager, in bytes.
const MANAGER_MAX: usize = 128;
/// The longest name of a subresource in `managedFields`, in bytes.
const SUBRESOURCE_MAX: usize = 256;
/// Finalizers without a domain that kube-apiserver itself knows.
const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];
/// The order in which kube-apiserver shows the fields of an owner reference.
const OWNER_FIELDS: [&str; 6] = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];

/// What must hold for the metadata of a kind.
#[derive(Clone, Copy, Debug)]
pub struct MetaRules {
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// How names are checked.
    pub names: NameRule,
    /// Custom resources may have finalizers without a domain.
    pub custom: bool,
}

/// Keeps of an update what only the server sets, and forgets what it has no use for. It comes before the strategy's own part.
pub fn prepare_update(new: &mut Value, old: &Value) {
    remove_meta(new, "selfLink");
    for field in ["generation", "creationTimestamp"] {
        restore(new, old, field);
    }
    for field in ["uid", "deletionGracePeriodSeconds"] {
        if new.meta(field).is_none_or(Value::is_null) {
            restore(new, old, field);
        }
    }
    if old.is_deleting() {
        restore(new, old, "deletionTimestamp");
    }
}

/// Makes a field of `metadata` what it was.
pub fn restore(new: &mut Value, old: &Value, field: &str) {
    match old.meta(field) {
        Some(value) => set_meta(new, field, value.clone()),
        None => drop(remove_meta(new, field)),
    }
}

/// What is wrong with the metadata of a new object.
pub fn validate_create(object: &Value, rules: MetaRules, errors: &mut Errors) {
    let root = At::root(object);
    let meta = root.get("metadata");
    let prefix = meta.get("generateName");
    if !prefix.is_empty() {
        prefix.invalid_each(errors, names::by_rule(rules.names, prefix.str(), true));
    }
    let name = meta.get("name");
    if name.require(errors, "name or generateName is required") {
        let mut wrong = names::by_rule(rules.names, name.str(), false);
        if wrong.is_empty() {
            wrong = names::path_segment(name.str(), false);
        }
        name.invalid_each(errors, wrong);
    }
    namespace(&meta.get("namespace"), rules.namespaced, errors);
    meta.get("generation").non_negative(errors);
    common(&meta, errors);
    finalizers(&meta.get("finalizers"), rules.custom, errors);
}

/// What is wrong with the metadata of a changed object, after [`prepare_update`].
pub fn validate_update(new: &Value, old: &Value, rules: MetaRules, errors: &mut Errors) {
    let (root, old_root) = (At::root(new), At::root(old));
    let (meta, old_meta) = (root.get("metadata"), old_root.get("metadata"));
    if old.is_deleting() {
        no_new_finalizers(&meta.get("finalizers"), old, errors);
    }
    for field in ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        meta.get(field).immutable(errors, &old_meta.get(field));
    }
    common(&meta, errors);
    if old_meta.get("finalizers").value != meta.get("finalizers").value {
        finalizers(&meta.get("finalizers"), rules.custom, errors);
    }
}

/// What to tell the writer of a custom resource although it is allowed.
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

/// What is wrong with labels, each key and value by itself.
pub fn labels(labels: &At<'_>, errors: &mut Errors) {
    for (key, value) in labels.map().into_iter().flatten() {
        wrong_text(labels, key, names::qualified(key), errors);
        let value = value.as_str().unwrap_or_default();
        wrong_text(labels, value, names::label_value(value), errors);
    }
}

/// What is wrong with annotations: their keys, whatever their case, and how much they are together.
pub fn annotations(annotations: &At<'_>, errors: &mut Errors) {
    let mut size = 0;
    for (key, value) in annotations.map().into_iter().flatten() {
        wrong_text(annotations, key, names::qualified(&key.to_lowercase()), errors);
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > ANNOTATIONS_MAX {
        errors.push(Error::too_long(annotations.path(), ANNOTATIONS_MAX));
    }
}

fn namespace(at: &At<'_>, namespaced: bool, errors: &mut Errors) {
    if namespaced && at.require(errors, "") {
        at.invalid_each(errors, names::label(at.str()));
    }
    if !namespaced && !at.is_empty() {
        at.forbidden(errors, "not allowed on this type");
    }
}

fn common(meta: &At<'_>, errors: &mut Errors) {
    labels(&meta.get("labels"), errors);
    annotations(&meta.get("annotations"), errors);
    owners(&meta.get("ownerReferences"), errors);
    managed_fields(&meta.get("managedFields"), errors);
}

fn owners(at: &At<'_>, errors: &mut Errors) {
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
                let all: Vec<String> = at.items().map(|owner| shown_owner(owner.value)).collect();
                let detail = format!("Only one reference can have Controller set to true. {found}");
                at.invalid_as(errors, &format!("[{}]", all.join(",")), &detail);
            }
        }
    }
}

fn one_owner(owner: &At<'_>, errors: &mut Errors) {
    let (api_version, kind) = (owner.get("apiVersion"), owner.get("kind"));
    let (group, version) = api_version.str().split_once('/').unwrap_or(("", api_version.str()));
    if version.is_empty() {
        api_version.invalid_each(errors, vec!["version must not be empty".to_owned()]);
    }
    for field in [kind, owner.get("name"), owner.get("uid")] {
        field.require(errors, "must not be empty");
    }
    if group.is_empty() && version == "v1" && kind.str() == "Event" {
        let shown = shown_owner(owner.value);
        owner.invalid_as(errors, &shown, "/v1, Kind=Event is disallowed from being an owner");
    }
}

fn shown_owner(owner: &Value) -> String {
    shown_in_order(owner, &OWNER_FIELDS)
}

/// An object as JSON with its fields in the order of kube-apiserver's own type.
pub fn shown_in_order(object: &Value, order: &[&str]) -> String {
    let shown = order.iter().filter_map(|field| Some(format!("{field:?}:{}", object.get(field)?)));
    format!("{{{}}}", shown.collect::<Vec<_>>().join(","))
}

fn finalizers(at: &At<'_>, custom: bool, errors: &mut Errors) {
    for finalizer in at.items() {
        let name = finalizer.str();
        let wrong = names::qualified(name);
        if wrong.is_empty() && !custom && !name.contains('/') && !STANDARD_FINALIZERS.contains(&name) {
            finalizer.invalid(errors, "name is neither a standard finalizer name nor is it fully qualified");
        }
        wrong_text(at, name, wrong, errors);
    }
    let has = |name: &str| at.items().any(|finalizer| finalizer.str() == name);
    if has("orphan") && has("foregroundDeletion") {
        at.invalid(errors, "finalizer orphan and foregroundDeletion cannot be both set");
    }
}

fn no_new_finalizers(at: &At<'_>, old: &Value, errors: &mut Errors) {
    let known: Vec<&str> = old.finalizers().collect();
    let mut added: Vec<&str> = at.items().map(|name| name.str()).filter(|name| !known.contains(name)).collect();
    added.sort_unstable();
    added.dedup();
    if !added.is_empty() {
        let list: Vec<String> = added.iter().map(|name| format!("{name:?}")).collect();
        let found = format!("found new finalizers []string{{{}}}", list.join(", "));
        at.forbidden(errors, &format!("no new finalizers can be added if the object is being deleted, {found}"));
    }
}

fn managed_fields(at: &At<'_>, errors: &mut Errors) {
    for entry in at.items() {
        let operation = entry.get("operation");
        if !["Apply", "Update"].contains(&operation.str()) {
            operation.invalid_each(errors, vec!["must be `Apply` or `Update`".to_owned()]);
        }
        let fields_type = entry.get("fieldsType");
        if !["", "FieldsV1"].contains(&fields_type.str()) {
            fields_type.invalid(errors, "must be `FieldsV1`");
        }
        for (field, max) in [("manager", MANAGER_MAX), ("subresource", SUBRESOURCE_MAX)] {
            if entry.get(field).str().len() > max {
                errors.push(Error::too_long(entry.get(field).path(), max));
            }
        }
    }
}

/// Errors about a text that is not a value of its own in the object, such as a key.
fn wrong_text(at: &At<'_>, text: &str, wrong: Vec<String>, errors: &mut Errors) {
    for detail in wrong {
        errors.push(Error::invalid(at.path(), &Value::from(text), &detail));
    }
}
