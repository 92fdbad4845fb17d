//! Seeds of the fuzzers: small requests of every kind.

use kubewake_otlp::wire::{put_bytes, put_fixed64, put_tag, put_uint};

fn field(number: u32, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_bytes(&mut out, number, content);
    out
}

fn attribute(number: u32, key: &str, value: &str) -> Vec<u8> {
    let value = field(2, &field(1, value.as_bytes()));
    field(number, &[field(1, key.as_bytes()), value].concat())
}

/// A request with two scopes, of these records and of none.
fn request(records: &[Vec<u8>]) -> Vec<u8> {
    let resource = field(1, &attribute(1, "service.name", "shop"));
    let records = records.iter().flat_map(|record| field(2, record)).collect::<Vec<u8>>();
    let scope = field(2, &[field(1, &field(1, b"scope")), records, field(3, b"schema")].concat());
    field(1, &[resource, scope, field(2, b""), field(3, b"schema"), field(1000, b"unknown")].concat())
}

fn span(trace: u8) -> Vec<u8> {
    let mut out = [field(1, &[trace; 16]), field(2, &[trace; 8]), field(3, b"ot=th:0"), field(5, b"get")].concat();
    put_uint(&mut out, 6, 2);
    put_fixed64(&mut out, 7, 1);
    out.extend([attribute(9, "a", "1"), attribute(9, "b", "2")].concat());
    out.extend(field(11, &field(2, b"event")));
    out
}

/// A span without sampling information, with attributes that are not consecutive.
fn plain_span(trace: u8) -> Vec<u8> {
    let ids = [field(1, &[trace; 16]), field(2, &[trace; 8])].concat();
    [ids, attribute(9, "a", "1"), field(11, &field(2, b"event")), attribute(9, "b", "2")].concat()
}

/// A request with one scope, in which the tag of a span takes two bytes.
fn with_long_tags(records: &[Vec<u8>]) -> Vec<u8> {
    let records = records.iter().flat_map(|record| [&[0x92, 0], &field(2, record)[1..]].concat());
    field(1, &field(2, &records.collect::<Vec<u8>>()))
}

fn log(trace: u8) -> Vec<u8> {
    let body = field(5, &field(6, &attribute(1, "a", "in a list")));
    [body, attribute(6, "gone", "1"), field(9, &[trace; 16]), field(10, &[trace; 8])].concat()
}

fn metric(kind: u32, attributes: u32) -> Vec<u8> {
    let mut point = attribute(attributes, "a", "1");
    put_fixed64(&mut point, 3, 1);
    let mut data = field(1, &point).repeat(3);
    if matches!(kind, 7 | 9 | 10) {
        put_uint(&mut data, 2, 2);
    }
    [field(1, b"cpu"), field(3, b"s"), field(kind, &data)].concat()
}

pub type Seeds = Vec<(String, Vec<u8>)>;

/// The seeds of each target.
pub fn all() -> Vec<(&'static str, Seeds)> {
    let targets = ["scan", "split", "retain", "rewrite"].map(|target| (target, seeds()));
    targets.into_iter().chain([("opencensus", opencensus())]).collect()
}

/// Requests of OpenCensus: 0 and protobuf, or 1 and JSON.
fn opencensus() -> Seeds {
    let text = |number, text: &str| field(number, &field(1, text.as_bytes()));
    let entry = |key: &str, value: &[u8]| field(1, &[field(1, key.as_bytes()), field(2, value)].concat());
    let node = field(1, &[field(1, &field(1, b"host")), field(3, &field(1, b"shop"))].concat());
    let attributes = [entry("a", &text(1, "b")), entry("span.kind", &text(1, "producer"))].concat();
    let mut message = Vec::new();
    put_uint(&mut message, 1, 1);
    put_uint(&mut message, 2, 7);
    let events = [field(1, &field(2, &text(1, "note"))), field(1, &field(3, &message))].concat();
    let span =
        [field(1, &[1; 16]), field(2, &[2; 8]), text(4, "get"), field(7, &attributes), field(9, &events)].concat();
    let request = [node, field(2, &span), field(2, &[&span[..], &field(16, &field(1, b"pod"))].concat())].concat();
    let json = br#"{"node": {"attributes": {"a": "b"}}, "spans": [{"name": {"value": "n"}, "startTime": "2026-01-31T12:00:00Z",
        "attributes": {"attributeMap": {"a": {"intValue": "1"}}}, "sameProcessAsParentSpan": true}]} {"spans": []}"#;
    let seed = |name: &str, choice: u8, bytes: &[u8]| (name.to_owned(), [&[choice], bytes].concat());
    vec![
        seed("protobuf", 0, &request),
        seed("cut", 0, &request[..request.len() - 5]),
        seed("json", 1, json),
        seed("json-cut", 1, &json[..json.len() - 40]),
        seed("empty", 0, &[]),
    ]
}

/// Inputs in the targets' format: a byte that selects, and a request. The byte is the signal plus three times
/// the other selection.
fn seeds() -> Seeds {
    let traces = request(&[span(1), span(2), span(0), span(1)]);
    let logs = request(&[log(1), log(0)]);
    let metrics = request(&[metric(5, 7), metric(7, 7), metric(9, 9), metric(10, 1), metric(11, 7)]);
    let two_data = request(&[[metric(5, 7), metric(7, 7)].concat()]);
    let plain = [plain_span(1), plain_span(2), plain_span(3), plain_span(3)];
    let twice = [traces.clone(), traces.clone()].concat();
    let mut group = Vec::new();
    put_tag(&mut group, 100, 3);
    let requests = [
        ("traces", 0u8, traces.clone()),
        ("traces-twice", 0, twice),
        ("plain-traces", 0, request(&plain)),
        ("long-tags", 0, with_long_tags(&plain)),
        ("metrics", 1, metrics.clone()),
        ("metric-with-two-data", 1, two_data),
        ("logs", 2, logs),
        ("metrics-as-traces", 0, metrics),
        ("cut", 0, traces[..traces.len() - 9].to_vec()),
        ("group", 0, request(&[group])),
        ("short-trace-id", 0, request(&[field(1, &[1; 15])])),
        ("empty", 0, Vec::new()),
    ];
    let choices = [("", 0u8), ("-few", 9), ("-some", 60), ("-many", 189)];
    requests
        .iter()
        .flat_map(|(name, signal, request)| {
            choices.map(|(suffix, choice)| (format!("{name}{suffix}"), [&[signal + choice], &request[..]].concat()))
        })
        .collect()
}
