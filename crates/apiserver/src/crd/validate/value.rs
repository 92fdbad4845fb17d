//! What JSON schema says of a value: types, limits, `required`, `anyOf` and so on, with go-openapi's messages.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{Check, Parts, lists, number, shown};
use crate::{
    api::field::{self, Error, Kind},
    schema::{ListType, Rules},
};

/// How many checks passed, as go-openapi counts them.
pub(super) type Passed = u32;

/// Where the walk is, and what it has found.
pub(super) struct Walk {
    base: String,
    /// The name of the value inside of `base`, as messages show it.
    name: String,
    pub(super) errors: field::Errors,
}

impl Walk {
    pub(super) fn new(base: &str) -> Self {
        Self { base: base.to_owned(), name: String::new(), errors: Vec::new() }
    }

    /// The same error of two alternatives is told once.
    pub(super) fn finish(mut self) -> field::Errors {
        if self.errors.len() > 1 {
            let mut told = HashSet::new();
            self.errors.retain(|error| told.insert((error.path.clone(), error.message.clone())));
        }
        self.errors
    }

    fn path(&self, name: &str) -> String {
        let name = name.strip_prefix('.').unwrap_or(name);
        match (self.base.as_str(), name) {
            (base, "") => shown(base).to_owned(),
            ("", name) => name.to_owned(),
            (base, name) => format!("{base}.{name}"),
        }
    }

    /// Errors of go-openapi that are about a value.
    fn invalid(&mut self, value: &str, detail: &str) {
        let message = format!("Invalid value: {value}: {} in body {detail}", self.name);
        self.errors.push(Error::of(self.path(&self.name), Kind::Invalid, message));
    }

    fn wrong_type(&mut self, wanted: &str, got: &str) {
        let detail = format!("{} in body must be of type {wanted}: {got:?}", self.name);
        self.errors.push(Error::type_invalid(self.path(&self.name), &format!("{got:?}"), &detail));
    }

    /// Errors of go-openapi that have no place of their own.
    pub(super) fn general(&mut self, detail: &str) {
        let message = format!("Invalid value: \"\": {:?} {detail}", self.name);
        self.errors.push(Error::of(shown(&self.base), Kind::Invalid, message));
    }

    fn at<T>(&mut self, suffix: std::fmt::Arguments<'_>, then: impl FnOnce(&mut Self) -> T) -> T {
        let len = self.name.len();
        // Writing to a String does not fail.
        let _ = std::fmt::Write::write_fmt(&mut self.name, suffix);
        let result = then(self);
        self.name.truncate(len);
        result
    }
}

impl Check {
    /// Like [`Self::examine`], but what did not change is right.
    pub(super) fn validate(&self, walk: &mut Walk, value: &Value, old: Option<&Value>) -> Passed {
        let before = walk.errors.len();
        let passed = self.examine(walk, value, old);
        if walk.errors.len() > before && old == Some(value) {
            walk.errors.truncate(before);
        }
        passed
    }

    /// All errors of a value. What did not change inside of it is right.
    pub(super) fn examine(&self, walk: &mut Walk, value: &Value, old: Option<&Value>) -> Passed {
        let mut passed = 1;
        if !self.types.is_empty() || self.format.is_some() {
            passed += 1 + self.check_type(walk, value);
        }
        if value.is_null() {
            self.check_enum(walk, value);
            return passed;
        }
        passed += 2 + self.check_alternatives(walk, value, old);
        match value {
            Value::String(text) => {
                self.check_text(walk, text);
                passed += 1 + u32::from(self.format.is_some());
            }
            Value::Number(number) => {
                number::check(self.node.rules.as_deref(), number, |value, detail| walk.invalid(value, detail));
                passed += 2;
            }
            Value::Array(items) => passed += 2 + self.check_items(walk, items, old),
            _ => {}
        }
        self.check_enum(walk, value);
        if let Value::Object(fields) = value {
            passed += 1 + self.check_fields(walk, fields, old);
        }
        passed + 1
    }

    fn limits(&self) -> Option<&Rules> {
        self.node.rules.as_deref()
    }

    fn check_type(&self, walk: &mut Walk, value: &Value) -> Passed {
        let (kind, format) = match value {
            Value::Null => ("null", ""),
            Value::Bool(_) => ("boolean", ""),
            Value::Number(number) if number.is_f64() => ("number", "float64"),
            Value::Number(_) => ("integer", "int64"),
            Value::String(_) => ("string", ""),
            Value::Array(_) => ("array", ""),
            Value::Object(_) => ("object", ""),
        };
        let numeric = self.types.contains(&"number") || self.types.contains(&"integer");
        let fits = match value {
            Value::Null => self.types.is_empty() || self.node.nullable,
            Value::Number(number) if number.is_f64() => {
                let whole = number.as_f64().is_some_and(|number| number.fract() == 0.0);
                self.types.contains(&"number") || whole && self.types.contains(&"integer")
            }
            Value::Number(_) => numeric,
            // A format takes the place of the type where it is one of texts.
            Value::String(_) | Value::Array(_) if self.format.is_some() && !numeric => true,
            _ => self.types.contains(&kind),
        };
        match &self.format {
            _ if fits => 1,
            Some(wanted) if !matches!(value, Value::Null | Value::String(_) | Value::Array(_)) => {
                walk.wrong_type(wanted.name(), format);
                0
            }
            _ => {
                walk.wrong_type(&self.types.join(","), kind);
                0
            }
        }
    }

