use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, Span};
use proptest::prelude::*;
use prost::Message;

use super::*;
use crate::{Signal, scan};

/// A message of OpenCensus, built field by field.
#[derive(Clone, Default)]
struct Built(Vec<u8>);

impl Built {
    fn text(mut self, number: u32, text: &str) -> Self {
        crate::wire::put_bytes(&mut self.0, number, text.as_bytes());
        self
    }

    fn bytes(mut self, number: u32, bytes: &[u8]) -> Self {
        crate::wire::put_bytes(&mut self.0, number, bytes);
        self
    }

    fn number(mut self, number: u32, value: u64) -> Self {
        crate::wire::put_uint(&mut self.0, number, value);
        self
    }

    fn message(self, number: u32, message: Built) -> Self {
        self.bytes(number, &message.0)
    }
}

fn new() -> Built {
    Built::default()
}

fn wrapped(text: &str) -> Built {
    new().text(1, text)
}

fn node() -> Built {
    new()
        .message(
            1,
            new().text(1, "host-1").number(2, 42).message(3, new().number(1, 1_551_725_542).number(2, 500_000_000)),
        )
        .message(2, new().number(1, 8).text(2, "0.0.1").text(3, "0.11.4"))
        .message(3, new().text(1, "shop"))
        .message(4, new().text(1, "team").text(2, "red"))
}

fn attribute(key: &str, value: Built) -> Built {
    new().message(1, new().text(1, key).message(2, value))
}

fn translated(messages: &[Built]) -> Vec<ResourceSpans> {
    let mut sender = OpenCensusStream::default();
    let mut out = Vec::new();
    for message in messages {
        let bytes = sender.translate(&message.0, |_| Ok::<_, ()>(())).unwrap();
        scan(Signal::Traces, &bytes).unwrap();
        out.extend(ExportTraceServiceRequest::decode(&*bytes).unwrap().resource_spans);
    }
    out
}

fn only_span(span: Built) -> Span {
    let entries = translated(&[new().message(1, node()).message(2, span)]);
    entries[0].scope_spans[0].spans[0].clone()
}

fn pairs(attributes: &[KeyValue]) -> Vec<(String, String)> {
    let text = |value: &AnyValue| match value.value.as_ref().unwrap() {
        any_value::Value::StringValue(text) => text.clone(),
        any_value::Value::IntValue(value) => format!("int {value}"),
        any_value::Value::BoolValue(value) => format!("bool {value}"),
        any_value::Value::DoubleValue(value) => format!("double {value}"),
        other => format!("{other:?}"),
    };
    attributes.iter().map(|pair| (pair.key.clone(), text(pair.value.as_ref().unwrap()))).collect()
}

fn has(attributes: &[KeyValue], expected: &[(&str, &str)]) {
    let expected: Vec<_> = expected.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    assert_eq!(pairs(attributes), expected);
}

#[test]
fn node_and_resource_describe_the_sender() {
    let resource = new()
        .text(1, "k8s")
        .message(2, new().text(1, "cloud.zone").text(2, "a"))
        .message(2, new().text(1, "team").text(2, "blue"))
        .message(2, new().text(1, "service.name").text(2, "label"));
    let entries = translated(&[new().message(1, node()).message(3, resource).message(2, new())]);
    has(
        &entries[0].resource.as_ref().unwrap().attributes,
        &[
            ("cloud.availability_zone", "a"),
            ("host.name", "host-1"),
            ("opencensus.exporterversion", "0.0.1"),
            ("opencensus.resourcetype", "k8s"),
            ("opencensus.starttime", "2019-03-04T18:52:22.5Z"),
            ("process.pid", "int 42"),
            ("service.name", "shop"),
            ("team", "red"),
            ("telemetry.sdk.language", "python"),
            ("telemetry.sdk.version", "0.11.4"),
        ],
    );
}

#[test]
fn whoever_sent_last_is_who_sends() {
    let other = new().message(3, new().text(1, "other"));
    let entries = translated(&[
        new().message(1, node()).message(2, new()),
        new().message(2, new()),
        new().message(1, other).message(2, new()).message(3, new().text(1, "vm")),
        new().message(2, new()),
    ]);
    let service = |entry: &ResourceSpans| {
        pairs(&entry.resource.as_ref().unwrap().attributes)
            .into_iter()
            .find(|(key, _)| key == "service.name")
            .unwrap()
            .1
    };
    assert_eq!(entries.iter().map(service).collect::<Vec<_>>(), ["shop", "shop", "other", "other"]);
    assert_eq!(entries[2].resource, entries[3].resource);
}

