//! JSON schema validation: types, limits, `required`, `anyOf` and so on, with go-openapi's messages.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{ChildValidators, NodeValidator, format_path, list_items, number};
use crate::{
    api::field::{self, FieldError, FieldErrorType},
    schema::{ListType, ValueValidation},
};

/// The number of passed checks, as go-openapi counts them.
pub(super) type PassedChecks = u32;

/// The position of the walk, and its errors.
pub(super) struct ValidationWalk {
    base: String,
    /// The name of the value relative to `base`, as messages show it.
    name: String,
    pub(super) errors: field::FieldErrors,
}

impl ValidationWalk {
    pub(super) fn new(base: &str) -> Self {
        Self { base: base.to_owned(), name: String::new(), errors: Vec::new() }
    }

    /// Reports equal errors of two alternatives once.
    pub(super) fn finish(mut self) -> field::FieldErrors {
        if self.errors.len() > 1 {
            let mut told = HashSet::new();
            self.errors.retain(|error| told.insert((error.path.clone(), error.message.clone())));
        }
        self.errors
    }

    fn path(&self, name: &str) -> String {
        let name = name.strip_prefix('.').unwrap_or(name);
        match (self.base.as_str(), name) {
            (base, "") => format_path(base).to_owned(),
            ("", name) => name.to_owned(),
            (base, name) => format!("{base}.{name}"),
        }
    }

    /// go-openapi's errors about a value.
    fn push_invalid(&mut self, value: &str, detail: &str) {
        let message = format!("Invalid value: {value}: {} in body {detail}", self.name);
        self.errors.push(FieldError::new(self.path(&self.name), FieldErrorType::Invalid, message));
    }

    fn push_wrong_type(&mut self, wanted: &str, got: &str) {
        let detail = format!("{} in body must be of type {wanted}: {got:?}", self.name);
        self.errors.push(FieldError::type_invalid(self.path(&self.name), &format!("{got:?}"), &detail));
    }

    /// go-openapi's errors without a field.
    pub(super) fn push_general_error(&mut self, detail: &str) {
        let message = format!("Invalid value: \"\": {:?} {detail}", self.name);
        self.errors.push(FieldError::new(format_path(&self.base), FieldErrorType::Invalid, message));
    }

    fn descend<T>(&mut self, suffix: std::fmt::Arguments<'_>, then: impl FnOnce(&mut Self) -> T) -> T {
        let len = self.name.len();
        // Writing to a String cannot fail.
        let _ = std::fmt::Write::write_fmt(&mut self.name, suffix);
        let result = then(self);
        self.name.truncate(len);
        result
    }
}

impl NodeValidator {
    /// Like [`Self::examine`], but an unchanged value is valid.
    pub(super) fn validate(&self, walk: &mut ValidationWalk, value: &Value, old: Option<&Value>) -> PassedChecks {
        let before = walk.errors.len();
        let passed = self.examine(walk, value, old);
        if walk.errors.len() > before && old == Some(value) {
            walk.errors.truncate(before);
        }
        passed
    }

    /// All errors of a value. Its unchanged parts are valid.
    pub(super) fn examine(&self, walk: &mut ValidationWalk, value: &Value, old: Option<&Value>) -> PassedChecks {
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
                number::check(self.node.rules.as_deref(), number, |value, detail| walk.push_invalid(value, detail));
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

    fn limits(&self) -> Option<&ValueValidation> {
        self.node.rules.as_deref()
    }

    fn check_type(&self, walk: &mut ValidationWalk, value: &Value) -> PassedChecks {
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
            // A string format replaces the check of the type.
            Value::String(_) | Value::Array(_) if self.format.is_some() && !numeric => true,
            _ => self.types.contains(&kind),
        };
        match &self.format {
            _ if fits => 1,
            Some(wanted) if !matches!(value, Value::Null | Value::String(_) | Value::Array(_)) => {
                walk.push_wrong_type(wanted.name(), format);
                0
            }
            _ => {
                walk.push_wrong_type(&self.types.join(","), kind);
                0
            }
        }
    }

    fn check_text(&self, walk: &mut ValidationWalk, text: &str) {
        let limits = self.limits();
        let max = limits.and_then(|limits| limits.max_length);
        let min = limits.and_then(|limits| limits.min_length);
        let len = if max.is_some() || min.is_some() { text.chars().count() as u64 } else { 0 };
        if let Some(max) = max.filter(|max| len > *max) {
            walk.errors.push(FieldError::too_long(walk.path(&walk.name), usize::try_from(max).unwrap_or(usize::MAX)));
        } else if let Some(min) = min.filter(|min| len < *min) {
            walk.push_invalid(&format!("{text:?}"), &format!("should be at least {min} chars long"));
        } else if let Some(pattern) = self.pattern.as_ref().filter(|pattern| !pattern.matches(text)) {
            walk.push_invalid(&format!("{text:?}"), &format!("should match '{}'", pattern.text()));
        }
        if let Some(format) = self.format.as_ref().filter(|format| !format.matches(text)) {
            walk.push_wrong_type(format.name(), text);
        }
    }

