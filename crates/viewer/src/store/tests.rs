//! The store compared with a model, and with malformed data.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;
use crate::testing::{SpanBuilder, request};

fn limits(bytes: usize) -> StoreLimits {
    StoreLimits { bytes, ..StoreLimits::default() }
}

fn add(store: &TraceStore, spans: Vec<SpanBuilder>) -> AddedSpans {
    store.add(GroupedSpans::parse(&request("service", spans)), 1)
}

fn span(trace: u128, id: u64) -> SpanBuilder {
    SpanBuilder::new(trace, id, "work").with_times(10, 20)
}

fn id(trace: u128) -> TraceId {
    TraceId(trace.to_be_bytes())
}

#[derive(Clone, Debug)]
struct Step {
    service: u8,
    spans: Vec<(u8, u64, usize)>,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let span = (0u8..20, 1u64..50, 0usize..3000);
    let step = (0u8..4, prop::collection::vec(span, 1..12)).prop_map(|(service, spans)| Step { service, spans });
    prop::collection::vec(step, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_limit_holds_and_the_quietest_traces_go_first(steps in steps(), limit in 4_000usize..200_000) {
        let store = TraceStore::new(limits(limit));
        // In order of their last growth.
        let mut order: VecDeque<TraceId> = VecDeque::new();
        let mut sent = 0u64;
        let mut dropped = 0;
        for step in steps {
            let spans = step.spans.iter().map(|(trace, id, size)| {
                span(u128::from(*trace) + 1, *id).text("filling", &"x".repeat(*size))
            });
            let spans: Vec<_> = spans.collect();
            sent += spans.len() as u64;
            let before: HashSet<_> = store.snapshot().traces.iter().map(|trace| (trace.id, trace.version)).collect();
            store.add(GroupedSpans::parse(&request(&format!("service {}", step.service), spans)), 1);
            let snapshot = store.snapshot();
            prop_assert!(snapshot.figures.bytes <= limit, "{:?}", snapshot.figures);
            for trace in snapshot.traces.iter().filter(|trace| !before.contains(&(trace.id, trace.version))) {
                order.retain(|other| *other != trace.id);
                order.push_back(trace.id);
            }
            // The store has the traces that grew last, in that order.
            let here: Vec<_> = snapshot.traces.iter().map(|trace| trace.id).collect();
            let gone = order.len().saturating_sub(here.len());
            dropped += order.drain(..gone).count();
            prop_assert_eq!(&here, &order.iter().copied().collect::<Vec<_>>());
            prop_assert!(snapshot.figures.dropped_traces >= dropped as u64);
            let spans: usize = snapshot.traces.iter().map(|trace| trace.spans().count()).sum();
            prop_assert_eq!(snapshot.figures.spans, spans);
        }
        prop_assert_eq!(store.figures().received_spans, sent);
    }

    #[test]
    fn nothing_is_left_of_what_went(steps in steps()) {
        let store = TraceStore::new(limits(1 << 20));
        for step in &steps {
            let spans = step.spans.iter().map(|(trace, id, size)| span(u128::from(*trace) + 1, *id).text("k", &"x".repeat(*size)));
            add(&store, spans.collect());
        }
        let mut inner = store.inner.write();
        inner.evict_until(usize::MAX / 2);
        prop_assert_eq!(inner.figures().bytes, 0);
        prop_assert_eq!((inner.figures().traces, inner.figures().spans), (0, 0));
    }

    #[test]
    fn bytes_that_are_no_request_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let store = TraceStore::new(StoreLimits::default());
        store.add(GroupedSpans::parse(&bytes), 1);
    }
}

#[test]
fn a_span_that_is_sent_again_is_kept_once() {
    let store = TraceStore::new(StoreLimits::default());
    assert_eq!(add(&store, vec![span(1, 1), span(1, 2), span(1, 1)]).spans, 2);
    assert_eq!(add(&store, vec![span(1, 1)]).spans, 0);
    // A span with the same id and other content is kept.
    assert_eq!(add(&store, vec![span(1, 1).text("k", "v")]).spans, 1);
    assert_eq!(store.figures().spans, 3);
}

#[test]
fn two_versions_of_a_span_are_each_kept_once() {
    let store = TraceStore::new(StoreLimits::default());
    let versions = |all: &str| all.chars().map(|version| span(1, 1).text("version", &version.to_string())).collect();
    assert_eq!(add(&store, versions("ababa")).spans, 2);
    for again in ["a", "b", "a", "ab", "ba"] {
        assert_eq!(add(&store, versions(again)).spans, 0, "{again}");
    }
    assert_eq!(add(&store, versions("abc")).spans, 1);
    assert_eq!(store.figures().spans, 3);
}

