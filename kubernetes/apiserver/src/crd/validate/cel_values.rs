//! Converts values to CEL by their schema.
//!
//! Field names are escaped, numbers have the type in the schema, strings with a format become times, durations
//! or bytes. Undeclared fields are not visible; of `metadata` only the names are.

use std::sync::{Arc, LazyLock};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Map, Value};

use super::format::is_time;
use crate::{
    cel::{CelValue, EvaluationScope, Expression, plain},
    schema::{ScalarType, Schema, SchemaShape},
};

/// Reserved words of CEL, which cannot be field names.
const RESERVED_IDENTIFIERS: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// A value of this schema. `is_resource`: whether it has its own metadata.
pub(super) fn cel_value(value: &Value, schema: &Schema, is_resource: bool) -> CelValue {
    match (value, &schema.shape) {
        (Value::Object(object), SchemaShape::Object { fields, embedded, .. }) => {
            let is_resource = is_resource || *embedded;
            let entries = object.iter().filter_map(|(name, value)| {
                let of = fields.get(name.as_str())?;
                let value =
                    if is_resource && name == "metadata" { metadata(value) } else { self::cel_value(value, of, false) };
                Some((escape_identifier(name), value))
            });
            map(entries)
        }
        (Value::Object(object), SchemaShape::Map { values, .. }) => {
            map(object.iter().map(|(name, value)| (name.clone(), self::cel_value(value, values, false))))
        }
        (Value::Array(list), SchemaShape::List { items, .. }) => {
            CelValue::List(Arc::new(list.iter().map(|item| self::cel_value(item, items, false)).collect()))
        }
        (Value::Number(number), SchemaShape::Scalar(ScalarType::Double)) => {
            CelValue::Float(number.as_f64().unwrap_or(f64::NAN))
        }
        (Value::Number(number), SchemaShape::Scalar(ScalarType::Int32 | ScalarType::Int64 | ScalarType::Integer))
            if number.is_f64() =>
        {
            number.as_f64().map_or(CelValue::Null, whole)
        }
        (Value::String(text), SchemaShape::Scalar(ScalarType::String)) => {
            let format = schema.rules.as_ref().and_then(|rules| rules.format.as_deref()).unwrap_or_default();
            formatted(text, format, value).unwrap_or_else(|| plain(value))
        }
        _ => plain(value),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "validated to be whole; what is too large saturates")]
fn whole(number: f64) -> CelValue {
    CelValue::Int(number as i64)
}

fn metadata(value: &Value) -> CelValue {
    let fields = value.as_object().into_iter().flat_map(Map::iter);
    let names = fields.filter(|(name, _)| matches!(name.as_str(), "name" | "generateName"));
    map(names.map(|(name, value)| (name.clone(), plain(value))))
}

fn map(entries: impl Iterator<Item = (String, CelValue)>) -> CelValue {
    crate::cel::map(entries)
}

fn formatted(text: &str, format: &str, value: &Value) -> Option<CelValue> {
    static DURATION: LazyLock<Option<Expression>> = LazyLock::new(|| Expression::compile("duration(text)").ok());
    static TIME: LazyLock<Option<Expression>> = LazyLock::new(|| Expression::compile("timestamp(text)").ok());
    match format {
        "byte" => BASE64_STANDARD.decode(text).ok().map(|bytes| CelValue::Bytes(Arc::new(bytes))),
        "duration" => convert(DURATION.as_ref()?, text),
        "date" => convert(TIME.as_ref()?, &format!("{text}T00:00:00Z")),
        _ if is_time(format, value) => convert(TIME.as_ref()?, text),
        _ => None,
    }
}

fn convert(by: &Expression, text: &str) -> Option<CelValue> {
    by.evaluate(&EvaluationScope::new([("text", CelValue::String(Arc::new(text.to_owned())))])).ok()
}

/// The escaped name of a field.
pub(crate) fn escape_identifier(name: &str) -> String {
    if RESERVED_IDENTIFIERS.contains(&name) {
        return format!("__{name}__");
    }
    if !name.contains(['_', '.', '-', '/']) {
        return name.to_owned();
    }
    let name = name.replace("__", "__underscores__");
    name.replace('.', "__dot__").replace('-', "__dash__").replace('/', "__slash__")
}
