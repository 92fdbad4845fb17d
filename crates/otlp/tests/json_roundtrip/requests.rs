//! Requests of every shape.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{
    AnyValue, ArrayValue, EntityRef, InstrumentationScope, KeyValue, KeyValueList,
};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::metrics::v1::exponential_histogram_data_point::Buckets;
use opentelemetry_proto::tonic::metrics::v1::summary_data_point::ValueAtQuantile;
use opentelemetry_proto::tonic::metrics::v1::{
    Exemplar, ExponentialHistogram, ExponentialHistogramDataPoint, Gauge, Histogram, HistogramDataPoint, Metric,
    NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum, Summary, SummaryDataPoint, exemplar, metric,
    number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::{Event, Link};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// NaN is not equal to itself, so there is none.
fn double() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>().prop_filter("equal to itself", |value| !value.is_nan()),
        Just(0.0),
        Just(f64::INFINITY),
        Just(f64::NEG_INFINITY),
    ]
}

fn uint() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), any::<u64>(), Just(u64::MAX)]
}

fn id(bytes: usize) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![Just(vec![]), vec(any::<u8>(), bytes)]
}

fn any_value() -> impl Strategy<Value = AnyValue> {
    let leaf = prop_oneof![
        Just(None),
        any::<String>().prop_map(|value| Some(Value::StringValue(value))),
        any::<bool>().prop_map(|value| Some(Value::BoolValue(value))),
        any::<i64>().prop_map(|value| Some(Value::IntValue(value))),
        double().prop_map(|value| Some(Value::DoubleValue(value))),
        vec(any::<u8>(), 0..20).prop_map(|value| Some(Value::BytesValue(value))),
        any::<i32>().prop_map(|value| Some(Value::StringValueStrindex(value))),
    ];
    leaf.prop_map(|value| AnyValue { value }).prop_recursive(4, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(|values| Value::ArrayValue(ArrayValue { values })),
            vec((any::<String>(), option::of(inner)), 0..3).prop_map(|entries| {
                let entry = |(key, value)| KeyValue { key, value, key_strindex: 0 };
                Value::KvlistValue(KeyValueList { values: entries.into_iter().map(entry).collect() })
            }),
        ]
        .prop_map(|value| AnyValue { value: Some(value) })
    })
}

prop_compose! {
    fn attribute()(key in any::<String>(), value in option::of(any_value()), key_strindex in -1..2i32) -> KeyValue {
        KeyValue { key, value, key_strindex }
    }
}

fn attributes() -> impl Strategy<Value = Vec<KeyValue>> {
    vec(attribute(), 0..3)
}

