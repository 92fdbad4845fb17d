//! Arbitrary requests of the three signals, in the types of an independent implementation.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, InstrumentationScope, KeyValue, KeyValueList};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::metrics::v1::exponential_histogram_data_point::Buckets;
use opentelemetry_proto::tonic::metrics::v1::summary_data_point::ValueAtQuantile;
use opentelemetry_proto::tonic::metrics::v1::{
    Exemplar, ExponentialHistogram, ExponentialHistogramDataPoint, Gauge, Histogram, HistogramDataPoint, Metric,
    NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum, Summary, SummaryDataPoint, metric, number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::{Event, Link};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

/// Few keys, so that they collide; and a long one.
fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => Just("a".to_owned()),
        4 => Just("b".to_owned()),
        2 => Just("service.name".to_owned()),
        1 => Just("k".repeat(130)),
        1 => Just(String::new()),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[a-zé]{0,6}", 1 => Just("x".repeat(140))]
}

/// Numbers that can be compared; NaN is not equal to itself.
fn double() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(-1.5), Just(1e300)]
}

fn any_value() -> impl Strategy<Value = AnyValue> {
    let leaf = prop_oneof![
        Just(None),
        text().prop_map(|text| Some(Any::StringValue(text))),
        any::<bool>().prop_map(|value| Some(Any::BoolValue(value))),
        any::<i64>().prop_map(|value| Some(Any::IntValue(value))),
        double().prop_map(|value| Some(Any::DoubleValue(value))),
        vec(any::<u8>(), 0..4).prop_map(|bytes| Some(Any::BytesValue(bytes))),
    ]
    .prop_map(|value| AnyValue { value });
    leaf.prop_recursive(2, 6, 3, |inner| {
        let array = vec(inner.clone(), 0..3).prop_map(|values| Any::ArrayValue(ArrayValue { values }));
        let pair = (key(), of(inner)).prop_map(|(key, value)| KeyValue { key, value, ..Default::default() });
        let list = vec(pair, 0..3).prop_map(|values| Any::KvlistValue(KeyValueList { values }));
        prop_oneof![array, list].prop_map(|value| AnyValue { value: Some(value) })
    })
}

pub(crate) fn attributes() -> impl Strategy<Value = Vec<KeyValue>> {
    let pair = (key(), of(any_value())).prop_map(|(key, value)| KeyValue { key, value, ..Default::default() });
    vec(pair, 0..4)
}

/// No id, an all-zero id, or one of a few, so that traces collide.
fn id(size: usize) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![1 => Just(Vec::new()), 1 => Just(vec![0; size]), 6 => (1u8..4).prop_map(move |byte| vec![byte; size])]
}

fn resource() -> impl Strategy<Value = Resource> {
    (attributes(), 0u32..3).prop_map(|(attributes, dropped_attributes_count)| Resource {
        attributes,
        dropped_attributes_count,
        ..Default::default()
    })
}

fn scope() -> impl Strategy<Value = InstrumentationScope> {
    (text(), text(), attributes(), 0u32..3).prop_map(|(name, version, attributes, dropped_attributes_count)| {
        InstrumentationScope { name, version, attributes, dropped_attributes_count }
    })
}

fn event() -> impl Strategy<Value = Event> {
    (any::<u64>(), text(), attributes(), 0u32..3).prop_map(
        |(time_unix_nano, name, attributes, dropped_attributes_count)| Event {
            time_unix_nano,
            name,
            attributes,
            dropped_attributes_count,
        },
    )
}

fn link() -> impl Strategy<Value = Link> {
    (id(16), id(8), text(), attributes(), 0u32..3, any::<u32>()).prop_map(
        |(trace_id, span_id, trace_state, attributes, dropped_attributes_count, flags)| Link {
            trace_id,
            span_id,
            trace_state,
            attributes,
            dropped_attributes_count,
            flags,
        },
    )
}

fn status() -> impl Strategy<Value = Status> {
    (text(), 0..4i32).prop_map(|(message, code)| Status { message, code })
}

