//! `redaction`: its output, as an independent decoder reads it.

use bytes::Bytes;
use kubewake_collector::fuzzing;
use kubewake_otlp::Signal;
use opentelemetry_proto::tonic::{
    collector::{
        logs::v1::ExportLogsServiceRequest, metrics::v1::ExportMetricsServiceRequest,
        trace::v1::ExportTraceServiceRequest,
    },
    common::v1::{AnyValue, KeyValue, any_value::Value},
    metrics::v1::{Metric, metric::Data},
};
use prost::Message as _;

use super::processor;
use crate::{choice, memory::bounded, otlp::read_by_prost};

/// The text that must be removed.
const SECRET: &str = "4111";

/// No attribute in the output of `redaction` that prost reads matches a blocked value.
pub(super) fn redaction(data: &[u8]) {
    let (choice, request) = choice(data);
    let signal = Signal::ALL[choice % 3];
    let settings = "redaction: {allow_all_keys: true, redact_all_types: true, blocked_values: ['4111']}";
    let Ok(summary) = kubewake_otlp::scan(signal, request) else { return };
    let request = Bytes::copy_from_slice(request);
    let items = summary.items;
    let settings = processor(settings);
    let mapped =
        bounded("redaction", request.len(), 64, 1 << 20, || fuzzing::process(settings, signal, request.clone(), items));
    let Some(out) = mapped else { return };
    kubewake_otlp::scan(signal, &out).expect("what is handed on is a request");
    // Invalid UTF-8 passes unchanged, and prost does not read it.
    if read_by_prost(signal, &request).is_some() {
        let after = read_by_prost(signal, &out).expect("prost reads what is handed on");
        assert_no_secret(signal, &after);
    }
}

/// Checks everything that the processor documents to cover: attributes of resources, scopes, records, points
/// and events, and log bodies.
fn assert_no_secret(signal: Signal, request: &[u8]) {
    let mut texts = Vec::new();
    attribute_texts(signal, request, &mut texts);
    for text in texts {
        assert!(!text.contains(SECRET), "{text:?} was to be masked");
    }
}

fn attribute_texts(signal: Signal, request: &[u8], texts: &mut Vec<String>) {
    fn value(of: &AnyValue, texts: &mut Vec<String>) {
        match &of.value {
            Some(Value::StringValue(text)) => texts.push(text.clone()),
            Some(Value::ArrayValue(list)) => list.values.iter().for_each(|item| value(item, texts)),
            Some(Value::KvlistValue(list)) => attributes(&list.values, texts),
            _ => {}
        }
    }
    fn attributes(of: &[KeyValue], texts: &mut Vec<String>) {
        of.iter().filter_map(|pair| pair.value.as_ref()).for_each(|of| value(of, texts));
    }
    match signal {
        Signal::Traces => {
            let request = ExportTraceServiceRequest::decode(request).expect("prost wrote it");
            for resource in &request.resource_spans {
                attributes(resource.resource.as_ref().map_or(&[][..], |of| &of.attributes), texts);
                for scope in &resource.scope_spans {
                    attributes(scope.scope.as_ref().map_or(&[][..], |of| &of.attributes), texts);
                    for span in &scope.spans {
                        attributes(&span.attributes, texts);
                        span.events.iter().for_each(|event| attributes(&event.attributes, texts));
                    }
                }
            }
        }
        Signal::Logs => {
            let request = ExportLogsServiceRequest::decode(request).expect("prost wrote it");
            for resource in &request.resource_logs {
                attributes(resource.resource.as_ref().map_or(&[][..], |of| &of.attributes), texts);
                for scope in &resource.scope_logs {
                    attributes(scope.scope.as_ref().map_or(&[][..], |of| &of.attributes), texts);
                    for record in &scope.log_records {
                        attributes(&record.attributes, texts);
                        record.body.iter().for_each(|body| value(body, texts));
                    }
                }
            }
        }
        Signal::Metrics => {
            let request = ExportMetricsServiceRequest::decode(request).expect("prost wrote it");
            for resource in &request.resource_metrics {
                attributes(resource.resource.as_ref().map_or(&[][..], |of| &of.attributes), texts);
                for scope in &resource.scope_metrics {
                    attributes(scope.scope.as_ref().map_or(&[][..], |of| &of.attributes), texts);
                    scope.metrics.iter().flat_map(point_attributes).for_each(|of| attributes(of, texts));
                }
            }
        }
    }
}

fn point_attributes(metric: &Metric) -> Vec<&[KeyValue]> {
    let Some(data) = &metric.data else { return Vec::new() };
    match data {
        Data::Gauge(data) => data.data_points.iter().map(|point| &point.attributes[..]).collect(),
        Data::Sum(data) => data.data_points.iter().map(|point| &point.attributes[..]).collect(),
        Data::Histogram(data) => data.data_points.iter().map(|point| &point.attributes[..]).collect(),
        Data::ExponentialHistogram(data) => data.data_points.iter().map(|point| &point.attributes[..]).collect(),
        Data::Summary(data) => data.data_points.iter().map(|point| &point.attributes[..]).collect(),
    }
}
