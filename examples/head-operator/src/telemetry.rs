//! temporary
use kubewake_trail::{FollowLinks, Hold, Options, Trail};
use opentelemetry_otlp::WithExportConfig as _;
use opentelemetry_sdk::{Resource, trace::{BatchSpanProcessor, SdkTracerProvider}};
pub fn setup(options: Options) -> (SdkTracerProvider, Trail) {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(tracing::Level::DEBUG).init();
    let exporter = opentelemetry_otlp::SpanExporter::builder().with_tonic().build().unwrap();
    let hold = Hold::new(BatchSpanProcessor::builder(exporter).build());
    let provider = SdkTracerProvider::builder().with_resource(Resource::builder().with_service_name("head-operator").build())
        .with_sampler(FollowLinks::ratio(1.0)).with_span_processor(hold.clone()).build();
    let trail = Trail::new(&provider, hold, options);
    (provider, trail)
}
