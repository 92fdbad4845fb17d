use http::HeaderMap;
use opentelemetry_proto::tonic::trace::v1::Span as Decoded;
use prost::Message;

use super::{
    pipeline::{MAX_BATCH_SPANS, MAX_QUEUED_SPANS},
    *,
};
use std::time::SystemTime;

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    pairs.iter().map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap())).collect()
}

fn decode(pipeline: &SpanPipeline) -> Vec<Decoded> {
    pipeline.take().iter().map(|finished| Decoded::decode(finished.bytes.as_slice()).unwrap()).collect()
}

fn tracer(ratio_per_million: u32) -> (Tracer, Arc<SpanPipeline>) {
    let pipeline = SpanPipeline::new(SpanSampling {
        ratio_per_million,
        trusted_groups: vec!["friends".into()],
        ..SpanSampling::default()
    });
    let tracer = Tracer::default();
    tracer.set_pipeline(Some(Arc::clone(&pipeline)));
    (tracer, pipeline)
}

fn start(tracer: &Tracer, origin: &SpanOrigin<'_>) -> TraceSpan {
    tracer.start(
        origin,
        SpanStart {
            scope: InstrumentationScope::Http,
            kind: TraceSpanKind::Server,
            name: &"GET",
            start: SystemTime::now(),
        },
    )
}

#[test]
fn a_context_comes_back_as_it_was_read() {
    let headers_in = headers(&[("traceparent", PARENT), ("tracestate", "a=b"), ("baggage", "k=v")]);
    let mut out = HeaderMap::new();
    let context = SpanContext::extract(&headers_in).unwrap();
    start(&Tracer::default(), &SpanOrigin::Parent(&context))
        .with_baggage(&headers_in)
        .component_child("x")
        .inject(&mut out);
    assert_eq!(out, headers_in);
}

#[test]
fn baggage_travels_without_a_trace_and_in_several_lines() {
    let mut headers_in = headers(&[("baggage", "k=v")]);
    headers_in.append("baggage", "l=w".parse().unwrap());
    let mut out = HeaderMap::new();
    start(&Tracer::default(), &SpanOrigin::Root).with_baggage(&headers_in).inject(&mut out);
    assert_eq!(out, headers(&[("baggage", "k=v,l=w")]));
}

#[test]
fn garbage_is_no_context() {
    for bad in [
        "",
        "00",
        "00-zz-zz-01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        &PARENT.to_uppercase(),
        &PARENT[..54],
        &format!("{PARENT}-x"),
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    ] {
        assert_eq!(SpanContext::parse(bad), None, "{bad}");
    }
    assert!(
        SpanContext::parse("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more").is_some(),
        "a later version"
    );
}

#[test]
fn without_a_pipeline_the_callers_context_is_passed_on() {
    let context = SpanContext::parse(PARENT).unwrap();
    let span = start(&Tracer::default(), &SpanOrigin::Parent(&context));
    assert!(!span.is_recording());
    assert_eq!(span.component_child("x").context(), Some(&context));
}

#[test]
fn a_trusted_caller_is_the_parent() {
    let (tracer, pipeline) = tracer(0);
    let context = SpanContext::parse(PARENT).unwrap();
    let span = start(&tracer, &SpanOrigin::Parent(&context));
    let child = span.component_child("Create");
    child.set_attribute("len", 3_i64);
    child.add_event_with("done", &[("err", "no".into())]);
    child.set_error("bad");
    drop(child);
    span.end();
    span.set_attribute("late", "lost");
    let [child, parent] = decode(&pipeline).try_into().unwrap();
    assert_eq!(
        (parent.trace_id.as_slice(), parent.parent_span_id.as_slice()),
        (&context.trace.bytes()[..], &context.span.bytes()[..])
    );
    assert_eq!((child.trace_id, child.parent_span_id), (parent.trace_id, parent.span_id));
    assert_eq!((child.name.as_str(), child.attributes.len(), child.events[0].attributes.len()), ("Create", 1, 1));
    assert_eq!(child.status.unwrap().message, "bad");
    assert!(parent.attributes.is_empty() && child.start_time_unix_nano >= parent.start_time_unix_nano);
    assert!(child.end_time_unix_nano >= child.start_time_unix_nano);
}

#[test]
fn an_untrusted_caller_is_a_link_and_the_ratio_decides() {
    let context = SpanContext::parse(&PARENT.replace("-01", "-00")).unwrap();
    let (tracer, pipeline) = tracer(1_000_000);
    drop(start(&tracer, &SpanOrigin::Link(&context)));
    let [span] = decode(&pipeline).try_into().unwrap();
    assert_eq!(span.links[0].trace_id, context.trace.bytes());
    assert!(span.parent_span_id.is_empty() && span.trace_id != context.trace.bytes());
}

#[test]
fn what_is_not_sampled_is_not_recorded_but_passed_on() {
    let (tracer, pipeline) = tracer(0);
    let span = start(&tracer, &SpanOrigin::Root);
    assert!(!span.is_recording() && !span.context().unwrap().is_sampled());
    drop(span);
    assert!(pipeline.is_empty());
}

#[test]
fn half_of_the_roots_are_sampled_at_half_a_million() {
    let (tracer, _pipeline) = tracer(500_000);
    let sampled = (0..10_000).filter(|_| start(&tracer, &SpanOrigin::Root).is_recording()).count();
    assert!((4_500..5_500).contains(&sampled), "{sampled}");
}

#[test]
fn a_full_queue_drops_and_counts() {
    let (tracer, pipeline) = tracer(1_000_000);
    (0..MAX_QUEUED_SPANS + 5).for_each(|_| drop(start(&tracer, &SpanOrigin::Root)));
    assert_eq!(pipeline.counts().dropped, 5);
    assert_eq!(pipeline.take().len(), MAX_BATCH_SPANS, "and no more than a batch is taken at once");
}

#[test]
fn a_parent_lasts_as_long_as_its_children() {
    let (tracer, pipeline) = tracer(1_000_000);
    let parent = start(&tracer, &SpanOrigin::Root);
    let child = parent.component_child("Watch");
    drop(parent);
    assert!(pipeline.is_empty());
    drop(child);
    let names: Vec<String> = decode(&pipeline).into_iter().map(|span| span.name).collect();
    assert_eq!(names, ["Watch", "GET"]);
}

#[test]
fn whom_to_trust_may_change_while_spans_are_made() {
    let (tracer, pipeline) = tracer(0);
    assert!(tracer.trusts(|group| group == "friends"));
    pipeline.set_sampling(SpanSampling {
        ratio_per_million: 1_000_000,
        trusted_groups: vec!["others".into()],
        ..SpanSampling::default()
    });
    assert!(!tracer.trusts(|group| group == "friends"));
    assert!(start(&tracer, &SpanOrigin::Root).is_recording());
}

#[test]
fn attributes_of_every_size_are_written_as_they_are() {
    let (tracer, pipeline) = tracer(1_000_000);
    let span = start(&tracer, &SpanOrigin::Root);
    let long = "x".repeat(20_000);
    span.set_attribute("", "");
    span.set_attribute(&long, &long);
    span.set_attribute("n", -1_i64);
    span.set_attribute("flag", SpanAttributeValue::Flag(true));
    drop(span);
    let [span] = decode(&pipeline).try_into().unwrap();
    use opentelemetry_proto::tonic::common::v1::any_value::Value::*;
    let values: Vec<_> = span.attributes.into_iter().map(|pair| pair.value.unwrap().value.unwrap()).collect();
    assert_eq!(values, [StringValue(String::new()), StringValue(long), IntValue(-1), BoolValue(true)]);
}
