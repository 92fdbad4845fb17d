//! Data that no rule matches costs no allocation, however many spans there are.
//!
//! The test binary counts allocations by thread, so that concurrent tests do not affect each other.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::sync::Arc;

use bytes::Bytes;
use kubewake_allocation_meter::{CountingAllocator, thread_allocations};
use kubewake_collector::{
    core::{Charge, Part},
    processor::{
        attributes::AttributesTransform, filter::FilterTransform, redaction::RedactionTransform,
        resource::ResourceTransform, transform::RequestTransform,
    },
};
use kubewake_config::{FixedSources, load, model::ProcessorConfig};
use kubewake_otlp::{Signal, UnlimitedAllowance, json};
use serde_json::json;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

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
    Part::new(Bytes::from(bytes), spans, Arc::default(), Arc::new(Charge::exempt()))
}

fn mapper(settings: &str) -> Box<dyn RequestTransform> {
    let name = settings.split(':').next().unwrap();
    let document = format!(
        "receivers: {{otlp: {{protocols: {{grpc: }}}}}}\nprocessors:\n  {settings}\nexporters: {{nop: }}\n\
         service: {{pipelines: {{traces: {{receivers: [otlp], processors: [{name}], exporters: [nop]}}}}}}"
    );
    let document = load(&document, &FixedSources::new()).unwrap_or_else(|errors| panic!("{errors}")).document;
    match document.processors.into_values().next().unwrap() {
        ProcessorConfig::Filter(settings) => Box::new(FilterTransform::new(*settings)),
        ProcessorConfig::Attributes(settings) => Box::new(AttributesTransform::new(*settings)),
        ProcessorConfig::Resource(settings) => Box::new(ResourceTransform::new(settings)),
        ProcessorConfig::Redaction(settings) => Box::new(RedactionTransform::new(*settings)),
        _ => panic!("{settings}"),
    }
}

#[test]
fn what_does_not_match_is_not_allocated_for() {
    let few = request(2);
    let many = request(10_000);
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
        // An expression allocates its working memory on first use.
        mapper.transform(Signal::Traces, &few, &mut UnlimitedAllowance).unwrap();
        let before = thread_allocations();
        let mapped = mapper.transform(Signal::Traces, &many, &mut UnlimitedAllowance).unwrap();
        let count = thread_allocations() - before;
        assert_eq!(mapped.bytes.as_ptr(), many.bytes.as_ptr(), "{settings}");
        // Lists of the plan and of the attributes, which grow by doubling.
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
        let before = thread_allocations();
        let mapped = mapper.transform(Signal::Traces, &many, &mut UnlimitedAllowance).unwrap();
        let count = thread_allocations() - before;
        assert_ne!(mapped.bytes, many.bytes, "{settings}");
        assert!(count <= 80, "{settings}: {count} allocations");
    }
}
