//! Values as text, as the Collector writes them.

use base64::{Engine, prelude::BASE64_STANDARD};
use kubewake_otlp::view::{AnyValue, KeyValue, lossy};
use serde_json::{Map, Value};

use crate::telemetry::shortest;

/// How deep values are followed. Beyond it nothing is shown, so that no sender can use up the stack.
const MAX_DEPTH: usize = 64;

/// A value without its type: text as it is, lists and maps in JSON.
pub(crate) fn plain(value: AnyValue<'_>) -> String {
    match value {
        AnyValue::None => String::new(),
        AnyValue::String(text) => lossy(text).into_owned(),
        AnyValue::Bool(value) => value.to_string(),
        AnyValue::Int(value) => value.to_string(),
        AnyValue::Double(value) => shortest(value, 21),
        AnyValue::Bytes(bytes) => BASE64_STANDARD.encode(bytes),
        AnyValue::Array(_) | AnyValue::KeyValueList(_) => json(value, MAX_DEPTH).to_string(),
    }
}

fn json(value: AnyValue<'_>, depth: usize) -> Value {
    let Some(depth) = depth.checked_sub(1) else { return Value::Null };
    match value {
        AnyValue::None => Value::Null,
        AnyValue::Bool(value) => value.into(),
        AnyValue::Int(value) => value.into(),
        // JSON has no text for infinity: it becomes null.
        AnyValue::Double(value) => value.into(),
        AnyValue::String(_) | AnyValue::Bytes(_) => plain(value).into(),
        AnyValue::Array(values) => values.map(|content| json(AnyValue::new(content), depth)).collect(),
        AnyValue::KeyValueList(pairs) => {
            let pair = |pair: KeyValue<'_>| (lossy(pair.key()).into_owned(), json(pair.value(), depth));
            Value::Object(pairs.map(pair).collect::<Map<_, _>>())
        }
    }
}