prop_compose! {
    fn span()(
        ids in (id(16), id(8), id(8)),
        texts in (text(), text()),
        (kind, flags) in (0..9i32, any::<u32>()),
        times in (any::<u64>(), any::<u64>()),
        attributes in attributes(),
        events in vec(event(), 0..2),
        links in vec(link(), 0..2),
        dropped in (0u32..300, 0u32..3, 0u32..3),
        status in of(status()),
    ) -> Span {
        Span {
            trace_id: ids.0,
            span_id: ids.1,
            parent_span_id: ids.2,
            trace_state: texts.0,
            name: texts.1,
            kind,
            flags,
            start_time_unix_nano: times.0,
            end_time_unix_nano: times.1,
            attributes,
            events,
            links,
            dropped_attributes_count: dropped.0,
            dropped_events_count: dropped.1,
            dropped_links_count: dropped.2,
            status,
        }
    }
}

prop_compose! {
    fn log_record()(
        times in (any::<u64>(), any::<u64>()),
        severity_number in -1..30i32,
        texts in (text(), text()),
        body in of(any_value()),
        attributes in attributes(),
        (dropped_attributes_count, flags) in (0u32..3, any::<u32>()),
        ids in (id(16), id(8)),
    ) -> LogRecord {
        LogRecord {
            time_unix_nano: times.0,
            observed_time_unix_nano: times.1,
            severity_number,
            severity_text: texts.0,
            event_name: texts.1,
            body,
            attributes,
            dropped_attributes_count,
            flags,
            trace_id: ids.0,
            span_id: ids.1,
        }
    }
}

fn exemplar() -> impl Strategy<Value = Exemplar> {
    (attributes(), id(16)).prop_map(|(filtered_attributes, trace_id)| Exemplar {
        filtered_attributes,
        trace_id,
        ..Default::default()
    })
}

prop_compose! {
    fn number_point()(
        attributes in attributes(),
        times in (any::<u64>(), any::<u64>()),
        value in of(prop_oneof![
            double().prop_map(number_data_point::Value::AsDouble),
            any::<i64>().prop_map(number_data_point::Value::AsInt),
        ]),
        exemplars in vec(exemplar(), 0..2),
        flags in 0u32..2,
    ) -> NumberDataPoint {
        let (start_time_unix_nano, time_unix_nano) = times;
        NumberDataPoint { attributes, start_time_unix_nano, time_unix_nano, value, exemplars, flags }
    }
}

prop_compose! {
    fn histogram_point()(
        attributes in attributes(),
        times in (any::<u64>(), any::<u64>()),
        count in any::<u64>(),
        stats in (of(double()), of(double()), of(double())),
        bucket_counts in vec(any::<u64>(), 0..4),
        explicit_bounds in vec(double(), 0..3),
        flags in 0u32..2,
    ) -> HistogramDataPoint {
        HistogramDataPoint {
            attributes,
            start_time_unix_nano: times.0,
            time_unix_nano: times.1,
            count,
            sum: stats.0,
            min: stats.1,
            max: stats.2,
            bucket_counts,
            explicit_bounds,
            flags,
            ..Default::default()
        }
    }
}

fn buckets() -> impl Strategy<Value = Buckets> {
    (any::<i32>(), vec(any::<u64>(), 0..4)).prop_map(|(offset, bucket_counts)| Buckets { offset, bucket_counts })
}

prop_compose! {
    fn exponential_point()(
        attributes in attributes(),
        time_unix_nano in any::<u64>(),
        counts in (any::<u64>(), any::<u64>()),
        stats in (of(double()), of(double()), of(double())),
        (scale, zero_threshold) in (any::<i32>(), double()),
        sides in (of(buckets()), of(buckets())),
    ) -> ExponentialHistogramDataPoint {
        ExponentialHistogramDataPoint {
            attributes,
            time_unix_nano,
            count: counts.0,
            zero_count: counts.1,
            sum: stats.0,
            min: stats.1,
            max: stats.2,
            scale,
            zero_threshold,
            positive: sides.0,
            negative: sides.1,
            ..Default::default()
        }
    }
}

