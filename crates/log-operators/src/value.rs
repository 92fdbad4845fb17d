//! Values of records.

use std::collections::BTreeMap;

use kubewake_otlp::Value;

/// Keys and values. Keys are in the order of their bytes.
pub type LogMap = BTreeMap<String, LogValue>;

/// A value of a body or of an attribute.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum LogValue {
    /// No value, such as JSON's `null`.
    #[default]
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    /// Text, which is UTF-8 unless the encoding of the file is `utf-8-raw`.
    Text(Vec<u8>),
    Bytes(Vec<u8>),
    List(Vec<LogValue>),
    Map(LogMap),
}

impl LogValue {
    /// The name of its type for messages.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "no value",
            Self::Bool(_) => "a boolean",
            Self::Int(_) | Self::Double(_) => "a number",
            Self::Text(_) => "a text",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
        }
    }

    /// The bytes that it and all within it hold, about.
    pub(crate) fn held_bytes(&self) -> usize {
        let inner = match self {
            Self::Text(text) | Self::Bytes(text) => text.len(),
            Self::List(items) => items.iter().map(Self::held_bytes).sum(),
            Self::Map(map) => map_bytes(map),
            _ => 0,
        };
        inner + size_of::<Self>()
    }
}

/// The bytes that a map holds, about.
pub(crate) fn map_bytes(map: &LogMap) -> usize {
    map.iter().map(|(key, value)| key.len() + size_of::<String>() + value.held_bytes()).sum()
}

impl From<&str> for LogValue {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for LogValue {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<&Value> for LogValue {
    /// A value of the settings.
    fn from(value: &Value) -> Self {
        match value {
            Value::String(text) => text.as_str().into(),
            Value::Bool(value) => Self::Bool(*value),
            Value::Int(value) => Self::Int(*value),
            Value::Double(value) => Self::Double(*value),
            Value::Bytes(bytes) => Self::Bytes(bytes.to_vec()),
            Value::Array(items) => Self::List(items.iter().map(Self::from).collect()),
            Value::KeyValueList(pairs) => {
                Self::Map(pairs.iter().map(|(key, value)| (key.clone(), Self::from(value))).collect())
            }
            // Settings have no encoded values.
            Value::Encoded(_) => Self::Null,
        }
    }
}
