//! Conversion between JSON and CEL values.

use std::{collections::HashMap, sync::Arc};

use kube_cel::cel::{
    Value as CelValue,
    objects::{Key, Map, OptionalValue},
};
use serde_json::{Number, Value};

/// A value without a schema: fields keep their names, numbers have the type of their notation.
pub fn plain(value: &Value) -> CelValue {
    match value {
        Value::Null => CelValue::Null,
        Value::Bool(bool) => CelValue::Bool(*bool),
        Value::Number(number) => self::number(number),
        Value::String(text) => string(text),
        Value::Array(items) => CelValue::List(Arc::new(items.iter().map(plain).collect())),
        Value::Object(fields) => map(fields.iter().map(|(name, value)| (name.clone(), plain(value)))),
    }
}

/// A value that may be absent.
pub fn optional(value: Option<CelValue>) -> CelValue {
    CelValue::Opaque(Arc::new(value.map_or_else(OptionalValue::none, OptionalValue::of)))
}

pub(crate) fn string(text: &str) -> CelValue {
    CelValue::String(Arc::new(text.to_owned()))
}

pub(crate) fn map(entries: impl Iterator<Item = (String, CelValue)>) -> CelValue {
    let map: HashMap<Key, CelValue> = entries.map(|(name, value)| (Key::String(Arc::new(name)), value)).collect();
    CelValue::Map(Map { map: Arc::new(map) })
}

/// A value as JSON of about the same size, from which the cost of its use is computed. Types without a JSON
/// form become null.
pub fn measured(value: &CelValue) -> Value {
    match value {
        CelValue::Bool(bool) => (*bool).into(),
        CelValue::Int(int) => (*int).into(),
        CelValue::UInt(uint) => (*uint).into(),
        CelValue::Float(float) => (*float).into(),
        CelValue::String(text) => text.as_str().into(),
        CelValue::Bytes(bytes) => Value::String(".".repeat(bytes.len())),
        CelValue::List(items) => items.iter().map(measured).collect(),
        CelValue::Map(map) => {
            let name = |key: &Key| match key {
                Key::String(name) => name.to_string(),
                other => format!("{other:?}"),
            };
            Value::Object(map.map.iter().map(|(key, value)| (name(key), measured(value))).collect())
        }
        _ => Value::Null,
    }
}

fn number(number: &Number) -> CelValue {
    match (number.as_i64(), number.as_u64()) {
        (Some(int), _) => CelValue::Int(int),
        (_, Some(uint)) => CelValue::UInt(uint),
        _ => CelValue::Float(number.as_f64().unwrap_or(f64::NAN)),
    }
}
