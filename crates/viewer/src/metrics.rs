//! The viewer's own metrics, for Prometheus.

use axum::{extract, response::IntoResponse};
use http::header;
use kubewake_runtime::prometheus::{MetricKind, MetricsText};

use crate::{serve::ViewerState, store::StoreFigures};

/// Name, type, help text and value of a metric.
type MetricSample = (&'static str, MetricKind, &'static str, u64);

fn metric_samples(figures: &StoreFigures) -> [MetricSample; 10] {
    let size = |number: usize| number as u64;
    [
        ("kubewake_viewer_traces", MetricKind::Gauge, "Traces in the store.", size(figures.traces)),
        ("kubewake_viewer_spans", MetricKind::Gauge, "Spans in the store.", size(figures.spans)),
        ("kubewake_viewer_store_bytes", MetricKind::Gauge, "Size of the stored traces in bytes.", size(figures.bytes)),
        (
            "kubewake_viewer_store_limit_bytes",
            MetricKind::Gauge,
            "Maximum size of the stored traces in bytes.",
            size(figures.limit),
        ),
        ("kubewake_viewer_received_spans_total", MetricKind::Counter, "Received spans.", figures.received_spans),
        (
            "kubewake_viewer_dropped_traces_total",
            MetricKind::Counter,
            "Traces dropped to make room for others.",
            figures.dropped_traces,
        ),
        ("kubewake_viewer_dropped_spans_total", MetricKind::Counter, "Spans of dropped traces.", figures.dropped_spans),
        (
            "kubewake_viewer_refused_traces_total",
            MetricKind::Counter,
            "Traces refused because they are too large for the store.",
            figures.refused_traces,
        ),
        (
            "kubewake_viewer_refused_spans_total",
            MetricKind::Counter,
            "Spans refused because of the limit of one trace.",
            figures.refused_spans,
        ),
        (
            "kubewake_viewer_invalid_spans_total",
            MetricKind::Counter,
            "Spans without a valid trace ID or span ID.",
            figures.invalid_spans,
        ),
    ]
}

pub(crate) async fn metrics(extract::State(state): extract::State<ViewerState>) -> impl IntoResponse {
    let mut page = MetricsText::default();
    for (name, kind, help, value) in metric_samples(&state.store.figures()) {
        page.single(name, kind, help, value);
    }
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], page.into_text())
}
