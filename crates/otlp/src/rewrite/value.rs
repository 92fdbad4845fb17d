//! Values of attribute edits.

use bytes::Bytes;

use crate::field_numbers::{any_value, key_value};
use crate::wire::{put_bool, put_bytes, put_double, put_uint};

/// A value that an attribute can be set to.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    String(String),
    Bool(bool),
    Int(i64),
    Double(f64),
    Bytes(Bytes),
    Array(Vec<Value>),
    KeyValueList(Vec<(String, Value)>),
    /// The content of an `AnyValue` message, as returned by
    /// [`KeyValue::raw_value`](crate::view::KeyValue::raw_value).
    Encoded(Bytes),
}

impl Value {
    /// Writes the content of the `AnyValue` message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Value::String(text) => put_bytes(out, any_value::STRING, text.as_bytes()),
            Value::Bool(value) => put_bool(out, any_value::BOOL, *value),
            Value::Int(value) => put_uint(out, any_value::INT, *value as u64),
            Value::Double(value) => put_double(out, any_value::DOUBLE, *value),
            Value::Bytes(bytes) => put_bytes(out, any_value::BYTES, bytes),
            Value::Array(values) => put_bytes(out, any_value::ARRAY, &encode_array(values)),
            Value::KeyValueList(values) => put_bytes(out, any_value::KVLIST, &encode_list(values)),
            Value::Encoded(content) => out.extend_from_slice(content),
        }
    }

    /// The content of the `AnyValue` message.
    pub fn encoded(&self) -> Bytes {
        if let Value::Encoded(content) = self {
            return content.clone();
        }
        let mut out = Vec::new();
        self.encode(&mut out);
        Bytes::from(out)
    }
}

fn encode_array(values: &[Value]) -> Vec<u8> {
    let mut out = Vec::new();
    for value in values {
        put_bytes(&mut out, any_value::VALUES, &value.encoded());
    }
    out
}

fn encode_list(values: &[(String, Value)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (key, value) in values {
        let mut pair = Vec::new();
        put_bytes(&mut pair, key_value::KEY, key.as_bytes());
        put_bytes(&mut pair, key_value::VALUE, &value.encoded());
        put_bytes(&mut out, any_value::VALUES, &pair);
    }
    out
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::String(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::String(text)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Value::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Value::Int(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Value::Double(value)
    }
}
