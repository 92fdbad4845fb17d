//! Writes documents: the settings of components as the fields that the decoder reads them from.
//!
//! # Guarantees
//!
//! - The decoder reads the same settings from the fields that a component writes. Fields at their defaults are left
//!   out.
//! - The same settings are the same text, byte for byte.
//! - Texts cannot break out of their place: they are quoted where YAML needs it, and contain no references unless they
//!   have a [`TextReference`].
//! - A secret is written only as its reference. A document with a secret that has none is refused.
//!
//! # Does not
//!
//! - Restore the references of a loaded document: the loader expands them.

mod document;
mod written_section;
mod yaml;

#[cfg(test)]
mod tests;

use std::{path::Path, time::Duration};

pub(crate) use self::yaml::{YamlMap, YamlValue};
pub use self::{document::EncodeError, written_section::WrittenSection};
use kubewake_otlp::Value;

use crate::{ComponentId, ConfigText, RegexPattern, SecretString, TextReference};

impl From<&str> for YamlValue {
    fn from(text: &str) -> Self {
        Self::Text(escape(text))
    }
}

impl From<&String> for YamlValue {
    fn from(text: &String) -> Self {
        Self::Text(escape(text))
    }
}

impl From<&Path> for YamlValue {
    fn from(path: &Path) -> Self {
        Self::Text(escape(&path.to_string_lossy()))
    }
}

impl From<&ComponentId> for YamlValue {
    fn from(id: &ComponentId) -> Self {
        id.as_str().into()
    }
}

impl From<&RegexPattern> for YamlValue {
    fn from(pattern: &RegexPattern) -> Self {
        pattern.as_str().into()
    }
}

impl From<&TextReference> for YamlValue {
    fn from(reference: &TextReference) -> Self {
        Self::Text(match reference {
            TextReference::File(path) => format!("${{file:{}}}", path.display()),
            TextReference::Env { name, rest } => format!("${{env:{name}}}{}", escape(rest)),
        })
    }
}

impl From<&ConfigText> for YamlValue {
    fn from(text: &ConfigText) -> Self {
        text.reference().map_or_else(|| text.as_str().into(), Self::from)
    }
}

impl From<&SecretString> for YamlValue {
    fn from(secret: &SecretString) -> Self {
        secret.reference().map_or(Self::Unwritable("is a secret without a reference"), Self::from)
    }
}

/// Go's notation without loss: `200ms`, `5s`, `1.5s`.
impl From<Duration> for YamlValue {
    fn from(duration: Duration) -> Self {
        let seconds = duration.as_secs();
        let nanos = duration.subsec_nanos();
        Self::Text(match nanos {
            0 => format!("{seconds}s"),
            nanos if seconds == 0 && nanos % 1_000_000 == 0 => format!("{}ms", nanos / 1_000_000),
            nanos => format!("{seconds}.{nanos:09}").trim_end_matches('0').to_owned() + "s",
        })
    }
}

impl From<&Value> for YamlValue {
    fn from(value: &Value) -> Self {
        match value {
            Value::String(text) => text.into(),
            Value::Bool(value) => Self::Bool(*value),
            Value::Int(value) => Self::Int(*value),
            Value::Double(value) => Self::Float(*value),
            Value::Array(items) => Self::List(items.iter().map(Self::from).collect()),
            Value::KeyValueList(pairs) => Self::Map(pairs.iter().map(|(key, value)| (key, value)).collect()),
            Value::Bytes(_) | Value::Encoded(_) => Self::Unwritable("is in bytes"),
        }
    }
}

/// Escapes a text for places where references are expanded, such as a file that a [`TextReference::File`] names:
/// dollars are doubled.
pub fn escape(text: &str) -> String {
    text.replace('$', "$$")
}

/// The word for a value in a table of keywords: the first one, as several may mean the same.
pub(crate) fn keyword<T: PartialEq>(known: &[(&'static str, T)], value: &T) -> &'static str {
    known.iter().find(|(_, known)| known == value).map(|(word, _)| *word).unwrap_or_default()
}
