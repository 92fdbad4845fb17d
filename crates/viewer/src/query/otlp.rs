//! Traces as the requests that they came in.

use std::{borrow::Cow, sync::Arc};

use kubewake_otlp::{
    Signal, json,
    view::{KeyValue, View as _},
    wire::{Fields, close, open, put_bytes},
};

use crate::store::{Origin, Trace};

/// The numbers of OTLP's fields.
const RESOURCE_SPANS: u32 = 1;
const RESOURCE: u32 = 1;
const SCOPE_SPANS: u32 = 2;
const SCOPE: u32 = 1;
const SPANS: u32 = 2;
const SCHEMA: u32 = 3;

/// Stands for a value that JSON cannot hold.
const CUT: &str = "… (left out by the viewer: nested too deeply, or no OTLP value)";

/// What a part of a request becomes.
type Mend = for<'a> fn(Part, &'a [u8]) -> Cow<'a, [u8]>;

/// An export request with all spans of the traces, in protobuf.
fn otlp(traces: &[Arc<Trace>], mend: Mend) -> Vec<u8> {
    let mut out = Vec::new();
    for trace in traces {
        for chunk in &trace.chunks {
            let mut spans = chunk.spans().peekable();
            while let Some(first) = spans.next() {
                let Some(origin) = first.origin() else { continue };
                let entry = open(&mut out, RESOURCE_SPANS);
                put_bytes(&mut out, RESOURCE, &mend(Part::Resource, &origin.resource));
                let scope = open(&mut out, SCOPE_SPANS);
                put_bytes(&mut out, SCOPE, &mend(Part::Scope, &origin.scope));
                put_bytes(&mut out, SPANS, &mend(Part::Span, first.view().as_bytes()));
                let same = |other: Option<&Arc<Origin>>| other.is_some_and(|other| Arc::ptr_eq(other, origin));
                while let Some(next) = spans.next_if(|next| same(next.origin())) {
                    put_bytes(&mut out, SPANS, &mend(Part::Span, next.view().as_bytes()));
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

/// The same as JSON. What a sender put inside an attribute was never looked at; in the place of a value that is no OTLP, or is nested deeper than OTLP's JSON can
/// be read again, stands [`CUT`]. No span is left out.
pub fn otlp_json(traces: &[Arc<Trace>]) -> Vec<u8> {
    let mut out = Vec::new();
    if json::encode(Signal::Traces, &otlp(traces, |_, bytes| bytes.into()), &mut out).is_ok() {
        return out;
    }
    if let Err(error) = json::encode(Signal::Traces, &otlp(traces, mended), &mut out) {
        tracing::warn!(%error, "a trace cannot be written as JSON");
        out = b"{}".to_vec();
    }
    out
}

/// A part of a request that has attributes.
#[derive(Clone, Copy, Debug)]
enum Part {
    Resource,
    Scope,
    Span,
    Event,
    Link,
}

impl Part {
    /// The number of its attributes.
    fn attributes(self) -> u32 {
        match self {
            Self::Resource => 1,
            Self::Scope | Self::Event => 3,
            Self::Link => 4,
            Self::Span => 9,
        }
    }

    /// The part that a field of it is.
    fn inner(self, number: u32) -> Option<Self> {
        match (self, number) {
            (Self::Span, 11) => Some(Self::Event),
            (Self::Span, 13) => Some(Self::Link),
            _ => None,
        }
    }

    /// Whether it can be written as JSON, in its place in a request.
    fn can_be_written(self, bytes: &[u8]) -> bool {
        let way: &[u32] = match self {
            Self::Resource => &[RESOURCE_SPANS, RESOURCE],
            Self::Scope => &[RESOURCE_SPANS, SCOPE_SPANS, SCOPE],
            Self::Span => &[RESOURCE_SPANS, SCOPE_SPANS, SPANS],
            Self::Event => &[RESOURCE_SPANS, SCOPE_SPANS, SPANS, 11],
            Self::Link => &[RESOURCE_SPANS, SCOPE_SPANS, SPANS, 13],
        };
        let mut request = Vec::with_capacity(bytes.len() + 32);
        let opened: Vec<_> = way.iter().map(|number| open(&mut request, *number)).collect();
        request.extend_from_slice(bytes);
        opened.into_iter().rev().for_each(|start| close(&mut request, start));
        json::encode(Signal::Traces, &request, &mut Vec::new()).is_ok()
    }
}

/// A part of a request, without the values that cannot be written as JSON.
fn mended(part: Part, bytes: &[u8]) -> Cow<'_, [u8]> {
    if part.can_be_written(bytes) {
        return bytes.into();
    }
    let mut out = Vec::with_capacity(bytes.len());
    for field in Fields::new(bytes) {
        if part.can_be_written(field.raw) {
            out.extend_from_slice(field.raw);
        } else if let Some(inner) = part.inner(field.number).filter(|_| field.as_len().is_some()) {
            put_bytes(&mut out, field.number, &mended(inner, field.value));
        } else if field.is_len(part.attributes()) {
            let pair = open(&mut out, field.number);
            put_bytes(&mut out, 1, KeyValue::new(field.value).key());
            let value = open(&mut out, 2);
            put_bytes(&mut out, 1, CUT.as_bytes());
            close(&mut out, value);
            close(&mut out, pair);
        }
    }
    out.into()
}
