//! The OTLP response to an accepted request: full success, or `partial_success` with the rejected items.

use bytes::Bytes;
use kubewake_otlp::{
    Signal,
    wire::{put_bytes, put_uint},
};

use crate::core::PartialSuccess;

/// An empty `partial_success`: all items were accepted. The responses of all signals have the same shape.
const FULL_SUCCESS: Bytes = Bytes::from_static(&[0x0a, 0]);
/// The same as an uncompressed gRPC message.
const FULL_SUCCESS_GRPC: Bytes = Bytes::from_static(&[0, 0, 0, 0, 2, 0x0a, 0]);
const FULL_SUCCESS_JSON: Bytes = Bytes::from_static(br#"{"partialSuccess":{}}"#);

pub(super) fn grpc(shortfall: Option<&PartialSuccess>) -> Bytes {
    let Some(shortfall) = shortfall else { return FULL_SUCCESS_GRPC };
    let message = encode(shortfall);
    let mut framed = vec![0];
    framed.extend_from_slice(&u32::try_from(message.len()).unwrap_or(u32::MAX).to_be_bytes());
    framed.extend_from_slice(&message);
    framed.into()
}

pub(super) fn protobuf(shortfall: Option<&PartialSuccess>) -> Bytes {
    shortfall.map_or(FULL_SUCCESS, |shortfall| encode(shortfall).into())
}

pub(super) fn json(signal: Signal, shortfall: Option<&PartialSuccess>) -> Bytes {
    let Some(PartialSuccess { items, message }) = shortfall else { return FULL_SUCCESS_JSON };
    let rejected = match signal {
        Signal::Traces => "rejectedSpans",
        Signal::Metrics => "rejectedDataPoints",
        Signal::Logs => "rejectedLogRecords",
    };
    // Protobuf's JSON mapping writes an int64 as a string.
    let partial = serde_json::json!({ rejected: items.to_string(), "errorMessage": message });
    serde_json::json!({ "partialSuccess": partial }).to_string().into()
}

fn encode(shortfall: &PartialSuccess) -> Vec<u8> {
    let mut partial = Vec::new();
    let mut message = Vec::new();
    put_uint(&mut partial, 1, shortfall.items);
    put_bytes(&mut partial, 2, shortfall.message.as_bytes());
    put_bytes(&mut message, 1, &partial);
    message
}
