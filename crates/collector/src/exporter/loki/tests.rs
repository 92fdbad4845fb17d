mod attributes;
mod delivery;
mod limits;
mod properties;
mod strict_loki;

use std::sync::Arc;

use bytes::Bytes;
use kubewake_config::{
    FixedSources, load,
    model::{ExporterConfig, LokiExporter},
};
use kubewake_otlp::Signal;
use opentelemetry_proto::tonic::{
    collector::logs::v1::ExportLogsServiceRequest,
    common::v1::{AnyValue, ArrayValue, KeyValue, KeyValueList, any_value::Value},
    logs::v1::{LogRecord, ResourceLogs, ScopeLogs},
    resource::v1::Resource,
};
use prost::Message;

use super::*;
use crate::core::{Charge, Part, SendError};
use strict_loki::{Limits, Line, Manner, StrictLoki};

/// The time of the first record of a test, in nanoseconds.
const TIME: u64 = 1_700_000_000_000_000_000;

fn settings(url: &str, more: &str) -> LokiExporter {
    let text = format!(
        "receivers: {{otlp: {{protocols: {{grpc: }}}}}}\nexporters: {{loki: {{endpoint: '{url}'{more}}}}}\n\
         service: {{pipelines: {{logs: {{receivers: [otlp], exporters: [loki]}}}}}}"
    );
    let loaded = load(&text, &FixedSources::new()).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    match loaded.document.exporters.into_values().next() {
        Some(ExporterConfig::Loki(exporter)) => *exporter,
        other => panic!("{other:?}"),
    }
}

/// An exporter with these settings beside its endpoint, each after a comma.
fn exporter(loki: &StrictLoki, more: &str) -> Arc<dyn Exporter> {
    build(&settings(&loki.url(), more), None).unwrap().exporter
}

fn text(value: &str) -> AnyValue {
    AnyValue { value: Some(Value::StringValue(value.into())) }
}

fn number(value: i64) -> AnyValue {
    AnyValue { value: Some(Value::IntValue(value)) }
}

fn list(values: Vec<AnyValue>) -> AnyValue {
    AnyValue { value: Some(Value::ArrayValue(ArrayValue { values })) }
}

fn map(values: Vec<(&str, AnyValue)>) -> AnyValue {
    AnyValue { value: Some(Value::KvlistValue(KeyValueList { values: attributes(values) })) }
}

fn attributes(pairs: Vec<(&str, AnyValue)>) -> Vec<KeyValue> {
    let pair = |(key, value): (&str, AnyValue)| KeyValue { key: key.into(), value: Some(value), ..KeyValue::default() };
    pairs.into_iter().map(pair).collect()
}

/// A record of this line, so many nanoseconds after the start.
fn record(after: u64, line: &str) -> LogRecord {
    LogRecord { time_unix_nano: TIME + after, body: Some(text(line)), ..LogRecord::default() }
}

/// The records of a resource with these attributes.
fn resource(pairs: Vec<(&str, AnyValue)>, log_records: Vec<LogRecord>) -> ResourceLogs {
    ResourceLogs {
        resource: Some(Resource { attributes: attributes(pairs), ..Resource::default() }),
        scope_logs: vec![ScopeLogs { log_records, ..ScopeLogs::default() }],
        ..ResourceLogs::default()
    }
}

/// The records of a namespace.
fn namespace(name: &str, log_records: Vec<LogRecord>) -> ResourceLogs {
    resource(vec![("k8s.namespace.name", text(name))], log_records)
}

/// A batch with a request for each of these.
fn batch(requests: Vec<ResourceLogs>) -> Batch {
    let mut batch = Batch::empty(Signal::Logs);
    for resource_logs in requests {
        let items = resource_logs.scope_logs.iter().map(|scope| scope.log_records.len()).sum();
        let bytes = ExportLogsServiceRequest { resource_logs: vec![resource_logs] }.encode_to_vec();
        batch.push(Part::new(Bytes::from(bytes), items, Arc::default(), Arc::new(Charge::exempt())));
    }
    batch
}

/// Sends a batch, and what is left of it again, until nothing is left; returns the errors and the last result.
async fn deliver(exporter: &dyn Exporter, batch: Batch) -> (Vec<SendError>, SendSuccess) {
    let mut rest = batch;
    let mut errors = Vec::new();
    loop {
        match exporter.send(&rest).await {
            Ok(success) => return (errors, success),
            Err(mut error) => {
                assert!(error.retryable && errors.len() < 20, "{error}");
                if let Some(partial) = error.partial.take() {
                    rest = partial.rest;
                }
                errors.push(error);
            }
        }
    }
}

fn line(after: u64, text: &str) -> Line {
    Line { time: TIME + after, text: text.into(), metadata: Default::default() }
}
