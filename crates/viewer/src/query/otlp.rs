//! Exports traces as the OTLP requests in which they arrived.

use std::{borrow::Cow, sync::Arc};

use kubewake_otlp::{
    Signal, json,
    view::{KeyValue, MessageView as _},
    wire::{WireFields, close, open, put_bytes},
};

use crate::store::{StoredTrace, TelemetryOrigin};

/// Field numbers of OTLP.
const RESOURCE_SPANS_FIELD: u32 = 1;
const RESOURCE_FIELD: u32 = 1;
const SCOPE_SPANS_FIELD: u32 = 2;
const SCOPE_FIELD: u32 = 1;
const SPANS_FIELD: u32 = 2;
const SCHEMA_URL_FIELD: u32 = 3;

/// Replaces a value that JSON cannot hold.
const OMITTED_VALUE: &str = "… (omitted by the viewer: nested too deeply, or not an OTLP value)";

/// Rewrites a part of a request.
type PartRewriter = for<'a> fn(RequestPart, &'a [u8]) -> Cow<'a, [u8]>;

/// Encodes all spans of the traces as one export request in protobuf.
fn encode_otlp(traces: &[Arc<StoredTrace>], mend: PartRewriter) -> Vec<u8> {
    let mut out = Vec::new();
    for trace in traces {
        for chunk in &trace.chunks {
            let mut spans = chunk.spans().peekable();
            while let Some(first) = spans.next() {
                let Some(origin) = first.origin() else { continue };
                let entry = open(&mut out, RESOURCE_SPANS_FIELD);
                put_bytes(&mut out, RESOURCE_FIELD, &mend(RequestPart::Resource, &origin.resource));
                let scope = open(&mut out, SCOPE_SPANS_FIELD);
                put_bytes(&mut out, SCOPE_FIELD, &mend(RequestPart::Scope, &origin.scope));
                put_bytes(&mut out, SPANS_FIELD, &mend(RequestPart::Span, first.view().as_bytes()));
                let same = |other: Option<&Arc<TelemetryOrigin>>| other.is_some_and(|other| Arc::ptr_eq(other, origin));
                while let Some(next) = spans.next_if(|next| same(next.origin())) {
                    put_bytes(&mut out, SPANS_FIELD, &mend(RequestPart::Span, next.view().as_bytes()));
                }
                put_text(&mut out, SCHEMA_URL_FIELD, &origin.scope_schema);
                close(&mut out, scope);
                put_text(&mut out, SCHEMA_URL_FIELD, &origin.resource_schema);
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

/// The same as JSON. Attribute values are not checked on arrival: [`OMITTED_VALUE`] replaces one that is not
/// valid OTLP, or nested deeper than OTLP's JSON can be decoded again. No span is omitted.
pub fn encode_otlp_json(traces: &[Arc<StoredTrace>]) -> Vec<u8> {
    let mut out = Vec::new();
    if json::encode(Signal::Traces, &encode_otlp(traces, |_, bytes| bytes.into()), &mut out).is_ok() {
        return out;
    }
    if let Err(error) = json::encode(Signal::Traces, &encode_otlp(traces, without_invalid_values), &mut out) {
        tracing::warn!(%error, "failed to encode a trace as OTLP JSON");
        out = b"{}".to_vec();
    }
    out
}

/// A message with attributes in an export request.
#[derive(Clone, Copy, Debug)]
enum RequestPart {
    Resource,
    Scope,
    Span,
    Event,
    Link,
}

impl RequestPart {
    /// The field number of its attributes.
    fn attributes_field(self) -> u32 {
        match self {
            Self::Resource => 1,
            Self::Scope | Self::Event => 3,
            Self::Link => 4,
            Self::Span => 9,
        }
    }

    /// The message in one of its fields.
    fn inner_part(self, number: u32) -> Option<Self> {
        match (self, number) {
            (Self::Span, 11) => Some(Self::Event),
            (Self::Span, 13) => Some(Self::Link),
            _ => None,
        }
    }

    /// Whether the bytes can be written as JSON at this place in a request.
    fn can_be_written(self, bytes: &[u8]) -> bool {
        let way: &[u32] = match self {
            Self::Resource => &[RESOURCE_SPANS_FIELD, RESOURCE_FIELD],
            Self::Scope => &[RESOURCE_SPANS_FIELD, SCOPE_SPANS_FIELD, SCOPE_FIELD],
            Self::Span => &[RESOURCE_SPANS_FIELD, SCOPE_SPANS_FIELD, SPANS_FIELD],
            Self::Event => &[RESOURCE_SPANS_FIELD, SCOPE_SPANS_FIELD, SPANS_FIELD, 11],
            Self::Link => &[RESOURCE_SPANS_FIELD, SCOPE_SPANS_FIELD, SPANS_FIELD, 13],
        };
        let mut request = Vec::with_capacity(bytes.len() + 32);
        let opened: Vec<_> = way.iter().map(|number| open(&mut request, *number)).collect();
        request.extend_from_slice(bytes);
        opened.into_iter().rev().for_each(|start| close(&mut request, start));
        json::encode(Signal::Traces, &request, &mut Vec::new()).is_ok()
    }
}

/// Removes the values that cannot be written as JSON.
fn without_invalid_values(part: RequestPart, bytes: &[u8]) -> Cow<'_, [u8]> {
    if part.can_be_written(bytes) {
        return bytes.into();
    }
    let mut out = Vec::with_capacity(bytes.len());
    for field in WireFields::new(bytes) {
        if part.can_be_written(field.raw) {
            out.extend_from_slice(field.raw);
        } else if let Some(inner) = part.inner_part(field.number).filter(|_| field.as_len().is_some()) {
            put_bytes(&mut out, field.number, &without_invalid_values(inner, field.value));
        } else if field.is_len(part.attributes_field()) {
            let pair = open(&mut out, field.number);
            put_bytes(&mut out, 1, KeyValue::new(field.value).key());
            let value = open(&mut out, 2);
            put_bytes(&mut out, 1, OMITTED_VALUE.as_bytes());
            close(&mut out, value);
            close(&mut out, pair);
        }
    }
    out.into()
}
