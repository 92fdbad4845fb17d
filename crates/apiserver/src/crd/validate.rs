//! Validation of custom resources against their schema, in kube-apiserver's words.
//!
//! Guaranteed: patterns and expressions are compiled once, with the schema; a value that did not change is never refused for what
//! it was before (ratcheting); the cost of expressions is bounded. Assumed: the object is pruned and defaulted, and `metadata` is
//! checked elsewhere, as for every kind. Not done: equality in expressions does not know list types (lists are equal when their
//! items are, in order).

mod alternatives;
mod compile;
mod convert;
mod embedded;
mod format;
mod lists;
mod number;
pub(crate) mod pattern;
mod rules;
mod value;

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use self::{format::Format, pattern::Pattern, rules::Rule, value::Walk};
use crate::{
    api::field::{self, Error, Kind},
    schema::{ListType, Node, Schema},
};

pub(crate) use self::{
    convert::escaped,
    format::is_known as is_known_format,
    pattern::{Pattern as GoPattern, from_go},
};

/// All checks of a schema, ready to run.
#[derive(Debug)]
pub struct Validator {
    root: Check,
}

/// The checks of one node of a schema.
#[derive(Debug, Default)]
struct Check {
    node: Node,
    /// The names of the types that a value may have; none for any.
    types: &'static [&'static str],
    format: Option<Format>,
    pattern: Option<Pattern>,
    all_of: Vec<Check>,
    any_of: Vec<Check>,
    one_of: Vec<Check>,
    not: Option<Box<Check>>,
    parts: Parts,
    rules: Vec<Rule>,
    /// The object has `apiVersion`, `kind` and `metadata` of its own.
    is_resource: bool,
    within: Within,
}

/// What is inside of a value.
#[derive(Debug, Default)]
enum Parts {
    #[default]
    None,
    Fields(BTreeMap<Arc<str>, Check>),
    Values(Box<Check>),
    Items(Box<Check>, ListType),
}

/// What a subtree has, so that others need not be walked.
#[derive(Clone, Copy, Debug, Default)]
struct Within {
    rules: bool,
    keyed_lists: bool,
    embedded: bool,
}

impl Validator {
    /// Compiles the checks of a custom resource's schema.
    pub fn new(schema: &Arc<Schema>) -> Self {
        Self { root: compile::root(&Node::Own(Arc::clone(schema))) }
    }

    /// Compiles the checks of a part of a schema.
    pub(crate) fn part(schema: &Arc<Schema>) -> Self {
        Self { root: compile::part(&Node::Own(Arc::clone(schema))) }
    }

    /// Whether there are rules in CEL.
    pub fn has_rules(&self) -> bool {
        self.root.within.rules
    }

    /// What is wrong with a new object, or with a change from `old`.
    pub fn validate(&self, new: &Value, old: Option<&Value>) -> field::Errors {
        let mut errors = self.values(&self.root, "", new, old);
        embedded::check(&self.root, &mut String::new(), new, &mut errors);
        self.lists(new, old, &mut errors);
        self.rules("", new, old, &mut errors);
        errors
    }

    /// What is wrong with a change of an object's status. Names in messages begin inside of it.
    pub fn validate_status(&self, new: &Value, old: &Value) -> field::Errors {
        let mut errors = Vec::new();
        let check = match &self.root.parts {
            Parts::Fields(fields) => fields.get("status"),
            _ => None,
        };
        if let Some((check, status)) = check.zip(new.get("status")) {
            errors = self.values(check, "status", status, old.get("status"));
        }
        self.lists(new, Some(old), &mut errors);
        self.rules("", new, Some(old), &mut errors);
        errors
    }

    /// What is wrong with a default.
    pub(crate) fn validate_default(&self, path: &str, default: &Value) -> field::Errors {
        let mut errors = Vec::new();
        embedded::check(&self.root, &mut path.to_owned(), default, &mut errors);
        if errors.is_empty() {
            errors = self.values(&self.root, path, default, None);
        }
        if errors.is_empty() {
            self.rules(path, default, Some(default), &mut errors);
        }
        if errors.is_empty() {
            self.rules(path, default, None, &mut errors);
        }
        errors
    }

    /// Types, limits and so on. Most objects are valid, so that the old one is only looked at where the new one is not.
    fn values(&self, check: &Check, base: &str, new: &Value, old: Option<&Value>) -> field::Errors {
        let mut walk = Walk::new(base);
        check.examine(&mut walk, new, None);
        if let (false, Some(old)) = (walk.errors.is_empty(), old) {
            walk = Walk::new(base);
            check.validate(&mut walk, new, Some(old));
        }
        walk.finish()
    }

    fn lists(&self, new: &Value, old: Option<&Value>, errors: &mut field::Errors) {
        let duplicates = |object: &Value| {
            let mut errors = Vec::new();
            lists::check(&self.root, &mut String::new(), object, &mut errors);
            errors
        };
        let found = duplicates(new);
        if !found.is_empty() && old.is_none_or(|old| duplicates(old).is_empty()) {
            errors.extend(found);
        }
    }

    /// `x-kubernetes-validations`, which rely on the types of all fields.
    fn rules(&self, base: &str, new: &Value, old: Option<&Value>, errors: &mut field::Errors) {
        if !self.root.within.rules {
            return;
        }
        if errors.iter().any(blocks_rules) {
            let detail = "some validation rules were not checked because the object was invalid; \
                          correct the existing errors to complete validation";
            errors.push(Error::invalid("<nil>", &Value::Null, detail));
            return;
        }
        rules::check(&self.root, base, new, old, errors);
    }
}

fn blocks_rules(error: &Error) -> bool {
    matches!(error.kind, Kind::NotSupported | Kind::Required | Kind::TooLong | Kind::TooMany | Kind::TypeInvalid)
}

/// A path as messages show it.
fn shown(path: &str) -> &str {
    if path.is_empty() { "<nil>" } else { path }
}

/// Runs with `.name` at the end of the path.
fn with_child<T>(path: &mut String, name: &str, then: impl FnOnce(&mut String) -> T) -> T {
    let len = path.len();
    if len > 0 {
        path.push('.');
    }
    path.push_str(name);
    let result = then(path);
    path.truncate(len);
    result
}

/// Runs with `[key]` at the end of the path.
fn with_key<T>(path: &mut String, key: impl std::fmt::Display, then: impl FnOnce(&mut String) -> T) -> T {
    let len = path.len();
    path.push_str(&format!("[{key}]"));
    let result = then(path);
    path.truncate(len);
    result
}

#[cfg(test)]
pub(crate) mod tests;
