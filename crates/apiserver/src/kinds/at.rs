//! A place in an object while it is checked: the value, how it was reached, and the words for what is wrong with it.
//!
//! The path is only spelled out when there is an error, so that checking a good object allocates nothing.

use std::fmt;

use serde_json::{Map, Value};

use crate::api::field::{Error, Errors, Kind};

static ABSENT: Value = Value::Null;

/// A value and where it is. An absent value is null.
#[derive(Clone, Copy, Debug)]
pub struct At<'a> {
    /// What is there.
    pub value: &'a Value,
    parent: Option<&'a At<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Field(&'a str),
    Index(usize),
    Key(&'a str),
}

impl<'a> At<'a> {
    /// The whole object.
    pub fn root(value: &'a Value) -> Self {
        Self { value, parent: None, step: Step::Field("") }
    }

    /// A part that stands for itself, with its own path (`webhooks`).
    pub fn named(name: &'a str, value: &'a Value) -> Self {
        Self { value, parent: None, step: Step::Field(name) }
    }

    /// A field: `spec.replicas`.
    pub fn get(&'a self, name: &'a str) -> At<'a> {
        let value = self.value.get(name).unwrap_or(&ABSENT);
        At { value, parent: Some(self), step: Step::Field(name) }
    }

    /// The items of a list, `containers[0]`; none if it is no list.
    pub fn items(&'a self) -> impl Iterator<Item = At<'a>> {
        let items = self.value.as_array().map_or(&[][..], Vec::as_slice);
        items.iter().enumerate().map(move |(index, value)| At { value, parent: Some(self), step: Step::Index(index) })
    }

    /// The entries of a map, `data[key]`; none if it is no map.
    pub fn entries(&'a self) -> impl Iterator<Item = (&'a str, At<'a>)> {
        let map = self.value.as_object().into_iter().flatten();
        map.map(move |(key, value)| (key.as_str(), At { value, parent: Some(self), step: Step::Key(key) }))
    }

    /// A place in a map that need not be there: `data[tls.crt]`.
    pub fn key(&'a self, key: &'a str) -> At<'a> {
        let value = self.value.get(key).unwrap_or(&ABSENT);
        At { value, parent: Some(self), step: Step::Key(key) }
    }

    /// The text, empty if there is none.
    pub fn str(&self) -> &'a str {
        self.value.as_str().unwrap_or_default()
    }

    /// The number, if it is an integer.
    pub fn int(&self) -> Option<i64> {
        self.value.as_i64()
    }

    /// Whether it is `true`.
    pub fn is_true(&self) -> bool {
        self.value.as_bool().unwrap_or(false)
    }

    /// Whether there is something at all.
    pub fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    /// Whether there is nothing, or an empty text, list or map.
    pub fn is_empty(&self) -> bool {
        match self.value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(map) => map.is_empty(),
            _ => false,
        }
    }

    /// How many items or entries.
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

    /// The path in words: `spec.containers[0].name`.
    pub fn path(&self) -> String {
        self.to_string()
    }

    /// It is missing.
    pub fn required(&self, errors: &mut Errors, detail: &str) {
        errors.push(Error::required(self.path(), detail));
    }

    /// It is missing, if it is empty. Answers whether it is there.
    pub fn require(&self, errors: &mut Errors, detail: &str) -> bool {
        if self.is_empty() {
            self.required(errors, detail);
            return false;
        }
        true
    }

    /// It is wrong in itself.
    pub fn invalid(&self, errors: &mut Errors, detail: &str) {
        errors.push(Error::invalid(self.path(), self.value, detail));
    }

    /// It is wrong in itself; the value is shown in other words than its own.
    pub fn invalid_as(&self, errors: &mut Errors, shown: &str, detail: &str) {
        errors.push(Error::of(self.path(), Kind::Invalid, format!("Invalid value: {shown}: {detail}")));
    }

    /// It is wrong for each of these reasons; an absent text is shown as an empty one.
    pub fn invalid_each(&self, errors: &mut Errors, details: Vec<String>) {
        for detail in details {
            errors.push(Error::invalid(self.path(), &Value::from(self.str()), &detail));
        }
    }

    /// It is none of the known ones; an absent text is shown as an empty one.
    pub fn one_of(&self, errors: &mut Errors, known: &[&str]) {
        if !known.contains(&self.str()) {
            errors.push(Error::not_supported(self.path(), &Value::from(self.str()), known));
        }
    }

    /// It may not be set.
    pub fn forbidden(&self, errors: &mut Errors, detail: &str) {
        errors.push(Error::forbidden(self.path(), detail));
    }

    /// It is there twice.
    pub fn duplicate(&self, errors: &mut Errors) {
        errors.push(Error::duplicate(self.path(), self.value));
    }

    /// It is a number below zero.
    pub fn non_negative(&self, errors: &mut Errors) {
        if self.int().is_some_and(|number| number < 0) {
            self.invalid(errors, "must be greater than or equal to 0");
        }
    }

    /// It is a number below one.
    pub fn positive(&self, errors: &mut Errors) {
        if self.int().is_some_and(|number| number < 1) {
            self.invalid(errors, "must be greater than 0");
        }
    }

    /// It differs from what was there before.
    pub fn immutable(&self, errors: &mut Errors, old: &At<'_>) {
        if self.value != old.value {
            self.invalid(errors, "field is immutable");
        }
    }
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nested = self.parent.is_some_and(|parent| !parent.is_root());
        if let Some(parent) = self.parent {
            fmt::Display::fmt(parent, f)?;
        }
        match self.step {
            Step::Field(name) if nested => write!(f, ".{name}"),
            Step::Field(name) => f.write_str(name),
            Step::Index(index) => write!(f, "[{index}]"),
            Step::Key(key) => write!(f, "[{key}]"),
        }
    }
}

impl At<'_> {
    fn is_root(&self) -> bool {
        self.parent.is_none() && matches!(self.step, Step::Field(""))
    }
}
