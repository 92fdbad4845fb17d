//! The `normal` format: one line for each record, below one for its resource and one for its scope.

use std::fmt::Write;

use kubewake_otlp::{
    Signal,
    view::{
        AttributesView, DataPoint, ExponentialBuckets, ExponentialHistogramPoint, HistogramPoint, LogRecord,
        MessageView, Metric, NumberPoint, ScopeEntry, Span, SummaryPoint, lossy,
    },
};

use super::{
    resources,
    text_output::TextLines,
    value::{fixed, id, plain},
};
use crate::{
    core::{Batch, SendError},
    telemetry::format_shortest,
};

pub(super) fn write_batch(batch: &Batch, mut out: TextLines<'_>) -> Result<(), SendError> {
    let (resource, scope) = match batch.signal() {
        Signal::Traces => ("ResourceTraces", "ScopeTraces"),
        Signal::Metrics => ("ResourceMetrics", "ScopeMetrics"),
        Signal::Logs => ("ResourceLog", "ScopeLog"),
    };
    for (i, entry) in resources(batch).enumerate() {
        if !out.reserve_for_message(entry.resource().as_bytes()) {
            break;
        }
        let details = match entry.schema_url() {
            [] => String::new(),
            url => format!(" [{}]", lossy(url)),
        };
        out.add(format_args!("{resource} #{i}{details}{}", spaced(entry.resource().attributes())));
        for (j, scope_entry) in entry.scopes().enumerate() {
            if !out.reserve_for_message(scope_entry.scope().as_bytes()) {
                break;
            }
            let attributes = spaced(scope_entry.scope().attributes());
            out.add(format_args!("{scope} #{j}{}{attributes}", scope_details(&scope_entry)));
            records(&mut out, batch.signal(), &scope_entry);
        }
    }
    out.finish()
}

fn records(out: &mut TextLines<'_>, signal: Signal, scope: &ScopeEntry<'_>) {
    match signal {
        Signal::Traces => scope.spans().for_each(|record| span(out, record)),
        Signal::Logs => scope.log_records().for_each(|record| log(out, record)),
        Signal::Metrics => scope.metrics().for_each(|record| metric(out, record)),
    }
}

/// ` name@version [schema]`, without absent parts.
fn scope_details(entry: &ScopeEntry<'_>) -> String {
    let scope = entry.scope();
    let mut out = lossy(scope.name()).into_owned();
    if !scope.version().is_empty() {
        out = format!("{out}@{}", lossy(scope.version()));
    }
    if !entry.schema_url().is_empty() {
        let space = if out.is_empty() { "" } else { " " };
        out = format!("{out}{space}[{}]", lossy(entry.schema_url()));
    }
    if out.is_empty() { out } else { format!(" {out}") }
}

fn pairs(attributes: AttributesView<'_>, separator: &str) -> String {
    let pair = attributes.iter().map(|a| format!("{}={}", lossy(a.key()), plain(a.value())));
    pair.collect::<Vec<_>>().join(separator)
}

/// Attributes with a space before each.
fn spaced(attributes: AttributesView<'_>) -> String {
    attributes.iter().map(|a| format!(" {}={}", lossy(a.key()), plain(a.value()))).collect()
}

fn span(out: &mut TextLines<'_>, span: Span<'_>) {
    if !out.reserve_for_message(span.as_bytes()) {
        return;
    }
    let name = lossy(span.name());
    let attributes = spaced(span.attributes());
    out.add(format_args!("{name} {} {}{attributes}", id(span.trace_id()), id(span.span_id())));
}

fn log(out: &mut TextLines<'_>, record: LogRecord<'_>) {
    if !out.reserve_for_message(record.as_bytes()) {
        return;
    }
    out.add(format_args!("{} {}", plain(record.body()), pairs(record.attributes(), " ")));
}

fn metric(out: &mut TextLines<'_>, metric: Metric<'_>) {
    for point in metric.data().into_iter().flat_map(|data| data.points()) {
        if !out.reserve_for_message(point.as_bytes()) {
            return;
        }
        let value = match point {
            DataPoint::Number(point) => number(point),
            DataPoint::Histogram(point) => histogram(point),
            DataPoint::ExponentialHistogram(point) => exponential(point),
            DataPoint::Summary(point) => summary(point),
        };
        out.add(format_args!("{}{{{}}} {value}", lossy(metric.name()), pairs(point.attributes(), ",")));
    }
}

fn real(value: f64) -> String {
    format_shortest(value, 21)
}

fn number(point: NumberPoint<'_>) -> String {
    let integer = point.int_value().map(|value| value.to_string());
    integer.or_else(|| point.value().map(real)).unwrap_or_default()
}

fn totals(count: u64, sum: Option<f64>, min: Option<f64>, max: Option<f64>) -> String {
    let mut out = format!("count={count}");
    for (name, value) in [("sum", sum), ("min", min), ("max", max)] {
        if let Some(value) = value {
            // Writing to a string cannot fail.
            let _ = write!(out, " {name}={}", real(value));
        }
    }
    out
}

fn histogram(point: HistogramPoint<'_>) -> String {
    let mut out = totals(point.count(), point.sum(), point.min(), point.max());
    let mut bounds = point.bounds();
    for count in point.bucket_counts() {
        let bound = bounds.next().map_or_else(String::new, |bound| format!("le{}=", real(bound)));
        let _ = write!(out, " {bound}{count}");
    }
    out
}

fn exponential(point: ExponentialHistogramPoint<'_>) -> String {
    let mut out = totals(point.count(), point.sum(), point.min(), point.max());
    let base = (-f64::from(point.scale())).exp2().exp2();
    let mut buckets = |buckets: Option<ExponentialBuckets<'_>>| {
        let Some(buckets) = buckets else { return };
        let indexes = i64::from(buckets.offset())..;
        for (index, count) in indexes.zip(buckets.counts()) {
            let _ = write!(out, " le{}={count}", real(base.powf(index as f64)));
        }
    };
    buckets(point.negative());
    buckets(point.positive());
    if point.zero_count() > 0 {
        let _ = write!(out, " zero_count{}={}", real(point.zero_threshold()), point.zero_count());
    }
    out
}

fn summary(point: SummaryPoint<'_>) -> String {
    let mut out = format!("count={} sum={}", point.count(), fixed(point.sum()));
    for quantile in point.quantiles() {
        let _ = write!(out, " q{}={}", real(quantile.quantile()), real(quantile.value()));
    }
    out
}
