//! Traces as the requests that they came in.

use std::sync::Arc;

use kubewake_otlp::{
    Signal,
    json::{self, Record},
    view::View as _,
    wire::{close, open, put_bytes},
};

use crate::store::{Origin, SpanRef, Trace};

/// The numbers of OTLP's fields.
const RESOURCE_SPANS: u32 = 1;
const RESOURCE: u32 = 1;
const SCOPE_SPANS: u32 = 2;
const SCOPE: u32 = 1;
const SPANS: u32 = 2;
const SCHEMA: u32 = 3;

/// An export request with those spans of the traces that are wanted, in protobuf.
fn otlp(traces: &[Arc<Trace>], wanted: &dyn Fn(&SpanRef<'_>) -> bool) -> Vec<u8> {
    let mut out = Vec::new();
    for trace in traces {
        for chunk in &trace.chunks {
            let mut spans = chunk.spans().filter(wanted).peekable();
            while let Some(first) = spans.next() {
                let Some(origin) = first.origin() else { continue };
                let entry = open(&mut out, RESOURCE_SPANS);
                put_bytes(&mut out, RESOURCE, &origin.resource);
                let scope = open(&mut out, SCOPE_SPANS);
                put_bytes(&mut out, SCOPE, &origin.scope);
                put_bytes(&mut out, SPANS, first.view().as_bytes());
                let same = |other: Option<&Arc<Origin>>| other.is_some_and(|other| Arc::ptr_eq(other, origin));
                while let Some(next) = spans.next_if(|next| same(next.origin())) {
                    put_bytes(&mut out, SPANS, next.view().as_bytes());
                }
                put_text(&mut out, SCHEMA, &origin.scope_schema);
                close(&mut out, scope);
                put_text(&mut out, SCHEMA, &origin.resource_schema);
                close(&mut out, entry);
            }
        }
    }
    out
}

fn put_text(out: &mut Vec<u8>, number: u32, text: &[u8]) {
    if !text.is_empty() {
        put_bytes(out, number, text);
    }
}

/// The same as JSON. What a sender put inside an attribute was never looked at; a span that is no OTLP there is left out.
pub fn otlp_json(traces: &[Arc<Trace>]) -> Vec<u8> {
    let mut out = Vec::new();
    if json::encode(Signal::Traces, &otlp(traces, &|_| true), &mut out).is_ok() {
        return out;
    }
    let is_whole = |span: &SpanRef<'_>| {
        let resource = span.origin().map_or(&[][..], |origin| &origin.resource);
        can_be_written(Record::Span, span.view().as_bytes()) && can_be_written(Record::Resource, resource)
    };
    if let Err(error) = json::encode(Signal::Traces, &otlp(traces, &is_whole), &mut out) {
        tracing::warn!(%error, "a trace cannot be written as JSON");
        out = b"{}".to_vec();
    }
    out
}

fn can_be_written(record: Record, bytes: &[u8]) -> bool {
    json::encode_record(record, bytes, &mut Vec::new()).is_ok()
}