prop_compose! {
    fn entity()(
        schema_url in any::<String>(), r#type in any::<String>(), id_keys in vec(any::<String>(), 0..3),
        description_keys in vec(any::<String>(), 0..3),
    ) -> EntityRef {
        EntityRef { schema_url, r#type, id_keys, description_keys }
    }
}

prop_compose! {
    fn resource()(
        attributes in attributes(), dropped_attributes_count in any::<u32>(), entity_refs in vec(entity(), 0..2),
    ) -> Resource {
        Resource { attributes, dropped_attributes_count, entity_refs }
    }
}

prop_compose! {
    fn scope()(
        name in any::<String>(), version in any::<String>(), attributes in attributes(), dropped in any::<u32>(),
    ) -> InstrumentationScope {
        InstrumentationScope { name, version, attributes, dropped_attributes_count: dropped }
    }
}

prop_compose! {
    fn event()(
        time_unix_nano in uint(), name in any::<String>(), attributes in attributes(), dropped in any::<u32>(),
    ) -> Event {
        Event { time_unix_nano, name, attributes, dropped_attributes_count: dropped }
    }
}

prop_compose! {
    fn link()(
        trace_id in id(16), span_id in id(8), trace_state in any::<String>(), attributes in attributes(),
        dropped in any::<u32>(), flags in any::<u32>(),
    ) -> Link {
        Link { trace_id, span_id, trace_state, attributes, dropped_attributes_count: dropped, flags }
    }
}

prop_compose! {
    fn span()(
        (trace_id, span_id, parent_span_id) in (id(16), id(8), id(8)),
        (trace_state, name) in any::<(String, String)>(),
        (flags, kind) in any::<(u32, i32)>(),
        (start_time_unix_nano, end_time_unix_nano) in (uint(), uint()),
        (attributes, events, links) in (attributes(), vec(event(), 0..3), vec(link(), 0..3)),
        dropped in any::<[u32; 3]>(),
        status in option::of((any::<String>(), 0..4i32)),
    ) -> Span {
        Span {
            trace_id, span_id, parent_span_id, trace_state, name, flags, kind, start_time_unix_nano, end_time_unix_nano,
            attributes, events, links,
            dropped_attributes_count: dropped[0],
            dropped_events_count: dropped[1],
            dropped_links_count: dropped[2],
            status: status.map(|(message, code)| Status { message, code }),
        }
    }
}

prop_compose! {
    fn log_record()(
        (time_unix_nano, observed_time_unix_nano) in (uint(), uint()),
        (severity_number, flags, dropped_attributes_count) in (any::<i32>(), any::<u32>(), any::<u32>()),
        (severity_text, event_name) in any::<(String, String)>(),
        body in option::of(any_value()),
        attributes in attributes(),
        (trace_id, span_id) in (id(16), id(8)),
    ) -> LogRecord {
        LogRecord {
            time_unix_nano, observed_time_unix_nano, severity_number, flags, dropped_attributes_count, severity_text,
            event_name, body, attributes, trace_id, span_id,
        }
    }
}

prop_compose! {
    fn exemplar()(
        filtered_attributes in attributes(), time_unix_nano in uint(), span_id in id(8), trace_id in id(16),
        value in option::of(prop_oneof![
            double().prop_map(exemplar::Value::AsDouble),
            any::<i64>().prop_map(exemplar::Value::AsInt),
        ]),
    ) -> Exemplar {
        Exemplar { filtered_attributes, time_unix_nano, span_id, trace_id, value }
    }
}

prop_compose! {
    fn number_point()(
        attributes in attributes(), start_time_unix_nano in uint(), time_unix_nano in uint(),
        exemplars in vec(exemplar(), 0..2), flags in any::<u32>(),
        value in option::of(prop_oneof![
            double().prop_map(number_data_point::Value::AsDouble),
            any::<i64>().prop_map(number_data_point::Value::AsInt),
        ]),
    ) -> NumberDataPoint {
        NumberDataPoint { attributes, start_time_unix_nano, time_unix_nano, exemplars, flags, value }
    }
}

prop_compose! {
    fn histogram_point()(
        attributes in attributes(),
        (start_time_unix_nano, time_unix_nano, count) in (uint(), uint(), uint()),
        (sum, min, max) in (option::of(double()), option::of(double()), option::of(double())),
        bucket_counts in vec(uint(), 0..30),
        explicit_bounds in vec(double(), 0..30),
        exemplars in vec(exemplar(), 0..2),
        flags in any::<u32>(),
    ) -> HistogramDataPoint {
        HistogramDataPoint {
            attributes, start_time_unix_nano, time_unix_nano, count, sum, min, max, bucket_counts, explicit_bounds,
            exemplars, flags,
        }
    }
}

prop_compose! {
    fn buckets()(offset in any::<i32>(), bucket_counts in vec(uint(), 0..30)) -> Buckets {
        Buckets { offset, bucket_counts }
    }
}

prop_compose! {
    fn exponential_histogram_point()(
        attributes in attributes(),
        (start_time_unix_nano, time_unix_nano, count, zero_count) in (uint(), uint(), uint(), uint()),
        (sum, min, max) in (option::of(double()), option::of(double()), option::of(double())),
        (positive, negative) in (option::of(buckets()), option::of(buckets())),
        (scale, zero_threshold) in (any::<i32>(), double()),
        exemplars in vec(exemplar(), 0..2),
        flags in any::<u32>(),
    ) -> ExponentialHistogramDataPoint {
        ExponentialHistogramDataPoint {
            attributes, start_time_unix_nano, time_unix_nano, count, zero_count, sum, min, max, positive, negative, scale,
            zero_threshold, exemplars, flags,
        }
    }
}

prop_compose! {
    fn summary_point()(
        attributes in attributes(),
        (start_time_unix_nano, time_unix_nano, count) in (uint(), uint(), uint()),
        sum in double(),
        quantile_values in vec((double(), double()), 0..4),
        flags in any::<u32>(),
    ) -> SummaryDataPoint {
        let at = |(quantile, value)| ValueAtQuantile { quantile, value };
        let quantile_values = quantile_values.into_iter().map(at).collect();
        SummaryDataPoint { attributes, start_time_unix_nano, time_unix_nano, count, sum, quantile_values, flags }
    }
}

fn data() -> impl Strategy<Value = metric::Data> {
    prop_oneof![
        vec(number_point(), 0..3).prop_map(|data_points| metric::Data::Gauge(Gauge { data_points })),
        (vec(number_point(), 0..3), any::<i32>(), any::<bool>()).prop_map(
            |(data_points, aggregation_temporality, is_monotonic)| {
                metric::Data::Sum(Sum { data_points, aggregation_temporality, is_monotonic })
            }
        ),
        (vec(histogram_point(), 0..3), any::<i32>()).prop_map(|(data_points, aggregation_temporality)| {
            metric::Data::Histogram(Histogram { data_points, aggregation_temporality })
        }),
        (vec(exponential_histogram_point(), 0..3), any::<i32>()).prop_map(|(data_points, aggregation_temporality)| {
            metric::Data::ExponentialHistogram(ExponentialHistogram { data_points, aggregation_temporality })
        }),
        vec(summary_point(), 0..3).prop_map(|data_points| metric::Data::Summary(Summary { data_points })),
    ]
}

prop_compose! {
    fn one_metric()(
        (name, description, unit) in any::<(String, String, String)>(),
        metadata in attributes(),
        data in option::of(data()),
    ) -> Metric {
        Metric { name, description, unit, metadata, data }
    }
}

prop_compose! {
    fn scope_spans()(
        scope in option::of(scope()), spans in vec(span(), 0..3), schema_url in any::<String>(),
    ) -> ScopeSpans {
        ScopeSpans { scope, spans, schema_url }
    }
}

prop_compose! {
    fn resource_spans()(
        resource in option::of(resource()), scope_spans in vec(scope_spans(), 0..3), schema_url in any::<String>(),
    ) -> ResourceSpans {
        ResourceSpans { resource, scope_spans, schema_url }
    }
}

prop_compose! {
    fn scope_logs()(
        scope in option::of(scope()), log_records in vec(log_record(), 0..3), schema_url in any::<String>(),
    ) -> ScopeLogs {
        ScopeLogs { scope, log_records, schema_url }
    }
}

prop_compose! {
    fn resource_logs()(
        resource in option::of(resource()), scope_logs in vec(scope_logs(), 0..3), schema_url in any::<String>(),
    ) -> ResourceLogs {
        ResourceLogs { resource, scope_logs, schema_url }
    }
}

prop_compose! {
    fn scope_metrics()(
        scope in option::of(scope()), metrics in vec(one_metric(), 0..3), schema_url in any::<String>(),
    ) -> ScopeMetrics {
        ScopeMetrics { scope, metrics, schema_url }
    }
}

prop_compose! {
    fn resource_metrics()(
        resource in option::of(resource()), scope_metrics in vec(scope_metrics(), 0..2), schema_url in any::<String>(),
    ) -> ResourceMetrics {
        ResourceMetrics { resource, scope_metrics, schema_url }
    }
}

pub(crate) fn traces() -> impl Strategy<Value = ExportTraceServiceRequest> {
    vec(resource_spans(), 0..3).prop_map(|resource_spans| ExportTraceServiceRequest { resource_spans })
}

pub(crate) fn logs() -> impl Strategy<Value = ExportLogsServiceRequest> {
    vec(resource_logs(), 0..3).prop_map(|resource_logs| ExportLogsServiceRequest { resource_logs })
}

pub(crate) fn metrics() -> impl Strategy<Value = ExportMetricsServiceRequest> {
    vec(resource_metrics(), 0..2).prop_map(|resource_metrics| ExportMetricsServiceRequest { resource_metrics })
}
