//! What does not match costs no allocation, however many spans there are.
//!
//! The test binary counts allocations by thread, so that tests beside each other do not count for one another.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]
#![allow(unsafe_code, reason = "an allocator that counts is unsafe to write, and is in this test alone")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    sync::Arc,
};

use bytes::Bytes;
use kubewake_collector::{
    core::{Charge, Part},
    processor::{
        attributes::{Attributes, Resources},
        filter::Filter,
        map::Mapper,
        redaction::Redaction,
    },
};
use kubewake_config::{FixedSources, load, model::Processor};
use kubewake_otlp::{Signal, Unlimited, json};
use serde_json::json;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: everything is left to the system's allocator; the counter is a plain number.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// So many spans, alike.
fn request(spans: usize) -> Part {
    let attributes = json!([
        {"key": "http.route", "value": {"stringValue": "/pay"}},
        {"key": "http.status_code", "value": {"intValue": "200"}},
        {"key": "ratio", "value": {"doubleValue": 0.5}},
    ]);
    let event = json!({"name": "packed", "attributes": attributes});
    let span = json!({"name": "pay", "kind": 2, "attributes": attributes, "events": [event]});
    let resource = json!({"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]});
    let scope = json!({"scope": {"name": "lib"}, "spans": vec![span; spans]});
    let request = json!({"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]});
    let bytes = json::decode(Signal::Traces, request.to_string().as_bytes()).unwrap();
    Part::new(Bytes::from(bytes), spans, Arc::default(), Arc::new(Charge::free()))
}

fn mapper(settings: &str) -> Box<dyn Mapper> {
    let name = settings.split(':').next().unwrap();
    let document = format!(
        "receivers: {{otlp: {{protocols: {{grpc: }}}}}}\nprocessors:\n  {settings}\nexporters: {{nop: }}\n\
         service: {{pipelines: {{traces: {{receivers: [otlp], processors: [{name}], exporters: [nop]}}}}}}"
    );
    let document = load(&document, &FixedSources::new()).unwrap_or_else(|errors| panic!("{errors}")).document;
    match document.processors.into_values().next().unwrap() {
        Processor::Filter(settings) => Box::new(Filter::new(*settings)),
        Processor::Attributes(settings) => Box::new(Attributes::new(*settings)),
        Processor::Resource(settings) => Box::new(Resources::new(settings)),
        Processor::Redaction(settings) => Box::new(Redaction::new(*settings)),
        _ => panic!("{settings}"),
    }
}

#[test]
fn what_does_not_match_is_not_allocated_for() {
    let (few, many) = (request(2), request(10_000));
    for settings in [
        "filter: {spans: {exclude: {match_type: strict, services: [shop], span_names: [order], attributes: [{key: ratio, value: 0.5}]}}}",
        "filter: {spans: {exclude: {match_type: regexp, attributes: [{key: http.status_code, value: '^5'}, {key: ratio}]}}}",
        "filter: {spans: {include: {match_type: regexp, span_kinds: [SERVER], libraries: [{name: '^l'}]}}}",
        "attributes: {include: {match_type: strict, services: [till]}, actions: [{key: a, value: b, action: upsert}]}",
        "attributes: {actions: [{key: a, value: b, action: update}, {key: c, action: delete}, {pattern: '^d', action: hash}]}",
        "resource: {attributes: [{key: a, action: delete}]}",
        "redaction: {allow_all_keys: true, blocked_values: ['4[0-9]{15}'], blocked_key_patterns: [token], summary: debug}",
    ] {
        let mapper = mapper(settings);
        // An expression makes room for its work when it is used first.
        mapper.map(Signal::Traces, &few, &mut Unlimited).unwrap();
        let before = ALLOCATIONS.get();
        let mapped = mapper.map(Signal::Traces, &many, &mut Unlimited).unwrap();
        let count = ALLOCATIONS.get() - before;
        assert_eq!(mapped.bytes.as_ptr(), many.bytes.as_ptr(), "{settings}");
        // Lists of the plan and of the attributes, which double.
        assert!(count <= 20, "{settings}: {count} allocations");
    }
}

#[test]
fn what_is_changed_is_written_into_lists_that_double() {
    let many = request(10_000);
    for settings in [
        "attributes: {actions: [{key: a, value: b, action: upsert}, {key: http.route, action: delete}]}",
        "resource: {attributes: [{key: a, value: b, action: insert}]}",
        "filter: {spans: {exclude: {match_type: strict, span_names: [pay]}}}",
    ] {
        let mapper = mapper(settings);
        let before = ALLOCATIONS.get();
        let mapped = mapper.map(Signal::Traces, &many, &mut Unlimited).unwrap();
        let count = ALLOCATIONS.get() - before;
        assert_ne!(mapped.bytes, many.bytes, "{settings}");
        assert!(count <= 80, "{settings}: {count} allocations");
    }
}