#[test]
fn a_trace_without_end_is_cut_and_says_so() {
    let store = TraceStore::new(StoreLimits { trace_spans: 1000, ..StoreLimits::default() });
    add(&store, vec![span(2, 1)]);
    for part in 0..20u64 {
        add(&store, (1..=100).map(|number| span(1, part * 100 + number)).collect());
    }
    let trace = store.trace(id(1)).unwrap();
    assert_eq!((trace.spans, trace.surplus_spans), (1000, 1000));
    assert_eq!((store.figures().dropped_spans, store.figures().refused_spans), (0, 1000));
    assert!(store.trace(id(2)).is_some(), "it did not push out the other one");
}

#[test]
fn one_trace_takes_a_quarter_at_most() {
    let store = TraceStore::new(limits(1 << 20));
    add(&store, vec![span(2, 1)]);
    for number in 1..100 {
        // Each with a distinct name and sender, which are interned.
        let large = span(1, number).text("k", &"x".repeat(10_000));
        store.add(GroupedSpans::parse(&request(&format!("{number}{}", "s".repeat(5000)), vec![large])), 1);
    }
    let trace = store.trace(id(1)).unwrap();
    assert!(trace.spans < 30 && trace.surplus_spans > 60, "{} {}", trace.spans, trace.surplus_spans);
    assert!(store.figures().bytes < 300 << 10);
    assert!(store.trace(id(2)).is_some());
}

#[test]
fn what_is_larger_than_the_store_is_counted_and_not_kept() {
    let store = TraceStore::new(limits(10_000));
    let rejected = RejectedSpans { invalid: 0, surplus: 1 };
    let large = span(1, 1).text("k", &"x".repeat(100_000));
    assert_eq!(add(&store, vec![large]), AddedSpans { traces: vec![id(1)], spans: 0, rejected });
    let figures = store.figures();
    assert_eq!((figures.traces, figures.refused_traces, figures.refused_spans), (0, 1, 1));
    assert_eq!((figures.dropped_traces, figures.dropped_spans), (0, 0), "nothing had to make room");
}

#[test]
fn a_trace_that_is_too_large_is_one_however_many_requests_it_comes_in() {
    let store = TraceStore::new(limits(10_000));
    let large = |trace, number| span(trace, number).text("k", &"x".repeat(100_000));
    for number in 1..=100 {
        add(&store, vec![large(1, number), large(2, number)]);
    }
    let figures = store.figures();
    assert_eq!((figures.refused_traces, figures.refused_spans), (2, 200));
    for trace in 3..1000 {
        add(&store, vec![large(trace, 1)]);
    }
    assert_eq!(store.figures().refused_traces, 999);
}

#[test]
fn of_a_larger_request_never_fewer_spans_are_kept() {
    let kept = |sent: u64| {
        let store = TraceStore::new(limits(1 << 20));
        // Each with a distinct name, object and value.
        let named =
            |id| SpanBuilder::new(1, id, &format!("work number {id}")).with_times(10, 20).text("k", &id.to_string());
        let about = |id| named(id).text("k8s.object.kind", "Pod").text("k8s.object.name", &format!("pod-{id}"));
        let added = add(&store, (1..=sent).map(about).collect());
        assert_eq!(added.spans as u64 + added.rejected.surplus, sent);
        assert!(store.figures().bytes <= 256 << 10, "a quarter: {:?}", store.figures());
        added.spans
    };
    assert_eq!(kept(100), 100);
    let most = kept(1000);
    assert!(most > 300, "{most}");
    for sent in [1001, 1500, 2000, 3000] {
        assert_eq!(kept(sent), most, "{sent}");
    }
}

#[test]
fn a_span_that_is_too_large_leaves_room_for_those_behind_it() {
    let store = TraceStore::new(limits(1 << 20));
    let large = span(1, 1).text("k", &"x".repeat(300_000));
    let added = add(&store, vec![large, span(1, 2).text("a", "b"), span(1, 3)]);
    assert_eq!((added.spans, added.rejected.surplus), (2, 1));
    let trace = store.trace(id(1)).unwrap();
    assert_eq!((trace.spans, trace.surplus_spans), (2, 1));
    let chunk = &trace.chunks[0];
    assert!(
        chunk.may_have(attribute_mark(b"a", b"b"))
            && !chunk.may_have(attribute_mark(b"k", "x".repeat(300_000).as_bytes()))
    );
}

