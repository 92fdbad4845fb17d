use opentelemetry::trace::TraceContextExt as _;
use proptest::prelude::*;

use super::*;

const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[test]
fn a_context_is_read_and_written_back() {
    let context = parse(GOOD, Some("rojo=1, congo=t61")).unwrap();
    assert!(context.is_remote() && context.is_sampled());
    assert_eq!(traceparent(&context), GOOD);
    assert_eq!(tracestate(&context).as_deref(), Some("rojo=1,congo=t61"));
    let context = opentelemetry::Context::new().with_remote_span_context(context);
    assert_eq!(context.span().span_context().span_id().to_string(), "00f067aa0ba902b7");
}

#[test]
fn what_is_malformed_is_no_context() {
    for bad in [
        "",
        "00",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
        "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01more",
        "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "0x-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e473é-00f067aa0ba902b7-01",
    ] {
        assert_eq!(parse(bad, None), None, "{bad}");
    }
}

#[test]
fn a_later_version_is_read_as_this_one() {
    let later = parse("42-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-ff-what-comes", None).unwrap();
    assert_eq!(traceparent(&later), "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-03");
}

#[test]
fn a_bad_tracestate_costs_only_itself() {
    for bad in ["no separator", "UPPER=1", "a=\u{1}", &"a=1,".repeat(200)] {
        let context = parse(GOOD, Some(bad)).unwrap();
        assert_eq!(tracestate(&context), None, "{bad}");
    }
}

#[test]
fn a_request_carries_one_context() {
    let mut headers = HeaderMap::new();
    assert_eq!(extract(&headers), None);
    let context = parse(GOOD, Some("a=1")).unwrap();
    inject(&context, &mut headers);
    inject(&context, &mut headers);
    assert_eq!(extract(&headers), Some(context));
    headers.append(TRACESTATE, HeaderValue::from_static("b=2"));
    assert_eq!(extract(&headers).and_then(|context| tracestate(&context)).as_deref(), Some("a=1,b=2"));
    headers.append(TRACEPARENT, HeaderValue::from_static(GOOD));
    assert_eq!(extract(&headers), None, "two parents are none");
}

proptest! {
    #[test]
    fn any_text_is_read_without_harm(parent in ".*", state in ".*") {
        if let Some(context) = parse(&parent, Some(&state)) {
            prop_assert!(context.is_valid());
        }
    }

    #[test]
    fn what_looks_like_a_context_is_read_without_harm(
        parent in "[0-9a-f]{2}-[0-9a-fA-F]{31,33}-[0-9a-f]{15,17}-[0-9a-f]{2}.{0,3}", state in "([a-z@]{1,3}=[ -~]{0,4},?){0,40}"
    ) {
        if let Some(context) = parse(&parent, Some(&state)) {
            let again = parse(&traceparent(&context), tracestate(&context).as_deref());
            prop_assert_eq!(again.map(|again| again.trace_id()), Some(context.trace_id()));
        }
    }
}