#[test]
fn a_stream_begins_with_a_node() {
    let error = OpenCensusStream::default().translate(&new().message(2, new()).0, |_| Ok::<_, ()>(())).unwrap_err();
    assert!(matches!(error, TranslateError::NoNode));
}

#[test]
fn a_span_becomes_a_span() {
    let time = |seconds| new().number(1, seconds).number(2, 7);
    let attributes = Built(
        [
            attribute("text", new().message(1, wrapped("value"))),
            attribute("int", new().number(2, 5)),
            attribute("bool", new().number(3, 0)),
            attribute("none", new()),
            attribute("span.kind", new().message(1, wrapped("producer"))),
            attribute("otel.status_code", new().number(2, 1)),
            new().number(2, 3),
        ]
        .map(|part| part.0)
        .concat(),
    );
    let message = new().number(1, 2).number(2, 9).number(3, 100).number(4, 50);
    let annotation = new().message(1, wrapped("note")).message(2, attribute("a", new().number(2, 1)));
    let events = new()
        .message(1, new().message(1, time(1)).message(2, annotation))
        .message(1, new().message(3, message))
        .message(1, new())
        .number(2, 1)
        .number(3, 2);
    let state =
        |value: &str| new().message(1, new().text(1, "k").text(2, value)).message(1, new().text(1, "l").text(2, "m"));
    let link = new().bytes(1, &[7; 16]).bytes(2, &[8; 8]).number(3, 1).message(5, state("w"));
    let span = only_span(
        new()
            .bytes(1, &[1; 20])
            .bytes(2, &[2; 4])
            .bytes(3, &[3; 8])
            .message(4, wrapped("GET /"))
            .message(5, time(1))
            .message(6, time(2))
            .message(7, attributes)
            .message(9, events)
            .message(10, new().message(1, link).number(2, 4))
            .message(11, new().number(1, 5).text(2, "not found"))
            .message(12, new().number(1, 1))
            .message(15, state("v")),
    );
    assert_eq!(span.trace_id, [1; 16]);
    assert_eq!(span.span_id, [2, 2, 2, 2, 0, 0, 0, 0]);
    assert_eq!(span.parent_span_id, [3; 8]);
    assert_eq!((&*span.name, span.kind), ("GET /", 4));
    assert_eq!((span.start_time_unix_nano, span.end_time_unix_nano), (1_000_000_007, 2_000_000_007));
    assert_eq!(span.trace_state, "k=v,l=m");
    has(
        &span.attributes,
        &[
            ("text", "value"),
            ("int", "int 5"),
            ("bool", "bool false"),
            ("none", "<Unknown OpenCensus attribute value type>"),
            ("opencensus.same_process_as_parent_span", "bool true"),
        ],
    );
    assert_eq!((span.dropped_attributes_count, span.dropped_events_count, span.dropped_links_count), (3, 3, 4));
    let status = span.status.unwrap();
    assert_eq!((status.code, &*status.message), (1, "not found"), "the attribute has the last word");
    let names: Vec<_> = span.events.iter().map(|event| &*event.name).collect();
    assert_eq!(names[..2], ["note", "message"]);
    assert_eq!(span.events[0].time_unix_nano, 1_000_000_007);
    has(&span.events[0].attributes, &[("a", "int 1")]);
    has(
        &span.events[1].attributes,
        &[
            ("message.type", "RECEIVED"),
            ("messaging.message.id", "int 9"),
            ("messaging.message.payload_size_bytes", "int 100"),
            ("messaging.message.payload_compressed_size_bytes", "int 50"),
        ],
    );
    let link = &span.links[0];
    assert_eq!((&link.trace_id[..], &link.span_id[..], &*link.trace_state), (&[7; 16][..], &[8; 8][..], "k=w,l=m"));
}

#[test]
fn a_status_of_zero_is_unset_and_any_other_is_an_error() {
    let code = |code: u64| only_span(new().message(11, new().number(1, code))).status.unwrap().code;
    assert_eq!([code(0), code(2), code(u64::MAX)], [0, 2, 2]);
    assert_eq!(only_span(new()).status, None);
}

