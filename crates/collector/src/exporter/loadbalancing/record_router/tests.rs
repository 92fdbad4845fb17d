use bytes::Bytes;
use kubewake_otlp::{json, partition};

use super::*;

/// The keys of all records or points of a request, in order.
fn keys(key: Option<RoutingKey>, signal: Signal, text: &str) -> Vec<u64> {
    let bytes = Bytes::from(json::decode(signal, text.as_bytes()).unwrap());
    let mut router = RecordRouter::new(key.as_ref(), signal);
    let mut keys = Vec::new();
    let grain = router.grain();
    drop(partition(signal, &bytes, grain, |record, point| {
        keys.push(router.routing_key(record, point));
        0
    }));
    keys
}

/// Numbers equal keys: the index of the first key that is the same.
fn alike(keys: &[u64]) -> Vec<usize> {
    keys.iter().map(|key| keys.iter().position(|other| other == key).unwrap()).collect()
}

fn attribute(key: &str, value: &str) -> String {
    format!(r#"{{"key": "{key}", "value": {{"stringValue": "{value}"}}}}"#)
}

fn resource(attributes: &[(&str, &str)]) -> String {
    let attributes: Vec<String> = attributes.iter().map(|(key, value)| attribute(key, value)).collect();
    format!(r#""resource": {{"attributes": [{}]}}"#, attributes.join(","))
}

/// A span of a trace, with a name and a tenant.
fn span(trace: u32, name: &str, tenant: &str) -> String {
    let tenant = attribute("tenant", tenant);
    format!(r#"{{"traceId": "{trace:032x}", "name": "{name}", "attributes": [{tenant}]}}"#)
}

/// The attributes of a resource, and its spans.
type Entry<'a> = (&'a [(&'a str, &'a str)], &'a [String]);

fn spans(of: &[Entry<'_>]) -> String {
    let entry = |(attributes, spans): &Entry<'_>| {
        format!(r#"{{{}, "scopeSpans": [{{"spans": [{}]}}]}}"#, resource(attributes), spans.join(","))
    };
    format!(r#"{{"resourceSpans": [{}]}}"#, of.iter().map(entry).collect::<Vec<_>>().join(","))
}

/// Two services with traces that go through both. One of them sends from two hosts, attributes in any order.
fn shop() -> String {
    spans(&[
        (&[("service.name", "shop"), ("host", "a")], &[span(1, "get", "x"), span(2, "put", "y")]),
        (&[("host", "a"), ("service.name", "shop")], &[span(1, "put", "x")]),
        (&[("service.name", "shop"), ("host", "b")], &[span(3, "get", "y")]),
        (&[("service.name", "till")], &[span(2, "get", "x")]),
        (&[], &[span(3, "get", "x")]),
    ])
}

#[test]
fn spans_stay_together_by_what_was_asked_for() {
    let attributes = |names: &[&str]| RoutingKey::Attributes(names.iter().map(|name| (*name).to_owned()).collect());
    for (key, expected) in [
        (None, [0, 1, 0, 3, 1, 3]),
        (Some(RoutingKey::TraceId), [0, 1, 0, 3, 1, 3]),
        (Some(RoutingKey::Service), [0, 0, 0, 0, 4, 5]),
        (Some(RoutingKey::Resource), [0, 0, 0, 3, 4, 5]),
        (Some(attributes(&["tenant"])), [0, 1, 0, 1, 0, 0]),
        (Some(attributes(&["host"])), [0, 0, 0, 3, 4, 4]),
        (Some(attributes(&["span.name"])), [0, 1, 1, 0, 0, 0]),
        (Some(attributes(&["service.name", "tenant"])), [0, 1, 0, 1, 4, 5]),
    ] {
        assert_eq!(alike(&keys(key.clone(), Signal::Traces, &shop())), expected, "{key:?}");
    }
}

#[test]
fn a_key_does_not_depend_on_the_request() {
    let alone = spans(&[(&[("service.name", "till")], &[span(2, "get", "x")])]);
    let attributes = RoutingKey::Attributes(vec!["service.name".into(), "tenant".into()]);
    for key in [RoutingKey::TraceId, RoutingKey::Service, RoutingKey::Resource, attributes] {
        let all = keys(Some(key.clone()), Signal::Traces, &shop());
        assert_eq!(keys(Some(key), Signal::Traces, &alone), all[4..5]);
    }
}

#[test]
fn log_records_stay_together_by_service_and_go_anywhere_without_a_trace() {
    let record = |trace: u32| format!(r#"{{"traceId": "{trace:032x}", "severityNumber": {trace}}}"#);
    let text = format!(
        r#"{{"resourceLogs": [{{{}, "scopeLogs": [{{"logRecords": [{}, {}, {{}}, {{}}]}}]}}]}}"#,
        resource(&[("service.name", "shop")]),
        record(1),
        record(2)
    );
    assert_eq!(alike(&keys(None, Signal::Logs, &text)), [0, 0, 0, 0]);
    assert_eq!(alike(&keys(Some(RoutingKey::TraceId), Signal::Logs, &text)), [0, 1, 2, 3]);
    let severity = RoutingKey::Attributes(vec!["log.severity".into()]);
    assert_eq!(alike(&keys(Some(severity), Signal::Logs, &text)), [0, 1, 2, 2]);
}

#[test]
fn points_stay_together_by_their_metric_or_their_stream() {
    let point = |tenant: &str| format!(r#"{{"asInt": "1", "attributes": [{}]}}"#, attribute("tenant", tenant));
    let metric = |name: &str, points: &[String]| {
        format!(r#"{{"name": "{name}", "gauge": {{"dataPoints": [{}]}}}}"#, points.join(","))
    };
    let text = format!(
        r#"{{"resourceMetrics": [{{{}, "scopeMetrics": [{{"metrics": [{}, {}]}}]}}]}}"#,
        resource(&[("service.name", "shop")]),
        metric("cpu", &[point("x"), point("y"), point("x")]),
        metric("memory", &[point("x")])
    );
    assert_eq!(alike(&keys(None, Signal::Metrics, &text)), [0, 0], "of one service");
    assert_eq!(alike(&keys(Some(RoutingKey::Metric), Signal::Metrics, &text)), [0, 1]);
    assert_eq!(alike(&keys(Some(RoutingKey::StreamId), Signal::Metrics, &text)), [0, 1, 0, 3]);
    let tenant = RoutingKey::Attributes(vec!["tenant".into()]);
    assert_eq!(alike(&keys(Some(tenant), Signal::Metrics, &text)), [0, 1, 0, 0]);
}
