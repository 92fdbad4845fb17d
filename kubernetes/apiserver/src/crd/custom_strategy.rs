//! The rules of custom resources.

use std::sync::{Arc, LazyLock};

use regex::Regex;
use serde_json::Value;

use super::{SchemaValidator, scale};
use crate::{
    api::{
        GroupVersion,
        field::{self, FieldError},
        meta::{self, MetaAccessor},
    },
    registry::{CustomResourceInfo, Strategy},
    schema::Schema,
};

/// The strategy of one version of a custom resource.
#[derive(Debug)]
pub struct CustomStrategy {
    api_version: String,
    kind: Arc<str>,
    custom: Arc<CustomResourceInfo>,
    validator: SchemaValidator,
    selectable: Vec<Arc<str>>,
}

impl CustomStrategy {
    pub fn new(
        gv: &GroupVersion,
        kind: &Arc<str>,
        custom: &Arc<CustomResourceInfo>,
        schema: &Arc<Schema>,
        selectable: Vec<Arc<str>>,
    ) -> Self {
        let kind = Arc::clone(kind);
        let custom = Arc::clone(custom);
        Self { api_version: gv.to_string(), kind, custom, validator: SchemaValidator::new(schema), selectable }
    }

    /// Whether an object has a wrong kind or version. If so, no other error is reported.
    fn has_wrong_type_meta(&self, object: &Value, errors: &mut field::FieldErrors) -> bool {
        let before = errors.len();
        for (name, wanted) in [("kind", &*self.kind), ("apiVersion", self.api_version.as_str())] {
            if let Some(is) = object.get(name).filter(|is| **is != wanted) {
                errors.push(FieldError::invalid(name, is, &format!("must be {wanted}")));
            }
        }
        errors.len() > before
    }
}

impl Strategy for CustomStrategy {
    fn runs_expressions(&self) -> bool {
        self.validator.has_rules()
    }

    fn prepare_create(&self, object: &mut Value) {
        if self.custom.has_status {
            object.as_object_mut().and_then(|object| object.remove("status"));
        }
        meta::set_meta(object, "generation", 1);
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str) {
        if subresource == "status" {
            return take_status_only(new, old);
        }
        if self.custom.has_status {
            copy_field(new, old, "status");
        }
        let changed = i64::from(differs(new, old));
        meta::set_meta(new, "generation", old.generation() + changed);
    }

    fn validate_create(&self, object: &Value, errors: &mut field::FieldErrors) {
        if self.has_wrong_type_meta(object, errors) {
            return;
        }
        errors.extend(self.validator.validate(object, None));
        if let Some(paths) = &self.custom.scale {
            scale::check_spec(object, paths, errors);
            scale::check_status(object, paths, errors);
        }
    }

    fn validate_update(&self, new: &Value, old: &Value, subresource: &str, errors: &mut field::FieldErrors) {
        if self.has_wrong_type_meta(new, errors) {
            return;
        }
        let is_status = subresource == "status";
        errors.extend(if is_status {
            self.validator.validate_status(new, old)
        } else {
            self.validator.validate(new, Some(old))
        });
        if let Some(paths) = &self.custom.scale {
            if !is_status {
                scale::check_spec(new, paths, errors);
            }
            scale::check_status(new, paths, errors);
        }
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        object.finalizers().flat_map(finalizer_warnings).collect()
    }

    fn warnings_on_update(&self, new: &Value, old: &Value) -> Vec<String> {
        let added = new.finalizers().filter(|finalizer| !old.finalizers().any(|known| known == *finalizer));
        added.flat_map(finalizer_warnings).collect()
    }

    fn unconditional_update(&self) -> bool {
        false
    }

    fn field_value(&self, object: &Value, path: &str) -> Option<String> {
        self.selectable.iter().find(|known| &***known == path)?;
        let found = path.split('.').try_fold(object, |value, name| value.get(name));
        Some(match found {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        })
    }
}

/// An update of the status changes nothing else, except `managedFields`.
fn take_status_only(new: &mut Value, old: &Value) {
    let mut next = old.clone();
    for name in ["apiVersion", "kind", "status"] {
        copy_field(&mut next, new, name);
    }
    match new.meta("managedFields") {
        Some(managed) => meta::set_meta(&mut next, "managedFields", managed.clone()),
        None => _ = meta::remove_meta(&mut next, "managedFields"),
    }
    *new = next;
}

/// Copies a member from another object.
fn copy_field(object: &mut Value, other: &Value, name: &str) {
    let Some(object) = object.as_object_mut() else { return };
    match other.get(name) {
        Some(value) => _ = object.insert(name.to_owned(), value.clone()),
        None => _ = object.remove(name),
    }
}

/// Whether two objects differ in fields that `generation` counts.
fn differs(new: &Value, old: &Value) -> bool {
    let own = |name: &str| !matches!(name, "metadata" | "apiVersion" | "kind");
    let members =
        |object: &Value| object.as_object().map_or(0, |object| object.keys().filter(|name| own(name)).count());
    let changed = |(name, value): (&String, &Value)| own(name) && old.get(name) != Some(value);
    members(new) != members(old) || new.as_object().is_some_and(|new| new.iter().any(changed))
}

fn finalizer_warnings(finalizer: &str) -> Option<String> {
    static NAME: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new("^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$").ok());
    let (prefix, name) = finalizer.split_once('/').map_or((None, finalizer), |(prefix, name)| (Some(prefix), name));
    let is_name = NAME.as_ref().is_some_and(|pattern| pattern.is_match(name)) && name.len() <= 63;
    let head = format!("metadata.finalizers: {finalizer:?}");
    if !is_name {
        let why = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
                   character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                   '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
        return Some(format!("{head}: {why}"));
    }
    if prefix.is_some() || matches!(name, "orphan" | "foregroundDeletion" | "kubernetes") {
        return None;
    }
    let path = if name.contains('.') { " including a path (/)" } else { "" };
    let advice = format!(
        "prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other finalizer writers"
    );
    Some(format!("{head}: {advice}"))
}

#[cfg(test)]
mod tests;
