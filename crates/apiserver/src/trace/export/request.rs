//! `ExportTraceServiceRequest`, written from spans that are bytes already.

use std::collections::BTreeMap;

use bytes::{BufMut, Bytes};

use crate::trace::{Attribute, Finished, Scope, encode};

/// The attributes of the server.
pub(super) fn resource(instance: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode::attribute(&mut bytes, 1, "service.name", &Attribute::Text("apiserver"));
    encode::attribute(&mut bytes, 1, "service.instance.id", &Attribute::Text(instance));
    bytes
}

/// One resource and its spans by scope; for gRPC with its length before it.
pub(super) fn body(resource: &[u8], batch: Vec<Finished>) -> Bytes {
    let mut scopes: BTreeMap<Scope, Vec<u8>> = BTreeMap::new();
    for finished in batch {
        let spans = scopes.entry(finished.scope).or_insert_with(|| scope(finished.scope));
        encode::bytes(spans, 2, &finished.bytes);
    }
    let mut spans =
        Vec::with_capacity(scopes.values().map(|scope| scope.len() + 6).sum::<usize>() + resource.len() + 6);
    encode::bytes(&mut spans, 1, resource);
    scopes.values().for_each(|scope| encode::bytes(&mut spans, 2, scope));
    let mut request = Vec::with_capacity(spans.len() + 6);
    encode::bytes(&mut request, 1, &spans);
    request.into()
}

/// A message of gRPC: not compressed, so many bytes.
pub(super) fn framed(message: &[u8]) -> Bytes {
    let mut framed = Vec::with_capacity(message.len() + 5);
    framed.put_u8(0);
    framed.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    framed.extend_from_slice(message);
    framed.into()
}

/// `ScopeSpans` with its scope and no spans yet.
fn scope(scope: Scope) -> Vec<u8> {
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

/// How many spans an answer says were not taken (`ExportTraceServiceResponse.partial_success.rejected_spans`). An answer that says
/// nothing that can be read has taken all.
pub(super) fn rejected(answer: &[u8]) -> u64 {
    field(answer, 1).and_then(|(_, partial)| field(partial, 1)).map_or(0, |(rejected, _)| rejected)
}

/// The first field of this number: its value if it is a number, its bytes if it has a length.
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
