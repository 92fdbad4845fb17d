use http::HeaderMap;
use opentelemetry_proto::tonic::trace::v1::Span as Decoded;
use prost::Message;

use super::*;

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    pairs.iter().map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap())).collect()
}

fn decode(finished: Finished) -> Decoded {
    Decoded::decode(finished.bytes.as_slice()).unwrap()
}

fn tracer(ratio: u32) -> (Tracer, mpsc::Receiver<Finished>) {
    let (pipeline, finished) = Pipeline::new(ratio);
    let tracer = Tracer::default();
    tracer.set(Some(pipeline));
    (tracer, finished)
}

fn start(tracer: &Tracer, origin: &Origin<'_>) -> Span {
    tracer.start(origin, Scope::Http, Kind::Server, "GET", SystemTime::now())
}

#[test]
fn a_context_comes_back_as_it_was_read() {
    let headers_in = headers(&[("traceparent", PARENT), ("tracestate", "a=b"), ("baggage", "k=v")]);
    let mut out = HeaderMap::new();
    Context::extract(&headers_in).unwrap().inject(&mut out);
    assert_eq!(out, headers_in);
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
        assert_eq!(Context::parse(bad), None, "{bad}");
    }
    assert!(
        Context::parse("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more").is_some(),
        "a later version"
    );
}

#[test]
fn without_a_pipeline_the_callers_context_is_passed_on() {
    let context = Context::parse(PARENT).unwrap();
    let span = start(&Tracer::default(), &Origin::Parent(&context));
    assert!(!span.is_recording());
    assert_eq!(span.step("x").context(), Some(&context));
}

#[test]
fn a_trusted_caller_is_the_parent() {
    let (tracer, mut finished) = tracer(0);
    let context = Context::parse(PARENT).unwrap();
    let span = start(&tracer, &Origin::Parent(&context));
    let child = span.step("Create");
    child.set("len", 3_i64);
    child.event_with("done", &[("err", "no".into())]);
    child.fail("bad");
    drop(child);
    span.end();
    span.set("late", "lost");
    let (child, parent) = (decode(finished.try_recv().unwrap()), decode(finished.try_recv().unwrap()));
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
    let context = Context::parse(&PARENT.replace("-01", "-00")).unwrap();
    let (tracer, mut finished) = tracer(1_000_000);
    drop(start(&tracer, &Origin::Link(&context)));
    let span = decode(finished.try_recv().unwrap());
    assert_eq!(span.links[0].trace_id, context.trace.bytes());
    assert!(span.parent_span_id.is_empty() && span.trace_id != context.trace.bytes());
}

#[test]
fn what_is_not_sampled_is_not_recorded_but_passed_on() {
    let (tracer, mut finished) = tracer(0);
    let span = start(&tracer, &Origin::Root);
    assert!(!span.is_recording() && !span.context().unwrap().is_sampled());
    drop(span);
    assert!(finished.try_recv().is_err());
}

#[test]
fn half_of_the_roots_are_sampled_at_half_a_million() {
    let (tracer, _finished) = tracer(500_000);
    let sampled = (0..10_000).filter(|_| start(&tracer, &Origin::Root).is_recording()).count();
    assert!((4_500..5_500).contains(&sampled), "{sampled}");
}

#[test]
fn a_full_queue_drops_and_counts() {
    let (pipeline, _finished) = Pipeline::new(1_000_000);
    let tracer = Tracer::default();
    tracer.set(Some(Arc::clone(&pipeline)));
    (0..QUEUE + 5).for_each(|_| drop(start(&tracer, &Origin::Root)));
    assert_eq!(pipeline.dropped(), 5);
}
