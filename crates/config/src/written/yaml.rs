//! YAML that says the same to every reader.

use std::fmt::Write as _;

/// A value of a document that is being made. Maps keep the order in which they were filled.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Bool(bool),
    Int(i64),
    Float(f64),
    /// With references in it as they are expanded.
    Text(String),
    List(Vec<Value>),
    Map(Map),
}

/// Fields in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Map(Vec<(String, Value)>);

impl Map {
    pub(super) fn with(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.0.push((key.into(), value.into()));
        self
    }

    /// A field that is not there when there is nothing to say.
    pub(super) fn maybe(self, key: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    /// A list that is not there when it is empty.
    pub(super) fn list<T: Into<Value>>(self, key: &str, items: impl IntoIterator<Item = T>) -> Self {
        let items: Vec<Value> = items.into_iter().map(Into::into).collect();
        if items.is_empty() { self } else { self.with(key, Value::List(items)) }
    }

    /// A flag that is not there when it is false.
    pub(super) fn flag(self, key: &str, value: bool) -> Self {
        self.maybe(key, value.then_some(true))
    }

    /// The text of a document.
    pub(super) fn to_yaml(&self) -> String {
        let mut out = String::new();
        entries(&mut out, self, 0);
        out
    }
}

impl<K: Into<String>, V: Into<Value>> FromIterator<(K, V)> for Map {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        Self(entries.into_iter().map(|(key, value)| (key.into(), value.into())).collect())
    }
}

impl From<Map> for Value {
    fn from(map: Map) -> Self {
        Self::Map(map)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<i32> for Value {
    fn from(value: i32) -> Self {
        Self::Int(value.into())
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Self {
        Self::Int(value.into())
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

fn entries(out: &mut String, map: &Map, depth: usize) {
    for (place, (key, value)) in map.0.iter().enumerate() {
        // The first one of an item stands behind its dash.
        if place > 0 || !out.ends_with("- ") {
            indent(out, depth);
        }
        scalar(out, key);
        out.push(':');
        nested(out, value, depth);
    }
}

/// What stands behind a key.
fn nested(out: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Map(map) if !map.0.is_empty() => {
            out.push('\n');
            entries(out, map, depth + 1);
        }
        Value::List(items) if !items.is_empty() => {
            out.push('\n');
            for item in items {
                indent(out, depth);
                out.push_str("- ");
                match item {
                    Value::Map(map) if !map.0.is_empty() => entries(out, map, depth + 1),
                    item => {
                        inline(out, item);
                        out.push('\n');
                    }
                }
            }
        }
        value => {
            out.push(' ');
            inline(out, value);
            out.push('\n');
        }
    }
}

fn indent(out: &mut String, depth: usize) {
    out.extend(std::iter::repeat_n("  ", depth));
}

/// What has one line. Lists within lists are written as JSON has them.
fn inline(out: &mut String, value: &Value) {
    match value {
        Value::Bool(value) => _ = write!(out, "{value}"),
        Value::Int(value) => _ = write!(out, "{value}"),
        Value::Float(value) => _ = write!(out, "{value:?}"),
        Value::Text(text) => scalar(out, text),
        Value::Map(map) => {
            out.push('{');
            separated(out, map.0.iter(), |out, (key, value)| {
                scalar(out, key);
                out.push_str(": ");
                inline(out, value);
            });
            out.push('}');
        }
        Value::List(items) => {
            out.push('[');
            separated(out, items.iter(), inline);
            out.push(']');
        }
    }
}

fn separated<T>(out: &mut String, items: impl Iterator<Item = T>, each: impl Fn(&mut String, T)) {
    for (place, item) in items.enumerate() {
        if place > 0 {
            out.push_str(", ");
        }
        each(out, item);
    }
}

/// A text without quotes if no reader could take it for anything else.
fn scalar(out: &mut String, text: &str) {
    /// What some reader takes for something else than text.
    const WORDS: [&str; 9] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"];
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '_'))
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/_.-".contains(&byte))
        && !WORDS.iter().any(|word| word.eq_ignore_ascii_case(text));
    if plain {
        return out.push_str(text);
    }
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            ' '..='~' => out.push(c),
            c if c.is_alphanumeric() => out.push(c),
            c if u32::from(c) <= 0xffff => _ = write!(out, "\\u{:04x}", u32::from(c)),
            c => _ = write!(out, "\\U{:08x}", u32::from(c)),
        }
    }
    out.push('"');
}
