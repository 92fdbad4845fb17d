//! Log records for tests of exporters.

use std::sync::Arc;

use bytes::Bytes;
use kubewake_otlp::Signal;
use opentelemetry_proto::tonic::{
    collector::logs::v1::ExportLogsServiceRequest,
    common::v1::{AnyValue, ArrayValue, KeyValue, KeyValueList, any_value::Value},
    logs::v1::{LogRecord, ResourceLogs, ScopeLogs},
    resource::v1::Resource,
};
use prost::Message;

use crate::core::{Batch, Charge, Part};

/// The time of the first record of a test, in nanoseconds.
pub(crate) const TIME: u64 = 1_700_000_000_000_000_000;

pub(crate) fn text(value: &str) -> AnyValue {
    AnyValue { value: Some(Value::StringValue(value.into())) }
}

pub(crate) fn number(value: i64) -> AnyValue {
    AnyValue { value: Some(Value::IntValue(value)) }
}

pub(crate) fn list(values: Vec<AnyValue>) -> AnyValue {
    AnyValue { value: Some(Value::ArrayValue(ArrayValue { values })) }
}

pub(crate) fn map(values: Vec<(&str, AnyValue)>) -> AnyValue {
    AnyValue { value: Some(Value::KvlistValue(KeyValueList { values: attributes(values) })) }
}

pub(crate) fn attributes(pairs: Vec<(&str, AnyValue)>) -> Vec<KeyValue> {
    let pair = |(key, value): (&str, AnyValue)| KeyValue { key: key.into(), value: Some(value), ..KeyValue::default() };
    pairs.into_iter().map(pair).collect()
}

/// A record of this line, so many nanoseconds after the start.
pub(crate) fn record(after: u64, line: &str) -> LogRecord {
    LogRecord { time_unix_nano: TIME + after, body: Some(text(line)), ..LogRecord::default() }
}

/// The records of a resource with these attributes.
pub(crate) fn resource(pairs: Vec<(&str, AnyValue)>, log_records: Vec<LogRecord>) -> ResourceLogs {
    ResourceLogs {
        resource: Some(Resource { attributes: attributes(pairs), ..Resource::default() }),
        scope_logs: vec![ScopeLogs { log_records, ..ScopeLogs::default() }],
        ..ResourceLogs::default()
    }
}

/// The records of a namespace.
pub(crate) fn namespace(name: &str, log_records: Vec<LogRecord>) -> ResourceLogs {
    resource(vec![("k8s.namespace.name", text(name))], log_records)
}

/// A batch with a request for each of these.
pub(crate) fn batch(requests: Vec<ResourceLogs>) -> Batch {
    let mut batch = Batch::empty(Signal::Logs);
    for resource_logs in requests {
        let items = resource_logs.scope_logs.iter().map(|scope| scope.log_records.len()).sum();
        let bytes = ExportLogsServiceRequest { resource_logs: vec![resource_logs] }.encode_to_vec();
        batch.push(Part::new(Bytes::from(bytes), items, Arc::default(), Arc::new(Charge::exempt())));
    }
    batch
}
