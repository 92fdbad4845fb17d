//! Writes YAML that every parser reads alike.

use std::fmt::Write as _;

/// A value of a document. Maps keep the order of insertion.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum YamlValue {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    /// A text in which references are expanded.
    Text(String),
    List(Vec<YamlValue>),
    Map(YamlMap),
    /// A value that no document can contain, and why.
    Unwritable(&'static str),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct YamlMap(Vec<(String, YamlValue)>);

impl YamlMap {
    pub(crate) fn with_field(mut self, key: impl Into<String>, value: impl Into<YamlValue>) -> Self {
        self.0.push((key.into(), value.into()));
        self
    }

    /// Adds a field if it has a value.
    pub(crate) fn with_optional(self, key: &str, value: Option<impl Into<YamlValue>>) -> Self {
        match value {
            Some(value) => self.with_field(key, value),
            None => self,
        }
    }

    /// Adds a list unless it is empty.
    pub(crate) fn with_list<T: Into<YamlValue>>(self, key: &str, items: impl IntoIterator<Item = T>) -> Self {
        let items: Vec<YamlValue> = items.into_iter().map(Into::into).collect();
        if items.is_empty() { self } else { self.with_field(key, YamlValue::List(items)) }
    }

    /// Adds a flag if it is true.
    pub(crate) fn with_flag(self, key: &str, value: bool) -> Self {
        self.with_optional(key, value.then_some(true))
    }

    /// Adds a field unless it has its default value.
    pub(crate) fn with_changed<T: PartialEq + Into<YamlValue>>(self, key: &str, value: T, default: T) -> Self {
        if value == default { self } else { self.with_field(key, value) }
    }

    /// Adds a text unless it is empty.
    pub(crate) fn with_text(self, key: &str, text: &str) -> Self {
        self.with_changed(key, text, "")
    }

    /// Adds a section unless it has no fields.
    pub(crate) fn with_section(self, key: &str, section: YamlMap) -> Self {
        if section.is_empty() { self } else { self.with_field(key, section) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The path of the first value that cannot be written, and the reason.
    pub(super) fn find_unwritable(&self) -> Option<(String, &'static str)> {
        self.0.iter().find_map(|(key, value)| value.find_unwritable(key))
    }

    /// Renders the value as a document.
    pub(crate) fn to_yaml(&self) -> String {
        let mut out = String::new();
        entries(&mut out, self, 0);
        out
    }
}

impl<K: Into<String>, V: Into<YamlValue>> FromIterator<(K, V)> for YamlMap {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        Self(entries.into_iter().map(|(key, value)| (key.into(), value.into())).collect())
    }
}

impl From<YamlMap> for YamlValue {
    fn from(map: YamlMap) -> Self {
        Self::Map(map)
    }
}

impl YamlValue {
    fn find_unwritable(&self, path: &str) -> Option<(String, &'static str)> {
        let below = |(inner, reason): (String, &'static str)| (format!("{path}::{inner}"), reason);
        match self {
            Self::Unwritable(reason) => Some((path.to_owned(), reason)),
            Self::Map(map) => map.find_unwritable().map(below),
            Self::List(items) => {
                let found = |(index, item): (usize, &Self)| item.find_unwritable(&index.to_string());
                items.iter().enumerate().find_map(found).map(below)
            }
            Self::Null | Self::Bool(_) | Self::Int(_) | Self::Float(_) | Self::Text(_) => None,
        }
    }
}

impl From<bool> for YamlValue {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for YamlValue {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<i32> for YamlValue {
    fn from(value: i32) -> Self {
        Self::Int(value.into())
    }
}

impl From<u32> for YamlValue {
    fn from(value: u32) -> Self {
        Self::Int(value.into())
    }
}

impl From<u16> for YamlValue {
    fn from(value: u16) -> Self {
        Self::Int(value.into())
    }
}

/// Larger numbers than a document can contain are its largest.
impl From<u64> for YamlValue {
    fn from(value: u64) -> Self {
        Self::Int(value.try_into().unwrap_or(i64::MAX))
    }
}

impl From<usize> for YamlValue {
    fn from(value: usize) -> Self {
        Self::Int(value.try_into().unwrap_or(i64::MAX))
    }
}

/// With as many digits as it takes to read the same number of 32 bits.
impl From<f32> for YamlValue {
    fn from(value: f32) -> Self {
        Self::Float(value.to_string().parse().unwrap_or_else(|_| value.into()))
    }
}

impl From<f64> for YamlValue {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

fn entries(out: &mut String, map: &YamlMap, depth: usize) {
    for (place, (key, value)) in map.0.iter().enumerate() {
        // The first field of an item is on the line of its dash.
        if place > 0 || !out.ends_with("- ") {
            indent(out, depth);
        }
        scalar(out, key);
        out.push(':');
        nested(out, value, depth);
    }
}

/// Writes the value after a key.
fn nested(out: &mut String, value: &YamlValue, depth: usize) {
    match value {
        YamlValue::Map(map) if !map.0.is_empty() => {
            out.push('\n');
            entries(out, map, depth + 1);
        }
        YamlValue::List(items) if !items.is_empty() => {
            out.push('\n');
            for item in items {
                indent(out, depth);
                out.push_str("- ");
                match item {
                    YamlValue::Map(map) if !map.0.is_empty() => entries(out, map, depth + 1),
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

/// Writes a value on one line. Nested lists are written as JSON.
fn inline(out: &mut String, value: &YamlValue) {
    match value {
        YamlValue::Bool(value) => _ = write!(out, "{value}"),
        YamlValue::Int(value) => _ = write!(out, "{value}"),
        YamlValue::Float(value) => _ = write!(out, "{value:?}"),
        YamlValue::Text(text) => scalar(out, text),
        YamlValue::Null | YamlValue::Unwritable(_) => out.push_str("null"),
        YamlValue::Map(map) => {
            out.push('{');
            separated(out, map.0.iter(), |out, (key, value)| {
                scalar(out, key);
                out.push_str(": ");
                inline(out, value);
            });
            out.push('}');
        }
        YamlValue::List(items) => {
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

/// Writes a text, without quotes only if no parser could misread it.
fn scalar(out: &mut String, text: &str) {
    /// Words that some parser does not read as text.
    const RESERVED_WORDS: [&str; 9] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"];
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '_'))
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/_.-".contains(&byte))
        && !RESERVED_WORDS.iter().any(|word| word.eq_ignore_ascii_case(text));
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
