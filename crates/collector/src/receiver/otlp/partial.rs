//! What a sender is told of a request that was taken: that all of it was, or what was not.

use bytes::Bytes;
use kubewake_otlp::{
    Signal,
    wire::{put_bytes, put_uint},
};

use crate::core::Shortfall;

/// An empty `partial_success`, which says that all was taken. The answers of all signals have the same shape.
const ALL_TAKEN: Bytes = Bytes::from_static(&[0x0a, 0]);
/// The same as an uncompressed message of gRPC.
const ALL_TAKEN_GRPC: Bytes = Bytes::from_static(&[0, 0, 0, 0, 2, 0x0a, 0]);
const ALL_TAKEN_JSON: Bytes = Bytes::from_static(br#"{"partialSuccess":{}}"#);

pub(super) fn grpc(shortfall: Option<&Shortfall>) -> Bytes {
    let Some(shortfall) = shortfall else { return ALL_TAKEN_GRPC };
    let message = encode(shortfall);
    let mut framed = vec![0];
    framed.extend_from_slice(&u32::try_from(message.len()).unwrap_or(u32::MAX).to_be_bytes());
    framed.extend_from_slice(&message);
    framed.into()
}

pub(super) fn protobuf(shortfall: Option<&Shortfall>) -> Bytes {
    shortfall.map_or(ALL_TAKEN, |shortfall| encode(shortfall).into())
}

pub(super) fn json(signal: Signal, shortfall: Option<&Shortfall>) -> Bytes {
    let Some(Shortfall { items, message }) = shortfall else { return ALL_TAKEN_JSON };
    let rejected = match signal {
        Signal::Traces => "rejectedSpans",
        Signal::Metrics => "rejectedDataPoints",
        Signal::Logs => "rejectedLogRecords",
    };
    // In protobuf's JSON an int64 is a string.
    let partial = serde_json::json!({ rejected: items.to_string(), "errorMessage": message });
    serde_json::json!({ "partialSuccess": partial }).to_string().into()
}

fn encode(shortfall: &Shortfall) -> Vec<u8> {
    let (mut partial, mut message) = (Vec::new(), Vec::new());
    put_uint(&mut partial, 1, shortfall.items);
    put_bytes(&mut partial, 2, shortfall.message.as_bytes());
    put_bytes(&mut message, 1, &partial);
    message
}
