//! Spans of `tracing` inside our own.

use opentelemetry_sdk::trace::SdkTracer;
use tracing::{Level, Metadata};
use tracing_subscriber::{Layer, filter::filter_fn, registry::LookupSpan};

/// Libraries whose spans ours stand for, or that would trace the export itself.
const LEFT_OUT: [&str; 8] = ["kube", "hyper", "h2", "tower", "tonic", "rustls", "tokio", "opentelemetry"];

/// A layer that makes spans of `tracing` spans of level INFO and above. They are children of whatever span of ours is current.
pub fn layer<S>(tracer: SdkTracer) -> impl Layer<S> + use<S>
where
    S: tracing::Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
{
    let layer = tracing_opentelemetry::layer().with_tracer(tracer).with_location(false).with_threads(false);
    layer.with_filter(filter_fn(counts))
}

fn counts(metadata: &Metadata<'_>) -> bool {
    let library = metadata.target().split([':', '_']).next().unwrap_or_default();
    *metadata.level() <= Level::INFO && !LEFT_OUT.contains(&library)
}