    fn check_enum(&self, walk: &mut ValidationWalk, value: &Value) {
        let Some(limits) = self.limits().filter(|limits| !limits.enumeration.is_empty()) else { return };
        if limits.enumeration.iter().any(|known| known == value || number::equal(known, value)) {
            return;
        }
        let known: Vec<String> = limits.enumeration.iter().map(as_text).collect();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        walk.errors.push(FieldError::not_supported(walk.path(&walk.name), value, &known));
    }

    fn check_items(&self, walk: &mut ValidationWalk, items: &[Value], old: Option<&Value>) -> PassedChecks {
        let mut passed = 0;
        if let ChildValidators::Items(check, list) = &self.parts {
            let old = old.and_then(Value::as_array).map(|old| ListCorrelation::new(list, old));
            for (index, item) in items.iter().enumerate() {
                let old = old.as_ref().and_then(|old| old.find(index, item));
                passed += walk.descend(format_args!("[{index}]"), |walk| check.validate(walk, item, old));
            }
        }
        let Some(limits) = self.limits() else { return passed };
        let len = items.len() as u64;
        if let Some(min) = limits.min_items.filter(|min| len < *min) {
            walk.push_invalid(&len.to_string(), &format!("should have at least {min} items"));
        }
        if let Some(max) = limits.max_items.filter(|max| len > *max) {
            let max = usize::try_from(max).unwrap_or(usize::MAX);
            walk.errors.push(FieldError::too_many(walk.path(&walk.name), items.len(), max));
        }
        if limits.unique_items && list_items::repeated_indexes(items.iter()).next().is_some() {
            walk.push_invalid("\"\"", "shouldn't contain duplicates");
        }
        passed
    }

    fn check_fields(
        &self,
        walk: &mut ValidationWalk,
        fields: &Map<String, Value>,
        old: Option<&Value>,
    ) -> PassedChecks {
        if let Some(limits) = self.limits() {
            check_size(walk, limits, fields.len());
        }
        let mut passed = 0;
        let old = |name: &str| old.and_then(|old| old.get(name));
        match &self.parts {
            ChildValidators::Fields(known) => {
                for (name, check) in known {
                    let Some(value) = fields.get(&**name) else { continue };
                    // Both objects were converted to the same version: `apiVersion` and `kind` are no change.
                    let old = if walk.name.is_empty() && is_type(name) { None } else { old(name) };
                    let dot = if walk.name.is_empty() { "" } else { "." };
                    passed += walk.descend(format_args!("{dot}{name}"), |walk| check.validate(walk, value, old));
                }
            }
            ChildValidators::Values(check) => {
                for (name, value) in fields {
                    passed += walk.descend(format_args!(".{name}"), |walk| check.validate(walk, value, old(name)));
                }
            }
            ChildValidators::None | ChildValidators::Items(..) => {}
        }
        for name in self.limits().into_iter().flat_map(|limits| &limits.required) {
            if !fields.contains_key(&**name) {
                let path = walk.path(&format!("{}.{name}", walk.name));
                walk.errors.push(FieldError::required(path, ""));
            }
        }
        passed
    }
}

fn check_size(walk: &mut ValidationWalk, limits: &ValueValidation, size: usize) {
    let count = size as u64;
    if let Some(min) = limits.min_properties.filter(|min| count < *min) {
        walk.push_invalid(&count.to_string(), &format!("should have at least {min} properties"));
    }
    if let Some(max) = limits.max_properties.filter(|max| count > *max) {
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        walk.errors.push(FieldError::too_many(walk.path(&walk.name), size, max));
    }
}

/// Correlates the items of a list with those of the old list.
pub(super) struct ListCorrelation<'a> {
    list: &'a ListType,
    old: &'a [Value],
    by_key: list_items::ItemsByKey<'a>,
}

impl<'a> ListCorrelation<'a> {
    pub(super) fn new(list: &'a ListType, old: &'a [Value]) -> Self {
        let by_key = match list {
            ListType::Map(keys) => list_items::index_by_key(keys, old),
            _ => list_items::ItemsByKey::new(),
        };
        Self { list, old, by_key }
    }

    /// Looks up by keys, or by index.
    pub(super) fn find(&self, index: usize, item: &Value) -> Option<&'a Value> {
        match self.list {
            ListType::Map(_) => self.find_by_key(item),
            ListType::Set => None,
            ListType::Atomic => self.old.get(index),
        }
    }

    pub(super) fn find_by_key(&self, item: &Value) -> Option<&'a Value> {
        let ListType::Map(keys) = self.list else { return None };
        self.by_key.get(&list_items::key_json(keys, item)).copied()
    }
}

fn is_type(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind")
}

fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