    fn check_text(&self, walk: &mut Walk, text: &str) {
        let limits = self.limits();
        let max = limits.and_then(|limits| limits.max_length);
        let min = limits.and_then(|limits| limits.min_length);
        let len = if max.is_some() || min.is_some() { text.chars().count() as u64 } else { 0 };
        if let Some(max) = max.filter(|max| len > *max) {
            walk.errors.push(Error::too_long(walk.path(&walk.name), usize::try_from(max).unwrap_or(usize::MAX)));
        } else if let Some(min) = min.filter(|min| len < *min) {
            walk.invalid(&format!("{text:?}"), &format!("should be at least {min} chars long"));
        } else if let Some(pattern) = self.pattern.as_ref().filter(|pattern| !pattern.matches(text)) {
            walk.invalid(&format!("{text:?}"), &format!("should match '{}'", pattern.text()));
        }
        if let Some(format) = self.format.as_ref().filter(|format| !format.matches(text)) {
            walk.wrong_type(format.name(), text);
        }
    }

    fn check_enum(&self, walk: &mut Walk, value: &Value) {
        let Some(limits) = self.limits().filter(|limits| !limits.enumeration.is_empty()) else { return };
        if limits.enumeration.iter().any(|known| known == value || number::equal(known, value)) {
            return;
        }
        let known: Vec<String> = limits.enumeration.iter().map(as_text).collect();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        walk.errors.push(Error::not_supported(walk.path(&walk.name), value, &known));
    }

    fn check_items(&self, walk: &mut Walk, items: &[Value], old: Option<&Value>) -> Passed {
        let mut passed = 0;
        if let Parts::Items(check, list) = &self.parts {
            let old = old.and_then(Value::as_array).map(|old| Correlation::new(list, old));
            for (index, item) in items.iter().enumerate() {
                let old = old.as_ref().and_then(|old| old.find(index, item));
                passed += walk.at(format_args!("[{index}]"), |walk| check.validate(walk, item, old));
            }
        }
        let Some(limits) = self.limits() else { return passed };
        let len = items.len() as u64;
        if let Some(min) = limits.min_items.filter(|min| len < *min) {
            walk.invalid(&len.to_string(), &format!("should have at least {min} items"));
        }
        if let Some(max) = limits.max_items.filter(|max| len > *max) {
            let max = usize::try_from(max).unwrap_or(usize::MAX);
            walk.errors.push(Error::too_many(walk.path(&walk.name), items.len(), max));
        }
        if limits.unique_items && lists::repeated(items.iter()).next().is_some() {
            walk.invalid("\"\"", "shouldn't contain duplicates");
        }
        passed
    }

    fn check_fields(&self, walk: &mut Walk, fields: &Map<String, Value>, old: Option<&Value>) -> Passed {
        if let Some(limits) = self.limits() {
            check_size(walk, limits, fields.len());
        }
        let mut passed = 0;
        let old = |name: &str| old.and_then(|old| old.get(name));
        match &self.parts {
            Parts::Fields(known) => {
                for (name, check) in known {
                    let Some(value) = fields.get(&**name) else { continue };
                    // Both sides were brought to the same version: what an object says of itself is no change.
                    let old = if walk.name.is_empty() && is_type(name) { None } else { old(name) };
                    let dot = if walk.name.is_empty() { "" } else { "." };
                    passed += walk.at(format_args!("{dot}{name}"), |walk| check.validate(walk, value, old));
                }
            }
            Parts::Values(check) => {
                for (name, value) in fields {
                    passed += walk.at(format_args!(".{name}"), |walk| check.validate(walk, value, old(name)));
                }
            }
            Parts::None | Parts::Items(..) => {}
        }
        for name in self.limits().into_iter().flat_map(|limits| &limits.required) {
            if !fields.contains_key(&**name) {
                let path = walk.path(&format!("{}.{name}", walk.name));
                walk.errors.push(Error::required(path, ""));
            }
        }
        passed
    }
}

fn check_size(walk: &mut Walk, limits: &Rules, size: usize) {
    let count = size as u64;
    if let Some(min) = limits.min_properties.filter(|min| count < *min) {
        walk.invalid(&count.to_string(), &format!("should have at least {min} properties"));
    }
    if let Some(max) = limits.max_properties.filter(|max| count > *max) {
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        walk.errors.push(Error::too_many(walk.path(&walk.name), size, max));
    }
}

/// Which item of the old list an item of the new one was.
pub(super) struct Correlation<'a> {
    list: &'a ListType,
    old: &'a [Value],
    by_key: lists::ByKey<'a>,
}

impl<'a> Correlation<'a> {
    pub(super) fn new(list: &'a ListType, old: &'a [Value]) -> Self {
        let by_key = match list {
            ListType::Map(keys) => lists::by_key(keys, old),
            _ => lists::ByKey::new(),
        };
        Self { list, old, by_key }
    }

    /// By its keys, or by its place.
    pub(super) fn find(&self, index: usize, item: &Value) -> Option<&'a Value> {
        match self.list {
            ListType::Map(_) => self.find_by_key(item),
            ListType::Set => None,
            ListType::Atomic => self.old.get(index),
        }
    }

    /// By its keys only.
    pub(super) fn find_by_key(&self, item: &Value) -> Option<&'a Value> {
        let ListType::Map(keys) = self.list else { return None };
        self.by_key.get(&lists::key(keys, item)).copied()
    }
}

fn is_type(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind")
}

fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