#[test]
fn a_trace_that_is_full_pushes_nobody_out() {
    let store = TraceStore::new(StoreLimits { bytes: 20_000, trace_spans: 1 });
    (1..=40).for_each(|trace| drop(add(&store, vec![span(trace, 1)])));
    let before = store.figures();
    let newest = store.snapshot().traces.last().unwrap().id;
    for number in 2..100 {
        add(&store, vec![span(u128::from_be_bytes(newest.0), number)]);
    }
    let after = store.figures();
    assert_eq!((after.traces, after.dropped_traces, after.refused_spans), (before.traces, before.dropped_traces, 98));
}

#[test]
fn spans_without_ids_are_counted() {
    let store = TraceStore::new(StoreLimits::default());
    add(&store, vec![span(0, 1), span(1, 0), span(1, 1)]);
    assert_eq!((store.figures().spans, store.figures().invalid_spans), (1, 2));
}

#[test]
fn times_that_make_no_sense_are_made_good() {
    let store = TraceStore::new(StoreLimits::default());
    let timed = |id, start, end| SpanBuilder::new(1, id, "s").with_times(start, end);
    store.add(GroupedSpans::parse(&request("s", vec![timed(1, 0, 0), timed(2, 0, 50), timed(3, 70, 60)])), 99);
    let trace = store.trace(id(1)).unwrap();
    let times: Vec<_> = trace.spans().map(|span| (span.entry.start, span.entry.end)).collect();
    assert_eq!(times, [(0, 0), (50, 50), (70, 70)]);
    assert_eq!((trace.start(), trace.duration()), (50, 20));
    add(&store, vec![SpanBuilder::new(2, 1, "timeless")]);
    assert_eq!(store.trace(id(2)).unwrap().start(), 1, "it came then");
    let store = TraceStore::new(StoreLimits::default());
    store.add(GroupedSpans::parse(&request("s", vec![timed(1, 5000, 6000)])), 99);
    assert_eq!(store.figures().oldest, Some(99), "not in the future");
}

#[test]
fn what_is_looked_at_does_not_change() {
    let store = TraceStore::new(StoreLimits::default());
    add(&store, vec![span(1, 1)]);
    let before = store.snapshot();
    add(&store, vec![span(1, 2), span(2, 1)]);
    assert_eq!(before.traces.iter().map(|trace| trace.spans).collect::<Vec<_>>(), [1]);
    let changed = store.changed_since(before.version);
    assert_eq!(changed.traces.len(), 2);
    assert!(store.changed_since(changed.version).traces.is_empty());
}

#[test]
fn who_reads_slowly_can_count_what_was_missed() {
    let store = TraceStore::new(StoreLimits::default());
    let mut tail = store.subscribe();
    let total = MAX_TAIL_LAG as u64 + 50;
    (1..=total).for_each(|number| drop(add(&store, vec![span(1, number)])));
    assert!(matches!(tail.try_recv(), Err(broadcast::error::TryRecvError::Lagged(_))));
    let first = tail.try_recv().unwrap();
    assert_eq!(first.earlier_spans + MAX_TAIL_LAG as u64, total);
}

#[test]
fn what_a_smaller_memory_leaves_no_room_for_is_counted_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let start = |memory: usize| {
        let store = Arc::new(TraceStore::new(limits(memory)));
        let keeper = StoreWriter::on_disk(store.clone(), || 1, folder.path(), memory as u64).unwrap();
        (store, keeper)
    };
    let (store, keeper) = start(4 << 20);
    for trace in 1..=100 {
        keeper.write_request(&request("service", vec![span(trace, 1).text("k", &"x".repeat(20_000))]));
    }
    // Larger than a quarter of the memory.
    keeper.write_request(&request("service", vec![span(101, 1).text("k", &"x".repeat(300_000))]));
    assert_eq!((store.figures().traces, store.figures().dropped_traces), (101, 0));
    drop((store, keeper));
    let (store, _keeper) = start(1 << 20);
    let figures = store.figures();
    assert!(figures.traces > 40, "{figures:?}");
    assert_eq!(
        (figures.traces as u64 + figures.dropped_traces, figures.dropped_traces),
        (100, figures.dropped_spans),
        "{figures:?}"
    );
    assert_eq!((figures.refused_traces, figures.refused_spans), (1, 1), "{figures:?}");
}