#[test]
fn a_span_with_a_resource_of_its_own_stands_alone() {
    let own = new().message(4, wrapped("own")).message(16, new().text(1, "pod"));
    let entries = translated(&[new().message(1, node()).message(2, new()).message(2, own).message(2, new())]);
    let counts: Vec<_> = entries.iter().map(|entry| entry.scope_spans[0].spans.len()).collect();
    assert_eq!(counts, [2, 1]);
    let attributes = pairs(&entries[1].resource.as_ref().unwrap().attributes);
    assert!(attributes.contains(&("opencensus.resourcetype".into(), "pod".into())));
    assert!(attributes.contains(&("service.name".into(), "shop".into())));
}

#[test]
fn what_would_take_much_memory_is_asked_for_and_refused() {
    let large = new().message(4, new().text(1, "k").text(2, &"v".repeat(MAX_SENDER_BYTES)));
    let mut sender = OpenCensusStream::default();
    let error = sender.translate(&new().message(1, large).0, |_| Ok::<_, ()>(())).unwrap_err();
    assert!(matches!(error, TranslateError::SenderTooLarge));

    // Five bytes of a span repeat all of the node.
    let node = new().message(4, new().text(1, "k").text(2, &"v".repeat(8000)));
    let mut message = new().message(1, node);
    for _ in 0..1000 {
        message = message.message(2, new().message(16, new()));
    }
    let mut granted = 0;
    let error = sender.translate(&message.0, |more| {
        granted += more;
        if granted > 1 << 20 { Err("no") } else { Ok(()) }
    });
    assert!(matches!(error, Err(TranslateError::Memory("no"))), "{error:?}");
}

#[test]
fn json_is_the_same_request() {
    let json = r#"{"node": {"identifier": {"hostName": "h", "pid": 7, "startTimestamp": "2019-03-04T18:52:22Z"},
        "library_info": {"language": "GO_LANG"}, "serviceInfo": {"name": "shop"}, "attributes": {"team": "red"}},
        "spans": [{"traceId": "AQEBAQEBAQEBAQEBAQEBAQ==", "spanId": "AgICAgICAgI=", "name": {"value": "GET /"},
          "kind": "CLIENT", "startTime": "1970-01-01T00:00:01.000000007Z", "unknown": [1],
          "attributes": {"attributeMap": {"a": {"stringValue": {"value": "b"}}, "n": {"intValue": "-3"}}},
          "sameProcessAsParentSpan": true}],
        "resource": {"type": "k8s", "labels": {"pod": "p"}}}
      {"spans": [{"name": {"value": "second"}, "sameProcessAsParentSpan": false}]}"#;
    let requests: Vec<Built> = from_json(json.as_bytes()).map(|request| Built(request.unwrap())).collect();
    assert_eq!(requests.len(), 2);
    let entries = translated(&requests);
    let attributes = pairs(&entries[0].resource.as_ref().unwrap().attributes);
    for expected in [("team", "red"), ("pod", "p"), ("service.name", "shop"), ("telemetry.sdk.language", "go")] {
        assert!(attributes.contains(&(expected.0.into(), expected.1.into())), "{expected:?} in {attributes:?}");
    }
    let span = &entries[0].scope_spans[0].spans[0];
    assert_eq!((&span.trace_id[..], &*span.name, span.kind), (&[1; 16][..], "GET /", 3));
    assert_eq!(span.start_time_unix_nano, 1_000_000_007);
    has(&span.attributes, &[("a", "b"), ("n", "int -3"), ("opencensus.same_process_as_parent_span", "bool true")]);
    has(&entries[1].scope_spans[0].spans[0].attributes, &[("opencensus.same_process_as_parent_span", "bool false")]);
    let error = from_json(br#"{"spans": [{"startTime": "yesterday"}]}"#).next().unwrap().unwrap_err();
    assert_eq!(error.to_string(), "startTime: expected a time in the format of RFC 3339 at byte 25 (line 1)");
}

proptest! {
    #[test]
    fn any_bytes_become_a_request_or_an_error(bytes: Vec<u8>, known in any::<bool>()) {
        let mut sender = OpenCensusStream::default();
        if known {
            sender.translate(&new().message(1, node()).0, |_| Ok::<_, ()>(())).unwrap();
        }
        // As a request, as a span, and as a message in a span.
        let spans = (1..=16).fold(new(), |all, number| all.message(2, new().bytes(number, &bytes)));
        for message in [bytes.clone(), new().bytes(2, &bytes).0, spans.0] {
            if let Ok(translated) = sender.translate(&message, |_| Ok::<_, ()>(())) {
                prop_assert!(scan(Signal::Traces, &translated).is_ok());
            }
        }
        from_json(&bytes).for_each(drop);
    }
}
