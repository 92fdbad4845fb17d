//! The `detailed` format of metrics and their points.

use kubewake_otlp::{
    view::{
        AggregationTemporality, DataPoint, ExponentialHistogramPoint, HistogramPoint, KeyValue, MessageView, Metric,
        MetricData, MetricKind, SummaryPoint, lossy,
    },
    wire::{WireField, WireFields},
};

use super::{ARROW, INNER_ARROW, attributes, pairs};
use crate::exporter::debug::{
    text_output::TextLines,
    value::{fixed, id, time},
};

pub(super) fn metric(out: &mut TextLines<'_>, i: usize, metric: Metric<'_>) {
    out.add(format_args!("Metric #{i}"));
    out.add(format_args!("Descriptor:"));
    out.add(format_args!("{ARROW} Name: {}", lossy(metric.name())));
    out.add(format_args!("{ARROW} Description: {}", lossy(metric.description())));
    out.add(format_args!("{ARROW} Unit: {}", lossy(metric.unit())));
    let data = metric.data();
    out.add(format_args!("{ARROW} DataType: {}", data.map_or("Empty", |data| kind(data.kind()))));
    pairs(out, "     -> Metadata", INNER_ARROW, metric.metadata().iter());
    if let Some(data) = data {
        points(out, data);
    }
}

fn kind(kind: MetricKind) -> &'static str {
    match kind {
        MetricKind::Gauge => "Gauge",
        MetricKind::Sum => "Sum",
        MetricKind::Histogram => "Histogram",
        MetricKind::ExponentialHistogram => "ExponentialHistogram",
        MetricKind::Summary => "Summary",
    }
}

fn points(out: &mut TextLines<'_>, data: MetricData<'_>) {
    if data.kind() == MetricKind::Sum {
        out.add(format_args!("{ARROW} IsMonotonic: {}", data.is_monotonic()));
    }
    if !matches!(data.kind(), MetricKind::Gauge | MetricKind::Summary) {
        let temporality = match data.temporality() {
            AggregationTemporality::Unspecified => "Unspecified",
            AggregationTemporality::Delta => "Delta",
            AggregationTemporality::Cumulative => "Cumulative",
        };
        out.add(format_args!("{ARROW} AggregationTemporality: {temporality}"));
    }
    for (i, data_point) in data.points().enumerate() {
        point(out, i, data_point);
    }
}

fn point(out: &mut TextLines<'_>, i: usize, point: DataPoint<'_>) {
    let name = match point {
        DataPoint::Number(_) => "NumberDataPoints",
        DataPoint::Histogram(_) => "HistogramDataPoints",
        DataPoint::ExponentialHistogram(_) => "ExponentialHistogramDataPoints",
        DataPoint::Summary(_) => "SummaryDataPoints",
    };
    out.add(format_args!("{name} #{i}"));
    attributes(out, "Data point attributes", point.attributes());
    out.add(format_args!("StartTimestamp: {}", time(point.start())));
    out.add(format_args!("Timestamp: {}", time(point.time())));
    match point {
        DataPoint::Number(number) => value(out, "", number.int_value(), number.value()),
        DataPoint::Histogram(point) => histogram(out, point),
        DataPoint::ExponentialHistogram(point) => exponential(out, point),
        DataPoint::Summary(point) => summary(out, point),
    }
    exemplars(out, &point);
}

fn value(out: &mut TextLines<'_>, before: &str, integer: Option<i64>, double: Option<f64>) {
    match (integer, double) {
        (Some(value), _) => out.add(format_args!("{before}Value: {value}")),
        (None, Some(value)) => out.add(format_args!("{before}Value: {}", fixed(value))),
        (None, None) => {}
    }
}

fn totals(out: &mut TextLines<'_>, count: u64, sum: Option<f64>, min: Option<f64>, max: Option<f64>) {
    out.add(format_args!("Count: {count}"));
    for (name, value) in [("Sum", sum), ("Min", min), ("Max", max)] {
        if let Some(value) = value {
            out.add(format_args!("{name}: {}", fixed(value)));
        }
    }
}

