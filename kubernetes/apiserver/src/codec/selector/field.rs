//! Field selectors.

use serde_json::Value;

use crate::{
    api::{StatusError, go_format},
    registry::ServedResource,
};

/// A conjunction of terms. Without any, it selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    terms: Vec<FieldTerm>,
}

/// A required or excluded value of one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldTerm {
    pub field: String,
    /// An absent field has the empty value.
    pub value: String,
    pub not: bool,
}

impl FieldSelector {
    /// Parses the text form: `metadata.name=a,status.phase!=Running`.
    ///
    /// # Errors
    /// A 400 with kube-apiserver's message.
    pub fn parse(text: &str) -> Result<Self, StatusError> {
        let mut parts: Vec<&str> = split(text);
        parts.sort_unstable();
        let terms = parts.into_iter().filter(|part| !part.is_empty()).map(|part| {
            let (field, not, value) = operator(part).ok_or_else(|| {
                StatusError::bad_request(format!("invalid selector: '{text}'; can't understand '{part}'"))
            })?;
            let value = unescape(value).map_err(StatusError::bad_request)?;
            Ok(FieldTerm { field: field.to_owned(), value, not })
        });
        Ok(Self { terms: terms.collect::<Result<_, StatusError>>()? })
    }

    pub fn terms(&self) -> &[FieldTerm] {
        &self.terms
    }

    pub fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }

    /// The single value that a field must have, if there is one: it allows reading one object instead of all.
    pub fn exact(&self, field: &str) -> Option<&str> {
        self.terms.iter().find(|term| !term.not && term.field == field).map(|term| term.value.as_str())
    }

    /// Whether the resource supports these fields in selectors.
    ///
    /// # Errors
    /// A 400 with kube-apiserver's message.
    pub fn check(&self, resource: &ServedResource) -> Result<(), StatusError> {
        let custom = resource.custom.is_some();
        for FieldTerm { field, .. } in &self.terms {
            let known = match field.as_str() {
                "metadata.name" => true,
                "metadata.namespace" => resource.namespaced || !custom,
                other => resource.selectable.iter().any(|selectable| &**selectable == other),
            };
            if !known && (custom || !resource.selectable.is_empty()) {
                return Err(StatusError::bad_request(format!("field label not supported: {field}")));
            }
            if !known {
                let field = go_format::quote(field);
                let message =
                    format!(r#"{field} is not a known field selector: only "metadata.name", "metadata.namespace""#);
                return Err(StatusError::bad_request(message));
            }
        }
        Ok(())
    }

    /// Whether an object matches; `has` tells whether a field has a value.
    pub fn matches(&self, has: impl Fn(&str, &str) -> bool) -> bool {
        self.terms.iter().all(|term| has(&term.field, &term.value) != term.not)
    }

    /// Whether an object matches by the texts at the fields' paths, or by the values that the resource's
    /// strategy returns.
    pub fn matches_object(&self, object: &Value, resource: &ServedResource) -> bool {
        self.matches(|field, value| match resource.strategy.field_value(object, field) {
            Some(found) => found == value,
            None => text_at(object, field, value),
        })
    }
}

/// Whether the text at a path is `value`. Numbers and booleans have their JSON form; absent values are empty.
fn text_at(object: &Value, path: &str, value: &str) -> bool {
    match path.split('.').try_fold(object, |at, step| at.get(step)) {
        None | Some(Value::Null) => value.is_empty(),
        Some(Value::String(text)) => text == value,
        Some(Value::Bool(on)) => value == if *on { "true" } else { "false" },
        Some(Value::Number(number)) => number.to_string() == value,
        Some(_) => false,
    }
}

/// Splits at commas that are not escaped.
fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        if byte == b',' && !escaped {
            parts.extend(text.get(start..at));
            start = at + 1;
        }
        escaped = byte == b'\\' && !escaped;
    }
    parts.extend(text.get(start..));
    parts
}

/// The first operator of a term: the text before it, whether it is `!=`, and the text after it.
fn operator(term: &str) -> Option<(&str, bool, &str)> {
    let (before, after) = term.split_once('=')?;
    match before.strip_suffix('!') {
        Some(field) => Some((field, true, after)),
        None => Some((before, false, after.strip_prefix('=').unwrap_or(after))),
    }
}

fn unescape(text: &str) -> Result<String, String> {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => plain.push(c),
                other => {
                    let c = other.map(String::from).unwrap_or_default();
                    return Err(format!("invalid field selector: invalid escape sequence: \\{c}"));
                }
            },
            // Go prints the number of the character.
            ',' | '=' => {
                let number = u32::from(c);
                return Err(format!("invalid field selector: unescaped character in value: {number}"));
            }
            c => plain.push(c),
        }
    }
    Ok(plain)
}
