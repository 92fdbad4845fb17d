//! Results of queries, and their presentation.

use std::sync::Arc;

use super::*;
use crate::{
    store::{GroupedSpans, StoreLimits, StoredTrace, TraceId, TraceStore},
    testing::{SpanBuilder, request},
};

const MS: u64 = 1_000_000;

fn span(trace: u128, id: u64) -> SpanBuilder {
    SpanBuilder::new(trace, id, "work")
}

fn store(requests: Vec<(&str, Vec<SpanBuilder>)>) -> TraceStore {
    let store = TraceStore::new(StoreLimits::default());
    for (service, spans) in requests {
        store.add(GroupedSpans::parse(&request(service, spans)), 1);
    }
    store
}

fn trace(requests: Vec<(&str, Vec<SpanBuilder>)>) -> Arc<StoredTrace> {
    store(requests).snapshot().traces.remove(0)
}

fn found(store: &TraceStore, filter: TraceFilter) -> Vec<u128> {
    let found = search(&store.snapshot(), &filter, 100);
    found.traces.iter().map(|trace| u128::from_be_bytes(trace.id.0)).collect()
}

fn attributes(pairs: &[(&str, &str)]) -> TraceFilter {
    let attributes = pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    TraceFilter { attributes, ..TraceFilter::default() }
}

#[test]
fn what_is_asked_of_a_span_is_true_of_one_span() {
    let store = store(vec![
        ("a", vec![span(1, 1).text("k", "v").with_times(1, 2), span(1, 2).text("l", "w").with_times(1, 2)]),
        ("b", vec![span(2, 1).text("k", "v").text("l", "w").int("code", 500).with_times(3, 4)]),
    ]);
    assert_eq!(found(&store, attributes(&[("k", "v")])), [2, 1]);
    assert_eq!(found(&store, attributes(&[("k", "v"), ("l", "w")])), [2]);
    assert_eq!(found(&store, attributes(&[("code", "500"), ("service.name", "b")])), [2]);
    assert_eq!(found(&store, attributes(&[("k", "other")])), [] as [u128; 0]);
    assert_eq!(found(&store, TraceFilter { service: Some("a".into()), ..attributes(&[("l", "w")]) }), [1]);
    assert_eq!(
        found(&store, TraceFilter { service: Some("a".into()), ..attributes(&[("code", "500")]) }),
        [] as [u128; 0]
    );
}

#[test]
fn what_jaeger_has_as_tags_is_found_as_such() {
    let store =
        store(vec![("a", vec![span(1, 1).with_times(1, 2).kind(2).error("no"), span(2, 1).with_times(3, 4).kind(3)])]);
    assert_eq!(found(&store, attributes(&[("error", "true")])), [1]);
    assert_eq!(found(&store, attributes(&[("span.kind", "client")])), [2]);
    assert_eq!(found(&store, attributes(&[("otel.status_code", "ERROR"), ("span.kind", "server")])), [1]);
    assert_eq!(found(&store, TraceFilter { errors: true, ..TraceFilter::default() }), [1]);
}

#[test]
fn objects_are_found_as_kubectl_names_them() {
    assert!(
        filter::matches_kind("<x>/../Head", "<x>/../Head") && filter::matches_kind("Head", "heads.demo.kubewake.io")
    );
    let about = |trace, kind: &str, name: &str| {
        span(trace, 1)
            .text("k8s.object.kind", kind)
            .text("k8s.object.name", name)
            .text("k8s.namespace.name", "n")
            .with_times(trace as u64, 9)
    };
    let pod = span(4, 1).text("k8s.pod.name", "p").text("k8s.namespace.name", "n").with_times(4, 9);
    let spans = vec![about(1, "NetworkPolicy", "x"), about(2, "Head", "x"), about(3, "Head", "y"), pod];
    let store = store(vec![("a", spans)]);
    let object = |kind: Option<&str>, name: Option<&str>| TraceFilter {
        object: ObjectFilter {
            kind: kind.map(str::to_owned),
            name: name.map(str::to_owned),
            namespace: Some("n".into()),
        },
        ..TraceFilter::default()
    };
    assert_eq!(found(&store, object(Some("heads"), None)), [3, 2]);
    assert_eq!(found(&store, object(Some("head.demo.kubewake.io"), Some("x"))), [2]);
    assert_eq!(found(&store, object(None, Some("x"))), [2, 1]);
    assert_eq!(found(&store, object(Some("networkpolicies"), None)), [1]);
    assert_eq!(found(&store, object(Some("pod"), Some("p"))), [4]);
    assert_eq!(found(&store, object(Some("hea"), None)), [] as [u128; 0]);
}

