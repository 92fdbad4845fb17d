use super::*;
use crate::core::Budget;

fn store() -> (SpanStore, Arc<TailSamplerStats>) {
    let stats = Arc::<TailSamplerStats>::default();
    (SpanStore::new(stats.clone()), stats)
}

/// A request of one span for a trace whose last span is at `before`.
fn add(store: &mut SpanStore, before: SpanPosition, name: &str, charge: Charge) -> SpanPosition {
    store.begin_arrival(100 + name.len());
    let resource = store.push_resource(b"resource");
    let scope = store.push_scope(resource, b"scope");
    let place = store.push_span(before, scope, name.as_bytes());
    if before.segment != place.segment {
        store.hold(place.segment);
    }
    store.end_arrival(charge, 0);
    place
}

fn chain(pages: &SegmentSnapshot, tail: SpanPosition) -> Vec<String> {
    let mut names = Vec::new();
    let mut place = tail;
    while let Some(stored) = pages.read(place) {
        assert_eq!((stored.resource, stored.scope), (&b"resource"[..], &b"scope"[..]));
        names.push(String::from_utf8(stored.span.to_vec()).unwrap());
        place = stored.before;
    }
    names
}

#[test]
fn a_trace_is_a_chain_through_segments() {
    let (mut store, _) = store();
    let one = add(&mut store, SpanPosition::NONE, "one", Charge::exempt());
    let two = add(&mut store, one, "two", Charge::exempt());
    store.seal();
    let three = add(&mut store, two, "three", Charge::exempt());
    assert_eq!(two.segment + 1, three.segment);
    let pages = store.snapshot(true);
    assert_eq!(chain(&pages, three), ["three", "two", "one"]);
    assert_eq!(store.segments(three, one.segment, 10), Some(vec![three.segment, one.segment]));
    assert_eq!(store.segments(three, one.segment, 2), None, "more spans than one looks for");
}

#[test]
fn a_segment_is_freed_as_a_whole_with_its_charge_when_no_trace_holds_it() {
    let budget = Budget::new(1 << 20, 0);
    let member = budget.join();
    let (mut store, stats) = store();
    let first = add(&mut store, SpanPosition::NONE, "first", member.reserve(1000).unwrap());
    let second = add(&mut store, SpanPosition::NONE, "second", member.reserve(1000).unwrap());
    assert!(budget.used() > 0 && budget.used() < 200, "what was stored, and no more");
    let pages = store.snapshot(true);
    store.release(first.segment);
    assert!(store.read(first).is_some(), "the other trace holds the segment");
    store.release(second.segment);
    assert!(store.read(first).is_none() && store.read(second).is_none());
    assert_eq!(chain(&pages, first), ["first"], "whoever reads goes on");
    store.release_idle_memory();
    assert_eq!(budget.used(), 0);
    assert_eq!(stats.waiting_bytes.load(Ordering::Relaxed), 0);
}

#[test]
fn the_open_segment_is_freed_too() {
    let (mut store, stats) = store();
    let only = add(&mut store, SpanPosition::NONE, "only", Charge::exempt());
    store.release(only.segment);
    assert!(store.read(only).is_none());
    let next = add(&mut store, SpanPosition::NONE, "next", Charge::exempt());
    assert_eq!(store.read(next).unwrap().span, b"next");
    store.release(next.segment);
    store.release_idle_memory();
    assert_eq!(stats.waiting_bytes.load(Ordering::Relaxed), 0);
}

#[test]
fn what_is_larger_than_a_segment_has_one_of_its_own() {
    let (mut store, _) = store();
    let small = add(&mut store, SpanPosition::NONE, "small", Charge::exempt());
    let large = add(&mut store, SpanPosition::NONE, &"x".repeat(2 * SEGMENT_BYTES), Charge::exempt());
    assert_ne!(small.segment, large.segment);
    assert_eq!(store.read(large).unwrap().span.len(), 2 * SEGMENT_BYTES);
}
