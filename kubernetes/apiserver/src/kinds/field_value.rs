//! A value during validation, with its path and methods for reporting errors.
//!
//! The path is only formatted for an error, so that validating a correct object allocates nothing.

use std::fmt;

use serde_json::{Map, Value};

use crate::api::field::{FieldError, FieldErrorType, FieldErrors, escape_html};

static ABSENT: Value = Value::Null;

/// A value and its path. An absent value is null.
#[derive(Clone, Copy, Debug)]
pub struct FieldValue<'a> {
    pub value: &'a Value,
    parent: Option<&'a FieldValue<'a>>,
    step: FieldPathStep<'a>,
}

#[derive(Clone, Copy, Debug)]
enum FieldPathStep<'a> {
    Field(&'a str),
    Index(usize),
    Key(&'a str),
}

impl<'a> FieldValue<'a> {
    pub fn root(value: &'a Value) -> Self {
        Self { value, parent: None, step: FieldPathStep::Field("") }
    }

    /// A value with a path of its own (`webhooks`).
    pub fn named_root(name: &'a str, value: &'a Value) -> Self {
        Self { value, parent: None, step: FieldPathStep::Field(name) }
    }

    pub fn get(&'a self, name: &'a str) -> FieldValue<'a> {
        let value = self.value.get(name).unwrap_or(&ABSENT);
        FieldValue { value, parent: Some(self), step: FieldPathStep::Field(name) }
    }

    /// The items of a list, `containers[0]`; none if it is not a list.
    pub fn items(&'a self) -> impl Iterator<Item = FieldValue<'a>> {
        let items = self.value.as_array().map_or(&[][..], Vec::as_slice);
        items.iter().enumerate().map(move |(index, value)| FieldValue {
            value,
            parent: Some(self),
            step: FieldPathStep::Index(index),
        })
    }

    /// The entries of a map, `data[key]`; none if it is not a map.
    pub fn entries(&'a self) -> impl Iterator<Item = (&'a str, FieldValue<'a>)> {
        let map = self.value.as_object().into_iter().flatten();
        map.map(move |(key, value)| {
            (key.as_str(), FieldValue { value, parent: Some(self), step: FieldPathStep::Key(key) })
        })
    }

    /// A possibly absent entry of a map: `data[tls.crt]`.
    pub fn key(&'a self, key: &'a str) -> FieldValue<'a> {
        let value = self.value.get(key).unwrap_or(&ABSENT);
        FieldValue { value, parent: Some(self), step: FieldPathStep::Key(key) }
    }

    /// The string; empty if there is none.
    pub fn str(&self) -> &'a str {
        self.value.as_str().unwrap_or_default()
    }

    /// The number, if it is an integer.
    pub fn int(&self) -> Option<i64> {
        self.value.as_i64()
    }

    pub fn is_true(&self) -> bool {
        self.value.as_bool().unwrap_or(false)
    }

    /// Whether the value is present.
    pub fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    /// Whether the value is absent, or an empty string, list or map.
    pub fn is_empty(&self) -> bool {
        match self.value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(map) => map.is_empty(),
            _ => false,
        }
    }

    /// The number of items or entries.
    pub fn len(&self) -> usize {
        match self.value {
            Value::Array(items) => items.len(),
            Value::Object(map) => map.len(),
            _ => 0,
        }
    }

    /// The map, if it is one.
    pub fn map(&self) -> Option<&'a Map<String, Value>> {
        self.value.as_object()
    }

    /// The formatted path: `spec.containers[0].name`.
    pub fn path(&self) -> String {
        self.to_string()
    }

    /// The object as kube-apiserver's messages show its internal type: these fields by their names in Go, each
    /// with the value that an absent one has.
    pub fn format_internal(&self, fields: &[(&str, &str)]) -> String {
        if !self.is_set() {
            return "null".to_owned();
        }
        let members = fields.iter().map(|(field, absent)| {
            let (first, rest) = field.split_at_checked(1).unwrap_or_default();
            let given = self.value.get(format!("{}{rest}", first.to_lowercase()));
            let shown = given.filter(|value| !value.is_null()).map(|value| escape_html(&value.to_string()));
            format!("\"{field}\":{}", shown.as_deref().unwrap_or(absent))
        });
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    }

    pub fn report_required(&self, errors: &mut FieldErrors, detail: &str) {
        errors.push(FieldError::required(self.path(), detail));
    }

    /// Reports an empty value as required. Returns whether it is present.
    pub fn require(&self, errors: &mut FieldErrors, detail: &str) -> bool {
        if self.is_empty() {
            self.report_required(errors, detail);
            return false;
        }
        true
    }

    pub fn report_invalid(&self, errors: &mut FieldErrors, detail: &str) {
        errors.push(FieldError::invalid(self.path(), self.value, detail));
    }

    /// Reports an invalid value, which is shown as `shown`.
    pub fn report_invalid_as(&self, errors: &mut FieldErrors, shown: &str, detail: &str) {
        errors.push(FieldError::new(self.path(), FieldErrorType::Invalid, format!("Invalid value: {shown}: {detail}")));
    }

    /// Reports an invalid value for each reason; an absent string is shown as an empty one.
    pub fn report_invalid_each(&self, errors: &mut FieldErrors, details: Vec<String>) {
        for detail in details {
            errors.push(FieldError::invalid(self.path(), &Value::from(self.str()), &detail));
        }
    }

    /// Reports an unsupported value; an absent string is shown as an empty one.
    pub fn require_one_of(&self, errors: &mut FieldErrors, known: &[&str]) {
        if !known.contains(&self.str()) {
            errors.push(FieldError::not_supported(self.path(), &Value::from(self.str()), known));
        }
    }

    /// Reports a field that may not be set.
    pub fn report_forbidden(&self, errors: &mut FieldErrors, detail: &str) {
        errors.push(FieldError::forbidden(self.path(), detail));
    }

    pub fn report_duplicate(&self, errors: &mut FieldErrors) {
        errors.push(FieldError::duplicate(self.path(), self.value));
    }

    /// Reports a negative number.
    pub fn require_non_negative(&self, errors: &mut FieldErrors) {
        if self.int().is_some_and(|number| number < 0) {
            self.report_invalid(errors, "must be greater than or equal to 0");
        }
    }

    /// Reports a number below one.
    pub fn require_positive(&self, errors: &mut FieldErrors) {
        if self.int().is_some_and(|number| number < 1) {
            self.report_invalid(errors, "must be greater than 0");
        }
    }

    /// Reports a changed value.
    pub fn require_unchanged(&self, errors: &mut FieldErrors, old: &FieldValue<'_>) {
        if self.value != old.value {
            self.report_invalid(errors, "field is immutable");
        }
    }
}

impl fmt::Display for FieldValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nested = self.parent.is_some_and(|parent| !parent.is_root());
        if let Some(parent) = self.parent {
            fmt::Display::fmt(parent, f)?;
        }
        match self.step {
            FieldPathStep::Field(name) if nested => write!(f, ".{name}"),
            FieldPathStep::Field(name) => f.write_str(name),
            FieldPathStep::Index(index) => write!(f, "[{index}]"),
            FieldPathStep::Key(key) => write!(f, "[{key}]"),
        }
    }
}

impl FieldValue<'_> {
    fn is_root(&self) -> bool {
        self.parent.is_none() && matches!(self.step, FieldPathStep::Field(""))
    }
}