#[test]
fn traces_are_found_by_time_and_duration_the_newest_first() {
    let spans = (1..=5u64).map(|n| span(n.into(), 1).with_times(n * 100, n * 100 + n));
    let store = store(vec![("a", spans.collect())]);
    assert_eq!(found(&store, TraceFilter { start: Some(200..=400), ..TraceFilter::default() }), [4, 3, 2]);
    assert_eq!(found(&store, TraceFilter { duration: Some(4..=u64::MAX), ..TraceFilter::default() }), [5, 4]);
    assert_eq!(
        found(&store, TraceFilter { id: Some(format!("{:031x}", 0)), ..TraceFilter::default() }),
        [5, 4, 3, 2, 1]
    );
    let two = search(&store.snapshot(), &TraceFilter::default(), 2);
    assert_eq!((two.traces.len(), two.matched), (2, 5));
    assert_eq!(two.traces[0].id, TraceId(5u128.to_be_bytes()));
}

fn kinds(arranged: &ArrangedTrace<'_>) -> Vec<(u64, WarningKind)> {
    arranged.warnings.iter().map(|warning| (warning.span.unwrap_or_default(), warning.kind)).collect()
}

#[test]
fn circles_of_parents_are_broken() {
    let spans = vec![
        span(1, 1).with_parent(3).with_times(1, 9),
        span(1, 2).with_parent(1).with_times(2, 9),
        span(1, 3).with_parent(2).with_times(3, 9),
        span(1, 4).with_parent(4).with_times(4, 9),
        span(1, 5).with_parent(3).with_times(5, 9),
    ];
    let trace = trace(vec![("a", spans)]);
    let arranged = arrange(&trace, u64::MAX / 2);
    assert_eq!(kinds(&arranged), [(1, WarningKind::Cycle), (4, WarningKind::Cycle)]);
    let parents: Vec<_> = arranged.spans.iter().map(|placed| placed.parent).collect();
    assert_eq!(parents, [None, Some(1), Some(2), None, Some(3)]);
    assert!(!summarize(&trace).complete);
}

#[test]
fn a_long_circle_takes_no_time() {
    let count = 50_000u64;
    let spans = (1..=count).map(|n| span(1, n).with_parent(n % count + 1).with_times(n, n + 1)).collect();
    let trace = trace(vec![("a", spans)]);
    let arranged = arrange(&trace, u64::MAX / 2);
    assert_eq!(kinds(&arranged), [(1, WarningKind::Cycle)]);
}

#[test]
fn what_is_wrong_is_told_and_not_without_end() {
    let now = 1000 * MS;
    let mut spans = vec![
        span(1, 1).with_times(MS, 2 * MS),
        span(1, 1).with_times(MS, 3 * MS),
        span(1, 2).with_parent(1),
        span(1, 3).with_parent(1).with_times(u64::MAX - 5, u64::MAX),
    ];
    let arranged_few = trace(vec![("a", spans.clone())]);
    let few = arrange(&arranged_few, now);
    assert_eq!(kinds(&few), [(1, WarningKind::DuplicateSpan), (2, WarningKind::NoTime), (3, WarningKind::Future)]);
    spans.extend((10..510).map(|id| span(1, id).with_parent(7).with_times(MS, 2 * MS)));
    let trace = trace(vec![("a", spans)]);
    let many = arrange(&trace, now);
    let mut missing = many.warnings.iter().filter(|warning| warning.kind == WarningKind::MissingParent);
    assert_eq!(missing.clone().count(), 101);
    assert_eq!(missing.next_back().unwrap().message, "400 more spans have this warning");
    assert_eq!(summarize(&trace).orphans, 500);
}

#[test]
fn clocks_that_differ_are_made_good() {
    let trace = trace(vec![
        ("client", vec![span(1, 1).with_times(100 * MS, 200 * MS)]),
        // The clock of this service is 60 ms behind.
        (
            "server",
            vec![
                span(1, 2).with_parent(1).with_times(50 * MS, 130 * MS),
                span(1, 3).with_parent(2).with_times(60 * MS, 70 * MS),
            ],
        ),
        // Asynchronous work may begin at any time.
        ("later", vec![span(1, 4).with_parent(1).with_times(900 * MS, 1000 * MS)]),
        // Differences below a millisecond are ignored.
        ("close", vec![span(1, 5).with_parent(1).with_times(100 * MS - 1000, 110 * MS)]),
    ]);
    let arranged = arrange(&trace, u64::MAX / 2);
    let placed: Vec<_> =
        arranged.spans.iter().map(|placed| (placed.span.entry.id, placed.start / MS, placed.skew / MS)).collect();
    assert_eq!(placed, [(5, 99, 0), (1, 100, 0), (2, 110, 60), (3, 120, 60), (4, 900, 0)]);
    assert_eq!(kinds(&arranged), [(2, WarningKind::ClockSkew)]);
}

