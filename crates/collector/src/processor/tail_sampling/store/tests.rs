use super::*;
use crate::core::Budget;

fn store() -> (Store, Arc<TailStats>) {
    let stats = Arc::<TailStats>::default();
    (Store::new(stats.clone()), stats)
}

/// A request of one span for a trace whose last span is at `before`.
fn add(store: &mut Store, before: Place, name: &str, charge: Charge) -> Place {
    store.begin(100 + name.len());
    let resource = store.resource(b"resource");
    let scope = store.scope(resource, b"scope");
    let place = store.span(before, scope, name.as_bytes());
    if before.segment != place.segment {
        store.hold(place.segment);
    }
    store.end(charge, 0);
    place
}

fn chain(pages: &Pages, tail: Place) -> Vec<String> {
    let mut names = Vec::new();
    let mut place = tail;
    while let Some(stored) = pages.span(place) {
        assert_eq!((stored.resource, stored.scope), (&b"resource"[..], &b"scope"[..]));
        names.push(String::from_utf8(stored.span.to_vec()).unwrap());
        place = stored.before;
    }
    names
}

#[test]
fn a_trace_is_a_chain_through_segments() {
    let (mut store, _) = store();
    let one = add(&mut store, Place::NONE, "one", Charge::free());
    let two = add(&mut store, one, "two", Charge::free());
    store.seal();
    let three = add(&mut store, two, "three", Charge::free());
    assert_eq!(two.segment + 1, three.segment);
    let pages = store.pages(true);
    assert_eq!(chain(&pages, three), ["three", "two", "one"]);
    assert_eq!(store.segments(three, one.segment, 10), Some(vec![three.segment, one.segment]));
    assert_eq!(store.segments(three, one.segment, 2), None, "more spans than one looks for");
}

#[test]
fn a_segment_is_freed_as_a_whole_with_its_charge_when_no_trace_holds_it() {
    let budget = Budget::new(1 << 20, 0);
    let member = budget.join();
    let (mut store, stats) = store();
    let first = add(&mut store, Place::NONE, "first", member.admit(1000).unwrap());
    let second = add(&mut store, Place::NONE, "second", member.admit(1000).unwrap());
    assert!(budget.used() > 0 && budget.used() < 200, "what was stored, and no more");
    let pages = store.pages(true);
    store.release(first.segment);
    assert!(store.read(first).is_some(), "the other trace holds the segment");
    store.release(second.segment);
    assert!(store.read(first).is_none() && store.read(second).is_none());
    assert_eq!(chain(&pages, first), ["first"], "whoever reads goes on");
    store.rest();
    assert_eq!(budget.used(), 0);
    assert_eq!(stats.waiting_bytes.load(Ordering::Relaxed), 0);
}

#[test]
fn the_open_segment_is_freed_too() {
    let (mut store, stats) = store();
    let only = add(&mut store, Place::NONE, "only", Charge::free());
    store.release(only.segment);
    assert!(store.read(only).is_none());
    let next = add(&mut store, Place::NONE, "next", Charge::free());
    assert_eq!(store.read(next).unwrap().span, b"next");
    store.release(next.segment);
    store.rest();
    assert_eq!(stats.waiting_bytes.load(Ordering::Relaxed), 0);
}

#[test]
fn what_is_larger_than_a_segment_has_one_of_its_own() {
    let (mut store, _) = store();
    let small = add(&mut store, Place::NONE, "small", Charge::free());
    let large = add(&mut store, Place::NONE, &"x".repeat(2 * SEGMENT), Charge::free());
    assert_ne!(small.segment, large.segment);
    assert_eq!(store.read(large).unwrap().span.len(), 2 * SEGMENT);
}
