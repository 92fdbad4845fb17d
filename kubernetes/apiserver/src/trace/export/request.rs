//! Encodes `ExportTraceServiceRequest` from encoded spans.

use bytes::{BufMut, Bytes};

use crate::trace::{FinishedSpan, InstrumentationScope, SpanAttributeValue, encode};

/// The encoded attributes of the server.
pub(super) fn resource(instance: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode::attribute(&mut bytes, 1, "service.name", &SpanAttributeValue::Text("apiserver"));
    encode::attribute(&mut bytes, 1, "service.instance.id", &SpanAttributeValue::Text(instance));
    bytes
}

/// The spans of one resource by scope; for gRPC preceded by the frame header.
pub(super) fn body(resource: &[u8], mut batch: Vec<FinishedSpan>) -> Bytes {
    // Spans of one scope stay in the order in which they ended.
    batch.sort_by_key(|finished| finished.scope);
    let scopes = || batch.chunk_by(|one, other| one.scope == other.scope);
    // Lengths are computed first, so that each span is copied once.
    let of_scope = |spans: &[FinishedSpan]| {
        let head = spans.first().map(|first| scope(first.scope)).unwrap_or_default();
        let length = spans.iter().map(|span| encode::delimited(span.bytes.len())).sum::<usize>() + head.len();
        (head, length)
    };
    let length =
        encode::delimited(resource.len()) + scopes().map(|spans| encode::delimited(of_scope(spans).1)).sum::<usize>();
    let mut request = Vec::with_capacity(encode::delimited(length));
    encode::begin(&mut request, 1, length);
    encode::bytes(&mut request, 1, resource);
    for spans in scopes() {
        let (head, length) = of_scope(spans);
        encode::begin(&mut request, 2, length);
        request.extend_from_slice(&head);
        spans.iter().for_each(|span| encode::bytes(&mut request, 2, &span.bytes));
    }
    request.into()
}

/// A gRPC message frame: not compressed, with its length.
pub(super) fn grpc_frame(message: &[u8]) -> Bytes {
    let mut framed = Vec::with_capacity(message.len() + 5);
    framed.put_u8(0);
    framed.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    framed.extend_from_slice(message);
    framed.into()
}

/// A `ScopeSpans` with its scope and no spans yet.
fn scope(scope: InstrumentationScope) -> Vec<u8> {
    let (name, version) = scope.names();
    let mut inner = Vec::new();
    encode::bytes(&mut inner, 1, name.as_bytes());
    if !version.is_empty() {
        encode::bytes(&mut inner, 2, version.as_bytes());
    }
    let mut spans = Vec::new();
    encode::bytes(&mut spans, 1, &inner);
    spans
}

/// The number of rejected spans in a response (`ExportTraceServiceResponse.partial_success.rejected_spans`). A
/// response that cannot be decoded counts as none.
pub(super) fn rejected_spans(answer: &[u8]) -> u64 {
    field(answer, 1).and_then(|(_, partial)| field(partial, 1)).map_or(0, |(rejected, _)| rejected)
}

/// The first field with this number: the value of a number, or the content of a delimited field.
fn field(mut message: &[u8], wanted: u64) -> Option<(u64, &[u8])> {
    loop {
        let key = varint(&mut message)?;
        let (number, bytes) = match key & 7 {
            0 => (varint(&mut message)?, &[][..]),
            1 => (0, message.split_off(..8)?),
            2 => {
                let length = usize::try_from(varint(&mut message)?).ok()?;
                (0, message.split_off(..length)?)
            }
            5 => (0, message.split_off(..4)?),
            _ => return None,
        };
        if key >> 3 == wanted {
            return Some((number, bytes));
        }
    }
}

fn varint(message: &mut &[u8]) -> Option<u64> {
    prost::encoding::decode_varint(message).ok()
}