prop_compose! {
    fn summary_point()(
        attributes in attributes(),
        time_unix_nano in any::<u64>(),
        (count, sum) in (any::<u64>(), double()),
        quantile_values in vec((double(), double()), 0..3),
    ) -> SummaryDataPoint {
        let quantile_values =
            quantile_values.into_iter().map(|(quantile, value)| ValueAtQuantile { quantile, value }).collect();
        SummaryDataPoint { attributes, time_unix_nano, count, sum, quantile_values, ..Default::default() }
    }
}

fn data() -> impl Strategy<Value = metric::Data> {
    let times = 0..3i32;
    prop_oneof![
        vec(number_point(), 0..4).prop_map(|data_points| metric::Data::Gauge(Gauge { data_points })),
        (vec(number_point(), 0..4), times.clone(), any::<bool>()).prop_map(
            |(data_points, aggregation_temporality, is_monotonic)| {
                metric::Data::Sum(Sum { data_points, aggregation_temporality, is_monotonic })
            }
        ),
        (vec(histogram_point(), 0..4), times.clone()).prop_map(|(data_points, aggregation_temporality)| {
            metric::Data::Histogram(Histogram { data_points, aggregation_temporality })
        }),
        (vec(exponential_point(), 0..4), times).prop_map(|(data_points, aggregation_temporality)| {
            metric::Data::ExponentialHistogram(ExponentialHistogram { data_points, aggregation_temporality })
        }),
        vec(summary_point(), 0..4).prop_map(|data_points| metric::Data::Summary(Summary { data_points })),
    ]
}

prop_compose! {
    fn one_metric()(
        texts in (text(), text(), text()),
        metadata in attributes(),
        data in of(data()),
    ) -> Metric {
        Metric { name: texts.0, description: texts.1, unit: texts.2, metadata, data }
    }
}

prop_compose! {
    fn scope_spans()(scope in of(scope()), spans in vec(span(), 0..5), schema_url in text()) -> ScopeSpans {
        ScopeSpans { scope, spans, schema_url }
    }
}

prop_compose! {
    fn resource_spans()(
        resource in of(resource()), scope_spans in vec(scope_spans(), 0..3), schema_url in text(),
    ) -> ResourceSpans {
        ResourceSpans { resource, scope_spans, schema_url }
    }
}

prop_compose! {
    fn scope_logs()(
        scope in of(scope()), log_records in vec(log_record(), 0..5), schema_url in text(),
    ) -> ScopeLogs {
        ScopeLogs { scope, log_records, schema_url }
    }
}

prop_compose! {
    fn resource_logs()(
        resource in of(resource()), scope_logs in vec(scope_logs(), 0..3), schema_url in text(),
    ) -> ResourceLogs {
        ResourceLogs { resource, scope_logs, schema_url }
    }
}

prop_compose! {
    fn scope_metrics()(
        scope in of(scope()), metrics in vec(one_metric(), 0..4), schema_url in text(),
    ) -> ScopeMetrics {
        ScopeMetrics { scope, metrics, schema_url }
    }
}

prop_compose! {
    fn resource_metrics()(
        resource in of(resource()), scope_metrics in vec(scope_metrics(), 0..3), schema_url in text(),
    ) -> ResourceMetrics {
        ResourceMetrics { resource, scope_metrics, schema_url }
    }
}

pub(crate) fn traces() -> impl Strategy<Value = ExportTraceServiceRequest> {
    vec(resource_spans(), 0..4).prop_map(|resource_spans| ExportTraceServiceRequest { resource_spans })
}

pub(crate) fn logs() -> impl Strategy<Value = ExportLogsServiceRequest> {
    vec(resource_logs(), 0..4).prop_map(|resource_logs| ExportLogsServiceRequest { resource_logs })
}

pub(crate) fn metrics() -> impl Strategy<Value = ExportMetricsServiceRequest> {
    vec(resource_metrics(), 0..4).prop_map(|resource_metrics| ExportMetricsServiceRequest { resource_metrics })
}
