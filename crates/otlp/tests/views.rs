//! A view reads what an independent decoder reads.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

#[path = "support/repeated.rs"]
mod repeated;
#[path = "support/requests.rs"]
mod requests;
#[path = "support/unknown.rs"]
#[allow(dead_code, reason = "only what puts unknown fields in is used here")]
mod unknown;

use kubewake_otlp::Signal;
use kubewake_otlp::view::{self, AggregationTemporality, AnyValue, AttributesView, DataPoint, MetricKind};
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{self as common, KeyValue};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::metrics::v1::{
    ExponentialHistogramDataPoint, HistogramDataPoint, Metric, NumberDataPoint, SummaryDataPoint, metric,
    number_data_point,
};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, Span};
use proptest::prelude::*;
use prost::Message;

fn same_value(seen: AnyValue<'_>, expected: Option<&common::AnyValue>) {
    match (seen, expected.and_then(|any| any.value.as_ref())) {
        (AnyValue::None, None) => {}
        (AnyValue::String(text), Some(Any::StringValue(expected))) => assert_eq!(text, expected.as_bytes()),
        (AnyValue::Bool(value), Some(Any::BoolValue(expected))) => assert_eq!(value, *expected),
        (AnyValue::Int(value), Some(Any::IntValue(expected))) => assert_eq!(value, *expected),
        (AnyValue::Double(value), Some(Any::DoubleValue(expected))) => assert_eq!(value, *expected),
        (AnyValue::Bytes(bytes), Some(Any::BytesValue(expected))) => assert_eq!(bytes, expected),
        (AnyValue::Array(values), Some(Any::ArrayValue(expected))) => {
            assert_eq!(values.count(), expected.values.len());
            values.zip(&expected.values).for_each(|(value, any)| same_value(AnyValue::new(value), Some(any)));
        }
        (AnyValue::KeyValueList(pairs), Some(Any::KvlistValue(expected))) => {
            assert_eq!(pairs.count(), expected.values.len());
            for (pair, expected) in pairs.zip(&expected.values) {
                assert_eq!(pair.key(), expected.key.as_bytes());
                same_value(pair.value(), expected.value.as_ref());
            }
        }
        (seen, expected) => panic!("{seen:?} is not {expected:?}"),
    }
}

fn same_attributes(seen: AttributesView<'_>, expected: &[KeyValue]) {
    assert_eq!(seen.iter().count(), expected.len());
    for (attribute, expected) in seen.iter().zip(expected) {
        assert_eq!(attribute.key(), expected.key.as_bytes());
        same_value(attribute.value(), expected.value.as_ref());
    }
    match expected.iter().find(|pair| pair.key == "a") {
        Some(first) => same_value(seen.get("a").unwrap(), first.value.as_ref()),
        None => assert!(seen.get("a").is_none()),
    }
}

fn same_span(seen: view::Span<'_>, span: &Span) {
    assert_eq!(seen.trace_id(), span.trace_id);
    assert_eq!(seen.span_id(), span.span_id);
    assert_eq!(seen.parent_span_id(), span.parent_span_id);
    assert_eq!(seen.trace_state(), span.trace_state.as_bytes());
    assert_eq!(seen.name(), span.name.as_bytes());
    assert_eq!((seen.kind(), seen.flags()), (span.kind, span.flags));
    assert_eq!((seen.start(), seen.end()), (span.start_time_unix_nano, span.end_time_unix_nano));
    assert_eq!(seen.dropped_attributes(), span.dropped_attributes_count);
    assert_eq!(seen.dropped_events(), span.dropped_events_count);
    assert_eq!(seen.dropped_links(), span.dropped_links_count);
    same_attributes(seen.attributes(), &span.attributes);
    let status = span.status.clone().unwrap_or_default();
    assert_eq!((seen.status().code(), seen.status().message()), (status.code, status.message.as_bytes()));
    assert_eq!(seen.events().count(), span.events.len());
    for (seen, event) in seen.events().zip(&span.events) {
        assert_eq!((seen.time(), seen.name()), (event.time_unix_nano, event.name.as_bytes()));
        assert_eq!(seen.dropped_attributes(), event.dropped_attributes_count);
        same_attributes(seen.attributes(), &event.attributes);
    }
    assert_eq!(seen.links().count(), span.links.len());
    for (seen, link) in seen.links().zip(&span.links) {
        assert_eq!((seen.trace_id(), seen.span_id()), (&link.trace_id[..], &link.span_id[..]));
        assert_eq!((seen.trace_state(), seen.flags()), (link.trace_state.as_bytes(), link.flags));
        assert_eq!(seen.dropped_attributes(), link.dropped_attributes_count);
        same_attributes(seen.attributes(), &link.attributes);
    }
}

