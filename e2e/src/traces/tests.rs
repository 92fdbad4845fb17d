//! When traces match their expected form.

use serde_json::{Value, json};

use super::{CallerVisibility, ExpectedTrace, SpanSet, TraceTree};

/// A request of one service; spans as (id, parent, name), in trace `t` unless the id says `trace/id`.
fn request(service: &str, spans: &[(&str, &str, &str)]) -> Value {
    let spans: Vec<Value> = spans.iter().map(|(id, parent, name)| span(id, parent, name)).collect();
    json!({"resourceSpans": [{
        "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]},
        "scopeSpans": [{"spans": spans}],
    }]})
}

fn span(id: &str, parent: &str, name: &str) -> Value {
    let (trace, id) = id.split_once('/').unwrap_or(("t", id));
    let kind = if name.starts_with("POST") { 2 } else { 1 };
    let mut span = json!({"traceId": trace, "spanId": id, "name": name, "kind": kind});
    match parent.strip_prefix("~") {
        Some(link) => {
            let (trace, id) = link.split_once('/').unwrap_or(("t", link));
            span["links"] = json!([{"traceId": trace, "spanId": id}]);
        }
        None => span["parentSpanId"] = parent.into(),
    }
    span
}

fn spans(requests: &[Value]) -> SpanSet {
    let mut spans = SpanSet::default();
    requests.iter().for_each(|request| spans.add(request));
    spans
}

fn differences(spans: &SpanSet, callers: CallerVisibility, expected: &str) -> String {
    ExpectedTrace::parse(expected, callers).differences(&TraceTree::from_trace(spans, "t", callers)).unwrap_or_default()
}

#[test]
fn what_is_shown_is_what_is_expected() {
    let spans = spans(&[request("o", &[("1", "", "a"), ("2", "1", "b"), ("3", "1", "b"), ("4", "3", "c")])]);
    let tree = TraceTree::from_trace(&spans, "t", CallerVisibility::Trusted).to_string();
    assert_eq!(tree, "a [o] internal\n  b [o] internal x2\n    c [o] internal\n");
    assert_eq!(differences(&spans, CallerVisibility::Trusted, &tree), "");
    assert_eq!(differences(&spans, CallerVisibility::Trusted, &tree.replace(" x2", "  # whatever")), "");
}

#[test]
fn whatever_is_missing_or_too_much_is_told() {
    let spans = spans(&[request("o", &[("1", "", "a"), ("2", "1", "b"), ("3", "", "root"), ("4", "9", "lost")])]);
    let expected = "
        a [o] internal
          b [o] internal x2
          c [o] internal
            d [o] internal
          ? e [o] internal
    ";
    let told = differences(&spans, CallerVisibility::Trusted, expected);
    for line in ["c [o] internal", "root [o] internal", "ORPHAN lost [o] internal", "occurs 1 times, not 2"] {
        assert!(told.contains(line), "{told}");
    }
    assert!(!told.contains("> d"), "a branch is told once: {told}");
    assert!(!told.contains("e [o]"), "{told}");
}

#[test]
fn what_is_too_much_is_told_whatever_is_missing() {
    let spans = spans(&[request("o", &[("1", "", "a"), ("2", "1", "b"), ("4", "9", "lost")])]);
    let tree = TraceTree::from_trace(&spans, "t", CallerVisibility::Trusted);
    assert_eq!(tree.roots().collect::<Vec<_>>(), ["ORPHAN lost [o] internal", "a [o] internal"]);
    let unexpected =
        |text: &str| ExpectedTrace::parse(text, CallerVisibility::Trusted).unexpected(&tree).unwrap_or_default();
    let text = "
        a [o] internal
          b [o] internal
            c [o] internal
        other [o] internal
    ";
    assert!(unexpected(text).contains("not expected:\n    ORPHAN lost [o] internal\n"), "{}", unexpected(text));
    assert_eq!(unexpected(&format!("{text}ORPHAN lost [o] internal")), "");
}

#[test]
fn the_insides_of_an_api_server_are_folded_into_its_requests() {
    let server = request("apiserver", &[("1", "", "authentication"), ("2", "1", "POST x"), ("3", "2", "Create")]);
    let spans = spans(&[server, request("o", &[("4", "3", "stamp")])]);
    let expected = "POST x [apiserver] server\n  stamp [o] internal";
    assert_eq!(differences(&spans, CallerVisibility::Trusted, expected), "");
    let inside = request("apiserver", &[("6", "5", "Create")]);
    let mut lost = spans.clone();
    lost.add(&inside);
    assert!(differences(&lost, CallerVisibility::Trusted, expected).contains("ORPHAN Create"));
}

#[test]
fn callers_that_are_not_trusted_are_followed_by_links() {
    let ours = request("o", &[("1", "", "a"), ("2", "1", "create"), ("3", "~0/0", "other")]);
    let server = request("apiserver", &[("u/1", "~2", "POST x"), ("u/2", "1", "Create")]);
    let spans = spans(&[ours, server, request("w", &[("u/3", "2", "stamp")])]);
    let expected = "
        a [o] internal
          create [o] internal
            POST x [apiserver] server
              stamp [w] internal
        other [o] internal ~> somewhere
    ";
    assert_eq!(differences(&spans, CallerVisibility::Linked, expected), "");
    assert!(differences(&spans, CallerVisibility::Trusted, expected).contains("missing"));
}

#[test]
fn lines_of_an_api_server_that_nobody_hears_are_left_out() {
    let spans = spans(&[request("o", &[("1", "", "stamp"), ("2", "1", "reconcile")])]);
    let expected = "
        POST x [apiserver] server
          stamp [o] internal
            reconcile [o] internal
              POST y [apiserver] server
    ";
    assert_eq!(differences(&spans, CallerVisibility::Hidden, expected), "");
}
