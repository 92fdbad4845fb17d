//! Reads requests as other programs do.

#![allow(dead_code, clippy::unwrap_used)]

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use prost::Message;

/// The records of a request, which has one resource and one scope.
pub fn read_records(body: &[u8]) -> Vec<LogRecord> {
    let request = ExportLogsServiceRequest::decode(body).unwrap();
    let [resource] = <[_; 1]>::try_from(request.resource_logs).unwrap();
    let [scope] = <[_; 1]>::try_from(resource.scope_logs).unwrap();
    scope.log_records
}

/// A value as text, close to JSON.
pub fn show(value: Option<&AnyValue>) -> String {
    match value.and_then(|value| value.value.as_ref()) {
        None => "null".to_owned(),
        Some(Value::StringValue(text)) => format!("{text:?}"),
        Some(Value::BoolValue(value)) => value.to_string(),
        Some(Value::IntValue(value)) => value.to_string(),
        Some(Value::DoubleValue(value)) => format!("{value:?}"),
        Some(Value::BytesValue(bytes)) => format!("{bytes:?}"),
        Some(Value::ArrayValue(list)) => {
            format!("[{}]", list.values.iter().map(|value| show(Some(value))).collect::<Vec<_>>().join(","))
        }
        Some(Value::KvlistValue(map)) => format!("{{{}}}", show_attributes(&map.values)),
        Some(other) => format!("{other:?}"),
    }
}

/// Attributes as text, in their order.
pub fn show_attributes(attributes: &[KeyValue]) -> String {
    attributes.iter().map(|kv| format!("{}={}", kv.key, show(kv.value.as_ref()))).collect::<Vec<_>>().join(",")
}