fn same_log(seen: view::LogRecord<'_>, record: &LogRecord) {
    assert_eq!((seen.time(), seen.observed_time()), (record.time_unix_nano, record.observed_time_unix_nano));
    assert_eq!((seen.severity_number(), seen.flags()), (record.severity_number, record.flags));
    assert_eq!(seen.severity_text(), record.severity_text.as_bytes());
    assert_eq!(seen.event_name(), record.event_name.as_bytes());
    assert_eq!((seen.trace_id(), seen.span_id()), (&record.trace_id[..], &record.span_id[..]));
    assert_eq!(seen.dropped_attributes(), record.dropped_attributes_count);
    same_value(seen.body(), record.body.as_ref());
    same_attributes(seen.attributes(), &record.attributes);
}

fn same_metric(seen: view::Metric<'_>, metric: &Metric) {
    assert_eq!(seen.name(), metric.name.as_bytes());
    assert_eq!(seen.description(), metric.description.as_bytes());
    assert_eq!(seen.unit(), metric.unit.as_bytes());
    same_attributes(seen.metadata(), &metric.metadata);
    let Some(expected) = &metric.data else {
        assert!(seen.data().is_none());
        return;
    };
    let data = seen.data().unwrap();
    let (kind, temporality, is_monotonic) = match expected {
        metric::Data::Gauge(_) => (MetricKind::Gauge, 0, false),
        metric::Data::Sum(data) => (MetricKind::Sum, data.aggregation_temporality, data.is_monotonic),
        metric::Data::Histogram(data) => (MetricKind::Histogram, data.aggregation_temporality, false),
        metric::Data::ExponentialHistogram(data) => {
            (MetricKind::ExponentialHistogram, data.aggregation_temporality, false)
        }
        metric::Data::Summary(_) => (MetricKind::Summary, 0, false),
    };
    let temporality =
        [AggregationTemporality::Unspecified, AggregationTemporality::Delta, AggregationTemporality::Cumulative]
            [temporality as usize];
    assert_eq!((data.kind(), data.temporality(), data.is_monotonic()), (kind, temporality, is_monotonic));
    let points: Vec<_> = data.points().collect();
    match expected {
        metric::Data::Gauge(data) => each(&points, &data.data_points, same_number),
        metric::Data::Sum(data) => each(&points, &data.data_points, same_number),
        metric::Data::Histogram(data) => each(&points, &data.data_points, same_histogram),
        metric::Data::ExponentialHistogram(data) => each(&points, &data.data_points, same_exponential),
        metric::Data::Summary(data) => each(&points, &data.data_points, same_summary),
    }
}

fn each<P>(seen: &[DataPoint<'_>], expected: &[P], same: fn(&DataPoint<'_>, &P)) {
    assert_eq!(seen.len(), expected.len());
    seen.iter().zip(expected).for_each(|(seen, expected)| same(seen, expected));
}

fn same_number(seen: &DataPoint<'_>, point: &NumberDataPoint) {
    let DataPoint::Number(number) = seen else { panic!("{seen:?}") };
    assert_eq!((seen.start(), seen.time()), (point.start_time_unix_nano, point.time_unix_nano));
    assert_eq!(number.flags(), point.flags);
    same_attributes(seen.attributes(), &point.attributes);
    let (value, int) = match point.value {
        None => (None, None),
        Some(number_data_point::Value::AsDouble(value)) => (Some(value), None),
        Some(number_data_point::Value::AsInt(value)) => (Some(value as f64), Some(value)),
    };
    assert_eq!((number.value(), number.int_value()), (value, int));
}

fn same_histogram(seen: &DataPoint<'_>, point: &HistogramDataPoint) {
    let DataPoint::Histogram(histogram) = seen else { panic!("{seen:?}") };
    same_attributes(seen.attributes(), &point.attributes);
    assert_eq!((histogram.count(), histogram.sum()), (point.count, point.sum));
    assert_eq!((histogram.min(), histogram.max(), histogram.flags()), (point.min, point.max, point.flags));
    assert_eq!(histogram.bucket_counts().collect::<Vec<_>>(), point.bucket_counts);
    assert_eq!(histogram.bounds().collect::<Vec<_>>(), point.explicit_bounds);
}

fn same_exponential(seen: &DataPoint<'_>, point: &ExponentialHistogramDataPoint) {
    let DataPoint::ExponentialHistogram(histogram) = seen else { panic!("{seen:?}") };
    same_attributes(seen.attributes(), &point.attributes);
    assert_eq!((histogram.count(), histogram.sum()), (point.count, point.sum));
    assert_eq!((histogram.min(), histogram.max(), histogram.scale()), (point.min, point.max, point.scale));
    assert_eq!((histogram.zero_count(), histogram.zero_threshold()), (point.zero_count, point.zero_threshold));
    for (seen, expected) in [(histogram.positive(), &point.positive), (histogram.negative(), &point.negative)] {
        let seen = seen.map(|buckets| (buckets.offset(), buckets.counts().collect::<Vec<_>>()));
        assert_eq!(seen, expected.as_ref().map(|buckets| (buckets.offset, buckets.bucket_counts.clone())));
    }
}

