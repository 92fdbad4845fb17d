use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use opentelemetry::trace::{Link, TraceId};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SimpleSpanProcessor, SpanData};
use serde_json::json;

use super::*;
use crate::{DeferredSpanProcessor, FollowLinks, Options, TraceMode, TrailClock};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const MINUTE: Duration = Duration::from_secs(60);

/// An hour after 1970.
fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + 60 * MINUTE
}

fn trail(mode: TraceMode) -> (Trail, InMemorySpanExporter) {
    let exporter = InMemorySpanExporter::default();
    let hold = DeferredSpanProcessor::new(SimpleSpanProcessor::new(exporter.clone()));
    let sampler = FollowLinks::with_ratio(1.0);
    let provider = SdkTracerProvider::builder().with_sampler(sampler).with_span_processor(hold.clone()).build();
    let options = Options { mode, clock: TrailClock::new(now), ..Options::default() };
    (Trail::new(&provider, hold, options), exporter)
}

/// A ConfigMap with a stamp of this age and the hash of this content.
fn config_map(stamped: &str, content: &str, minutes: u32) -> ConfigMap {
    let data = |text: &str| Some(BTreeMap::from([("key".to_owned(), text.to_owned())]));
    let hash = hash::hash_object(&ConfigMap { data: data(stamped), ..ConfigMap::default() }).unwrap();
    let mut config_map = ConfigMap { data: data(content), ..ConfigMap::default() };
    let at = |minutes: u32| format!("1970-01-01T00:{:02}:00Z", 60 - minutes);
    config_map.metadata.annotations = Some(BTreeMap::from([
        ("tracing.k8s.io/traceparent".to_owned(), format!("00-{TRACE}-00f067aa0ba902b7-01")),
        ("trail.kubewake.io/spec".to_owned(), hash),
        ("trail.kubewake.io/changed".to_owned(), at(minutes)),
    ]));
    config_map
}

fn followed(mode: TraceMode, object: &ConfigMap, work: OperandWork) -> SpanData {
    let (trail, exporter) = trail(mode);
    let other = context::parse("00-11111111111111111111111111111111-2222222222222222-01", None).unwrap();
    let builder = SpanBuilder::from_name("take").with_links(vec![Link::with_context(other)]);
    trail.follow(object, work, builder).span().end();
    exporter.get_finished_spans().unwrap().remove(0)
}

/// Whether the span is in the trace, and its number of links.
fn place(span: &SpanData) -> (bool, usize) {
    (span.span_context.trace_id() == TraceId::from_hex(TRACE).unwrap(), span.links.len())
}

#[test]
fn what_an_object_asks_for_is_in_its_trace() {
    let object = config_map("a", "a", 5);
    let span = followed(TraceMode::Tree, &object, OperandWork::Repeated);
    assert_eq!((place(&span), span.span_kind), ((true, 1), SpanKind::Consumer));
    assert_eq!(place(&followed(TraceMode::Links, &object, OperandWork::Repeated)), (false, 2));
}

#[test]
fn what_is_done_again_long_after_is_a_root_with_a_link() {
    let object = config_map("a", "a", 50);
    assert_eq!(place(&followed(TraceMode::Tree, &object, OperandWork::Repeated)), (false, 2));
    assert_eq!(place(&followed(TraceMode::Tree, &object, OperandWork::Requested)), (true, 1));
}

#[test]
fn what_somebody_changed_without_a_context_is_a_root_with_a_link() {
    assert_eq!(place(&followed(TraceMode::Tree, &config_map("a", "b", 5), OperandWork::Requested)), (false, 2));
}

#[test]
fn whoever_comes_next_continues_the_span() {
    let (trail, _) = trail(TraceMode::Tree);
    let mut pod: Pod = serde_json::from_value(json!({ "metadata": { "name": "web", "generation": 1 } })).unwrap();
    let first = trail.follow(&pod, OperandWork::Requested, SpanBuilder::from_name("first"));
    let id = first.span().span_context().clone();
    pod.metadata.annotations = Some(trail.annotations_for(&pod, &id).into_iter().collect());
    let second = trail.follow(&pod, OperandWork::Requested, SpanBuilder::from_name("second"));
    assert_eq!(second.span().span_context().trace_id(), id.trace_id());
    let elsewhere = trail.start(SpanBuilder::from_name("elsewhere"), &Context::new());
    let entries = trail.annotations_for(&pod, elsewhere.span().span_context());
    assert!(entries.contains(&("trail.kubewake.io/previous".to_owned(), context::traceparent(&id))));
}

#[test]
fn without_tracing_nothing_is_written() {
    let trail = Trail::disabled();
    let pod = Pod::default();
    let context = trail.follow(&pod, OperandWork::Requested, SpanBuilder::from_name("x"));
    assert!(!context.span().span_context().is_valid());
    assert!(trail.annotations_for(&pod, context.span().span_context()).is_empty());
    assert!(trail.exporter_env().is_empty() && trail.context_env().is_empty());
}

#[test]
fn what_is_made_once_is_told_its_context() {
    let (trail, _) = trail(TraceMode::Tree);
    assert!(trail.context_env().is_empty(), "outside of any span");
    let parent = context::parse(&format!("00-{TRACE}-00f067aa0ba902b7-01"), Some("a=1")).unwrap();
    let parent = Context::new().with_remote_span_context(parent);
    let span = trail.start(SpanBuilder::from_name("make a Job"), &parent);
    let variables = {
        let _current = span.clone().attach();
        trail.context_env()
    };
    let told: Vec<_> = variables.into_iter().map(|it| (it.name, it.value.unwrap())).collect();
    let own = context::traceparent(span.span().span_context());
    assert_eq!(told, [("TRACEPARENT".to_owned(), own), ("TRACESTATE".to_owned(), "a=1".to_owned())]);
}

#[test]
fn a_workload_gets_the_way_and_no_secret() {
    let set = [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4317"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://user:secret@collector:4317/x"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=secret"),
        ("OTEL_SERVICE_NAME", "me"),
        ("PATH", "/bin"),
    ];
    let names: Vec<String> = passed_on(&set).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL"]);
}

fn passed_on(set: &[(&str, &str)]) -> Vec<(String, String)> {
    let set = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    env::exporter_variables(set).into_iter().map(|variable| (variable.name, variable.value.unwrap())).collect()
}

#[test]
fn a_workload_is_told_the_protocol_that_nobody_named() {
    const GENERIC: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
    const TRACES: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
    let protocols = |set: &[(&str, &str)]| {
        let all = passed_on(set).into_iter().filter(|(name, _)| name.ends_with("PROTOCOL"));
        all.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>()
    };
    assert_eq!(protocols(&[(GENERIC, "http://collector:4317")]), ["OTEL_EXPORTER_OTLP_PROTOCOL=grpc"]);
    assert_eq!(protocols(&[(GENERIC, "http://collector:4318/")]), ["OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf"]);
    assert_eq!(
        protocols(&[(GENERIC, "http://collector:4317"), (TRACES, "http://traces:4318/v1/traces")]),
        ["OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf"]
    );
    let said = ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    assert_eq!(protocols(&[said, (GENERIC, "http://collector:4318")]), ["OTEL_EXPORTER_OTLP_PROTOCOL=grpc"]);
    assert!(protocols(&[]).is_empty());
}
