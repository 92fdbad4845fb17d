//! Exports `tracing` spans as children of our own spans.

use opentelemetry_sdk::trace::SdkTracer;
use tracing::{Level, Metadata};
use tracing_subscriber::{Layer, filter::filter_fn, registry::LookupSpan};

/// Libraries whose spans ours replace, or that would trace the export itself.
const EXCLUDED_TARGETS: [&str; 8] = ["kube", "hyper", "h2", "tower", "tonic", "rustls", "tokio", "opentelemetry"];

/// A layer that turns `tracing` spans of level INFO and above into spans. They are children of the current span
/// of this crate.
pub fn layer<S>(tracer: SdkTracer) -> impl Layer<S> + use<S>
where
    S: tracing::Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
{
    let layer = tracing_opentelemetry::layer().with_tracer(tracer).with_location(false).with_threads(false);
    layer.with_filter(filter_fn(is_recorded))
}

fn is_recorded(metadata: &Metadata<'_>) -> bool {
    let library = metadata.target().split([':', '_']).next().unwrap_or_default();
    *metadata.level() <= Level::INFO && !EXCLUDED_TARGETS.contains(&library)
}