fn same_summary(seen: &DataPoint<'_>, point: &SummaryDataPoint) {
    let DataPoint::Summary(summary) = seen else { panic!("{seen:?}") };
    same_attributes(seen.attributes(), &point.attributes);
    assert_eq!((summary.count(), summary.sum(), summary.flags()), (point.count, point.sum, point.flags));
    let quantiles: Vec<_> = summary.quantiles().map(|at| (at.quantile(), at.value())).collect();
    assert_eq!(quantiles, point.quantile_values.iter().map(|at| (at.quantile, at.value)).collect::<Vec<_>>());
}

/// Walks both requests side by side.
macro_rules! walk {
    ($signal:ident, $request:ident, $choices:ident, $resources:ident, $scopes:ident, $records:ident, $same:ident) => {
        let bytes = unknown::inject(Signal::$signal, &$request.encode_to_vec(), $choices);
        assert_eq!(view::resources(&bytes).count(), $request.$resources.len());
        for (seen, entry) in view::resources(&bytes).zip(&$request.$resources) {
            assert_eq!(seen.schema_url(), entry.schema_url.as_bytes());
            let resource = entry.resource.clone().unwrap_or_default();
            same_attributes(seen.resource().attributes(), &resource.attributes);
            assert_eq!(seen.resource().dropped_attributes(), resource.dropped_attributes_count);
            assert_eq!(seen.scopes().count(), entry.$scopes.len());
            for (seen, entry) in seen.scopes().zip(&entry.$scopes) {
                assert_eq!(seen.schema_url(), entry.schema_url.as_bytes());
                let scope = entry.scope.clone().unwrap_or_default();
                assert_eq!(seen.scope().name(), scope.name.as_bytes());
                assert_eq!(seen.scope().version(), scope.version.as_bytes());
                assert_eq!(seen.scope().dropped_attributes(), scope.dropped_attributes_count);
                same_attributes(seen.scope().attributes(), &scope.attributes);
                assert_eq!(seen.$records().count(), entry.$records.len());
                seen.$records().zip(&entry.$records).for_each(|(seen, record)| $same(seen, record));
            }
        }
    };
}

proptest! {
    #[test]
    fn of_traces(request in requests::traces(), choices: u64) {
        walk!(Traces, request, choices, resource_spans, scope_spans, spans, same_span);
    }

    #[test]
    fn of_logs(request in requests::logs(), choices: u64) {
        walk!(Logs, request, choices, resource_logs, scope_logs, log_records, same_log);
    }

    #[test]
    fn of_metrics(request in requests::metrics(), choices: u64) {
        walk!(Metrics, request, choices, resource_metrics, scope_metrics, metrics, same_metric);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn span_with_repeated_fields_reads_as_prost_decodes_it(content in repeated::span()) {
        if let Ok(span) = Span::decode(&content[..]) {
            same_span(view::MessageView::new(&content), &span);
        }
    }

    #[test]
    fn log_record_with_repeated_fields_reads_as_prost_decodes_it(content in repeated::log_record()) {
        if let Ok(record) = LogRecord::decode(&content[..]) {
            let seen: view::LogRecord<'_> = view::MessageView::new(&content);
            same_log(seen, &record);
            let raw = common::AnyValue::decode(&*seen.raw_body()).unwrap();
            prop_assert_eq!(raw, record.body.unwrap_or_default());
        }
    }

    #[test]
    fn exponential_histogram_with_repeated_fields_reads_as_prost_decodes_it(content in repeated::exponential_point()) {
        if let Ok(point) = ExponentialHistogramDataPoint::decode(&content[..]) {
            same_exponential(&DataPoint::new(MetricKind::ExponentialHistogram, &content), &point);
        }
    }

    #[test]
    fn entries_with_repeated_fields_read_as_prost_decodes_them(content in repeated::resource_entry()) {
        let mut request = Vec::new();
        kubewake_otlp::wire::put_bytes(&mut request, 1, &content);
        if let Ok(entry) = ResourceSpans::decode(&content[..]) {
            let seen = view::resources(&request).next().unwrap();
            let resource = entry.resource.unwrap_or_default();
            same_attributes(seen.resource().attributes(), &resource.attributes);
            prop_assert_eq!(seen.resource().dropped_attributes(), resource.dropped_attributes_count);
            for (seen, entry) in seen.scopes().zip(&entry.scope_spans) {
                let scope = entry.scope.clone().unwrap_or_default();
                prop_assert_eq!(seen.scope().name(), scope.name.as_bytes());
                same_attributes(seen.scope().attributes(), &scope.attributes);
                seen.spans().zip(&entry.spans).for_each(|(seen, span)| same_span(seen, span));
            }
        }
    }

    #[test]
    fn raw_value_of_repeated_fields_is_the_whole_value(content in repeated::pair()) {
        if let Ok(pair) = KeyValue::decode(&content[..]) {
            let seen: view::KeyValue<'_> = view::MessageView::new(&content);
            let raw = common::AnyValue::decode(&*seen.raw_value()).unwrap();
            prop_assert_eq!(raw, pair.value.unwrap_or_default());
        }
    }
}
