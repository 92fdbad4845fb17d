//! Validation of custom resources against their schema, with kube-apiserver's messages.
//!
//! Guaranteed: patterns and expressions are compiled once, with the schema; a value that did not change is not
//! refused (ratcheting); the cost of expressions is bounded. Assumed: the object is pruned and defaulted, and
//! `metadata` is validated elsewhere, as for every kind. Not done: equality in expressions ignores list types
//! (lists are equal when their items are, in order).

mod alternatives;
mod cel_rules;
mod cel_values;
mod compile;
mod embedded;
mod format;
mod list_items;
mod number;
pub(crate) mod pattern;
mod value;

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use self::{cel_rules::ValidationRule, format::StringFormat, pattern::SchemaPattern, value::ValidationWalk};
use crate::{
    api::field::{self, FieldError, FieldErrorType},
    schema::{ListType, Schema, SchemaNode},
};

pub(crate) use self::{
    cel_values::escape_identifier,
    format::is_known as is_known_format,
    pattern::{SchemaPattern as GoPattern, translate_go_pattern},
};

/// All compiled checks of a schema.
#[derive(Debug)]
pub struct SchemaValidator {
    root: NodeValidator,
}

/// The compiled checks of one schema node.
#[derive(Debug, Default)]
struct NodeValidator {
    node: SchemaNode,
    /// The names of the allowed types; none for any.
    types: &'static [&'static str],
    format: Option<StringFormat>,
    pattern: Option<SchemaPattern>,
    all_of: Vec<NodeValidator>,
    any_of: Vec<NodeValidator>,
    one_of: Vec<NodeValidator>,
    not: Option<Box<NodeValidator>>,
    parts: ChildValidators,
    rules: Vec<ValidationRule>,
    /// Whether the object has its own `apiVersion`, `kind` and `metadata`.
    is_resource: bool,
    subtree: SubtreeFeatures,
}

/// The checks of the parts of a value.
#[derive(Debug, Default)]
enum ChildValidators {
    #[default]
    None,
    Fields(BTreeMap<Arc<str>, NodeValidator>),
    Values(Box<NodeValidator>),
    Items(Box<NodeValidator>, ListType),
}

/// Which kinds of checks a subtree contains, so that others need not be walked.
#[derive(Clone, Copy, Debug, Default)]
struct SubtreeFeatures {
    rules: bool,
    keyed_lists: bool,
    embedded: bool,
}

impl SchemaValidator {
    pub fn new(schema: &Arc<Schema>) -> Self {
        Self { root: compile::root(&SchemaNode::Own(Arc::clone(schema))) }
    }

    pub(crate) fn for_part(schema: &Arc<Schema>) -> Self {
        Self { root: compile::part(&SchemaNode::Own(Arc::clone(schema))) }
    }

    /// Whether there are CEL rules.
    pub fn has_rules(&self) -> bool {
        self.root.subtree.rules
    }

    /// Validates a new object, or a change from `old`.
    pub fn validate(&self, new: &Value, old: Option<&Value>) -> field::FieldErrors {
        let mut errors = self.validate_values(&self.root, "", new, old);
        embedded::check(&self.root, &mut String::new(), new, &mut errors);
        self.validate_list_items(new, old, &mut errors);
        self.validate_rules("", new, old, &mut errors);
        errors
    }

    /// Validates a change of an object's status. Names in messages are relative to the status.
    pub fn validate_status(&self, new: &Value, old: &Value) -> field::FieldErrors {
        let mut errors = Vec::new();
        let check = match &self.root.parts {
            ChildValidators::Fields(fields) => fields.get("status"),
            _ => None,
        };
        if let Some((check, status)) = check.zip(new.get("status")) {
            errors = self.validate_values(check, "status", status, old.get("status"));
        }
        self.validate_list_items(new, Some(old), &mut errors);
        self.validate_rules("", new, Some(old), &mut errors);
        errors
    }

    pub(crate) fn validate_default(&self, path: &str, default: &Value) -> field::FieldErrors {
        let mut errors = Vec::new();
        embedded::check(&self.root, &mut path.to_owned(), default, &mut errors);
        if errors.is_empty() {
            errors = self.validate_values(&self.root, path, default, None);
        }
        if errors.is_empty() {
            self.validate_rules(path, default, Some(default), &mut errors);
        }
        if errors.is_empty() {
            self.validate_rules(path, default, None, &mut errors);
        }
        errors
    }

    /// Checks types, limits and so on. Most objects are valid, so that the old one is only compared if the new
    /// one is not.
    fn validate_values(
        &self,
        check: &NodeValidator,
        base: &str,
        new: &Value,
        old: Option<&Value>,
    ) -> field::FieldErrors {
        let mut walk = ValidationWalk::new(base);
        check.examine(&mut walk, new, None);
        if let (false, Some(old)) = (walk.errors.is_empty(), old) {
            walk = ValidationWalk::new(base);
            check.validate(&mut walk, new, Some(old));
        }
        walk.finish()
    }

    fn validate_list_items(&self, new: &Value, old: Option<&Value>, errors: &mut field::FieldErrors) {
        let duplicates = |object: &Value| {
            let mut errors = Vec::new();
            list_items::check(&self.root, &mut String::new(), object, &mut errors);
            errors
        };
        let found = duplicates(new);
        if !found.is_empty() && old.is_none_or(|old| duplicates(old).is_empty()) {
            errors.extend(found);
        }
    }

    /// Checks `x-kubernetes-validations`, which rely on valid types of all fields.
    fn validate_rules(&self, base: &str, new: &Value, old: Option<&Value>, errors: &mut field::FieldErrors) {
        if !self.root.subtree.rules {
            return;
        }
        if errors.iter().any(blocks_rules) {
            let detail = "some validation rules were not checked because the object was invalid; \
                          correct the existing errors to complete validation";
            errors.push(FieldError::invalid("<nil>", &Value::Null, detail));
            return;
        }
        cel_rules::check(&self.root, base, new, old, errors);
    }
}

fn blocks_rules(error: &FieldError) -> bool {
    matches!(
        error.kind,
        FieldErrorType::NotSupported
            | FieldErrorType::Required
            | FieldErrorType::TooLong
            | FieldErrorType::TooMany
            | FieldErrorType::TypeInvalid
    )
}

/// A path in the format of messages.
fn format_path(path: &str) -> &str {
    if path.is_empty() { "<nil>" } else { path }
}

/// Runs `then` with `.name` appended to the path.
fn with_field_segment<T>(path: &mut String, name: &str, then: impl FnOnce(&mut String) -> T) -> T {
    let len = path.len();
    if len > 0 {
        path.push('.');
    }
    path.push_str(name);
    let result = then(path);
    path.truncate(len);
    result
}

/// Runs `then` with `[key]` appended to the path.
fn with_key_segment<T>(path: &mut String, key: impl std::fmt::Display, then: impl FnOnce(&mut String) -> T) -> T {
    let len = path.len();
    path.push_str(&format!("[{key}]"));
    let result = then(path);
    path.truncate(len);
    result
}

#[cfg(test)]
pub(crate) mod tests;