fn histogram(out: &mut TextLines<'_>, point: HistogramPoint<'_>) {
    totals(out, point.count(), point.sum(), point.min(), point.max());
    for (i, bound) in point.bounds().enumerate() {
        out.add(format_args!("ExplicitBounds #{i}: {}", fixed(bound)));
    }
    for (i, count) in point.bucket_counts().enumerate() {
        out.add(format_args!("Buckets #{i}, Count: {count}"));
    }
}

fn exponential(out: &mut TextLines<'_>, point: ExponentialHistogramPoint<'_>) {
    totals(out, point.count(), point.sum(), point.min(), point.max());
    let bound = bounds(&point);
    if let Some(negative) = point.negative() {
        // In reverse order. A count takes eight bytes here and one in the message, for which twelve times its
        // length were reserved.
        let mut counts = Vec::with_capacity(negative.counts().count());
        counts.extend(negative.counts());
        for (at, count) in counts.iter().enumerate().rev() {
            let index = i64::from(negative.offset()) + at as i64;
            out.add(format_args!("Bucket [{}, {}), Count: {count}", fixed(-bound(index + 1)), fixed(-bound(index))));
        }
    }
    if point.zero_count() != 0 {
        out.add(format_args!("Bucket [0, 0], Count: {}", point.zero_count()));
    }
    if let Some(positive) = point.positive() {
        for (index, count) in (i64::from(positive.offset())..).zip(positive.counts()) {
            out.add(format_args!("Bucket ({}, {}], Count: {count}", fixed(bound(index)), fixed(bound(index + 1))));
        }
    }
}

/// The lower bound of the bucket with an index, which is the upper bound of the bucket before it.
fn bounds(point: &ExponentialHistogramPoint<'_>) -> impl Fn(i64) -> f64 {
    let factor = std::f64::consts::LN_2 * (-f64::from(point.scale())).exp2();
    move |index| (index as f64 * factor).exp()
}

fn summary(out: &mut TextLines<'_>, point: SummaryPoint<'_>) {
    totals(out, point.count(), Some(point.sum()), None, None);
    for (i, quantile) in point.quantiles().enumerate() {
        let at = fixed(quantile.quantile());
        let value = fixed(quantile.value());
        out.add(format_args!("QuantileValue #{i}: Quantile {at}, Value {value}"));
    }
}

/// `Exemplar` messages, which have no view of their own.
fn exemplars(out: &mut TextLines<'_>, point: &DataPoint<'_>) {
    let number = match point {
        DataPoint::Number(_) => 5,
        DataPoint::Histogram(_) => 8,
        DataPoint::ExponentialHistogram(_) => 11,
        DataPoint::Summary(_) => return,
    };
    for (i, exemplar) in WireFields::new(point.as_bytes()).filter(|field| field.is_len(number)).enumerate() {
        if i == 0 {
            out.add(format_args!("Exemplars:"));
        }
        one_exemplar(out, i, exemplar.value);
    }
}

fn one_exemplar(out: &mut TextLines<'_>, i: usize, exemplar: &[u8]) {
    let at = 2;
    let as_double = 3;
    let span_id = 4;
    let trace_id = 5;
    let as_int = 6;
    let filtered = 7;
    let last = |number| WireFields::new(exemplar).filter(move |field| field.number == number).last();
    let bytes = |number| last(number).and_then(|field: WireField<'_>| field.as_len()).unwrap_or_default();
    out.add(format_args!("Exemplar #{i}"));
    out.add(format_args!("{ARROW} Trace ID: {}", id(bytes(trace_id))));
    out.add(format_args!("{ARROW} Span ID: {}", id(bytes(span_id))));
    let nanoseconds = last(at).and_then(|field| field.as_fixed64()).unwrap_or_default();
    out.add(format_args!("{ARROW} Timestamp: {}", time(nanoseconds)));
    let integer = last(as_int).and_then(|field| field.as_fixed64()).map(|bits| bits as i64);
    value(out, "     -> ", integer, last(as_double).and_then(|field| field.as_double()));
    let filtered = WireFields::new(exemplar).filter(|field| field.is_len(filtered)).map(|f| KeyValue::new(f.value));
    pairs(out, "     -> FilteredAttributes", INNER_ARROW, filtered);
}
