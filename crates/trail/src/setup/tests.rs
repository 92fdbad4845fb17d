//! An author's own spans beside ours.

use opentelemetry::{
    Context,
    context::FutureExt as _,
    trace::{TraceContextExt as _, Tracer as _, TracerProvider as _},
};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SimpleSpanProcessor};
use tracing_subscriber::layer::SubscriberExt as _;

use super::{Recording, Runtime, Telemetry};
use crate::{Hold, Run};

#[tracing::instrument]
async fn outer() {
    inner().await;
}

#[tracing::instrument]
async fn inner() {
    tokio::task::yield_now().await;
    tracing::info_span!(target: "kube_client::client", "HTTP").in_scope(|| {});
}

#[tokio::test]
async fn an_instrumented_function_is_part_of_the_run_that_calls_it_and_of_its_fate() {
    let exporter = InMemorySpanExporter::default();
    let hold = Hold::new(SimpleSpanProcessor::new(exporter.clone()));
    let provider = SdkTracerProvider::builder().with_span_processor(hold.clone()).build();
    let recording = Recording { provider: provider.clone(), _runtime: Runtime::start().unwrap() };
    let telemetry = Telemetry { recording: Some(recording) };
    let subscriber = tracing_subscriber::registry().with(telemetry.layer());
    let _default = tracing::subscriber::set_default(subscriber);
    for keep in [false, true] {
        let run = Run::new(false);
        let parent = Context::new().with_value(run.clone());
        let span = provider.tracer("test").start_with_context("reconcile", &parent);
        let context = parent.with_span(span);
        outer().with_context(context.clone()).await;
        hold.settle(&run, keep);
        context.span().end();
    }
    let spans = exporter.get_finished_spans().unwrap();
    let id = |name: &str| spans.iter().find(|span| span.name == name).unwrap().span_context.span_id();
    let parent = |name: &str| spans.iter().find(|span| span.name == name).unwrap().parent_span_id;
    assert_eq!(spans.len(), 3, "those of the run that changed nothing are gone: {spans:#?}");
    assert_eq!((parent("inner"), parent("outer")), (id("outer"), id("reconcile")));
}