#[test]
fn a_trace_is_called_by_its_request() {
    let named = |id, name: &str| SpanBuilder::new(1, id, name);
    let server = vec![
        named(1, "authentication").kind(1).with_times(1, 2),
        named(2, "POST /heads").kind(2).with_parent(1).with_times(2, 9),
        named(3, "authorization").kind(1).with_parent(2).with_times(3, 4),
    ];
    assert_eq!(find_root(&trace(vec![("apiserver", server)])).unwrap().name(), "POST /heads");
    let job = vec![named(1, "job").kind(1).with_times(1, 9)];
    let called = vec![named(2, "GET /x").kind(2).with_parent(1).with_times(2, 3)];
    assert_eq!(find_root(&trace(vec![("job", job), ("server", called)])).unwrap().name(), "job", "it is another one's");
    let orphan = vec![named(5, "later").with_parent(4).with_times(1, 9), named(6, "root").with_times(2, 3)];
    assert_eq!(find_root(&trace(vec![("a", orphan)])).unwrap().name(), "root");
}

#[test]
fn links_can_be_followed_back() {
    let store = store(vec![(
        "a",
        vec![
            span(1, 1).with_times(1, 2),
            SpanBuilder::new(2, 7, "later").link(1, 1).with_times(3, 4),
            span(3, 1).link(9, 9),
        ],
    )]);
    let links = find_incoming_links(&store.snapshot(), TraceId(1u128.to_be_bytes()));
    assert_eq!(links.len(), 1);
    assert_eq!((links[0].span, links[0].to, links[0].root.as_str()), (7, 1, "later"));
}

#[test]
fn times_that_contradict_each_other_are_told_in_words() {
    let timed = |id, start, end| SpanBuilder::new(1, id, "s").with_times(start, end);
    let trace = trace(vec![(
        "a",
        vec![
            timed(1, 0, 90_000),
            timed(2, 91_000, 0),
            timed(3, 92_000, 90_000),
            timed(4, 93_000, 93_000),
            timed(5, 3_600_025_000_000, 1_000),
        ],
    )]);
    let arranged = arrange(&trace, 4_000_000_000_000);
    let told: Vec<_> =
        arranged.warnings.iter().map(|warning| (warning.span.unwrap(), warning.message.as_str())).collect();
    assert!(arranged.warnings.iter().all(|warning| warning.kind == WarningKind::BadTime));
    assert_eq!(
        told,
        [
            (1, "the span has no start time; it is shown with zero duration at its end"),
            (2, "the span has no end time; it is shown with zero duration at its start"),
            (3, "the span ends 2 µs before it starts; it is shown with zero duration at its start"),
            (5, "the span ends 60 min before it starts; it is shown with zero duration at its start"),
        ]
    );
}

#[test]
fn what_came_can_be_sent_on() {
    let sent =
        request("a", vec![span(1, 1).text("k", "v").with_times(1, 2), span(1, 2).with_parent(1).with_times(1, 2)]);
    let first = TraceStore::new(StoreLimits::default());
    first.add(GroupedSpans::parse(&sent), 1);
    let json = encode_otlp_json(&first.snapshot().traces);
    let again = kubewake_otlp::json::decode(kubewake_otlp::Signal::Traces, &json).unwrap();
    let second = TraceStore::new(StoreLimits::default());
    assert_eq!(second.add(GroupedSpans::parse(&again), 1).spans, 2);
    assert_eq!(first.add(GroupedSpans::parse(&again), 1).spans, 0, "it is the same");
}

#[test]
fn an_export_has_every_span_and_marks_the_values_that_it_cannot_hold() {
    // Depths around the limit of JSON, one far beyond, and an attribute that is no message; in spans and in an
    // event.
    let mut spans = vec![SpanBuilder::new(1, 999, "broken").with_times(1, 2).broken_attribute()];
    spans.extend(
        (90..110).map(|depth| span(1, depth).with_times(1, 2).text("k", "kept").nested("deep", depth as usize)),
    );
    spans.push(span(1, 500).with_times(1, 2).nested("deep", 500));
    spans.push(span(1, 501).with_times(1, 2).event_with_nested("deep", 500));
    let sent = spans.len();
    let trace = trace(vec![("a", spans)]);
    let json = encode_otlp_json(&[trace]);
    let again = kubewake_otlp::json::decode(kubewake_otlp::Signal::Traces, &json).unwrap();
    assert_eq!(GroupedSpans::parse(&again).spans(), sent);
    let text = String::from_utf8(json).unwrap();
    assert_eq!(text.matches("\"kept\"").count(), 20, "what can be written is");
    let whole = text.matches("\"leaf\"").count();
    let cut = text.matches("(omitted by the viewer").count();
    assert!(whole > 0 && cut > 2, "{whole} {cut}");
    assert_eq!(whole + cut, sent, "{text}");
}

#[test]
fn who_calls_whom_is_counted() {
    let store = store(vec![
        ("a", vec![span(1, 1).with_times(5, 9), span(1, 2).with_parent(1).with_times(5, 9)]),
        ("b", vec![span(1, 3).with_parent(2).with_times(5, 9), span(1, 4).with_parent(2).with_times(5, 9)]),
    ]);
    let calls = count_dependencies(&store.snapshot(), &(0..=10));
    assert_eq!(calls.into_iter().collect::<Vec<_>>(), [(("a".to_owned(), "b".to_owned()), 2)]);
    assert!(count_dependencies(&store.snapshot(), &(6..=10)).is_empty());
}
