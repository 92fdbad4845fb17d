//! Traces as the requests that they came in.

use std::sync::Arc;

use kubewake_otlp::{
    Signal, json,
    view::View as _,
    wire::{close, open, put_bytes},
};

use crate::store::{Origin, Trace};

/// The numbers of OTLP's fields.
const RESOURCE_SPANS: u32 = 1;
const RESOURCE: u32 = 1;
const SCOPE_SPANS: u32 = 2;
const SCOPE: u32 = 1;
const SPANS: u32 = 2;
const SCHEMA: u32 = 3;

/// An export request with all spans of the traces, in protobuf.
pub fn otlp(traces: &[Arc<Trace>]) -> Vec<u8> {
    let mut out = Vec::new();
    for trace in traces {
        for chunk in &trace.chunks {
            let mut spans = chunk.spans().peekable();
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

/// The same as JSON.
pub fn otlp_json(traces: &[Arc<Trace>]) -> Vec<u8> {
    let mut out = Vec::new();
    if let Err(error) = json::encode(Signal::Traces, &otlp(traces), &mut out) {
        // What a sender put inside an attribute was never looked at before.
        tracing::warn!(%error, "a trace holds bytes that are no OTLP, and cannot be written as JSON");
        out = b"{\"resourceSpans\":[]}".to_vec();
    }
    out
}
