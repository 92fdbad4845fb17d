//! What gRPC calls have in common, whatever they carry.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header::CONTENT_TYPE};
use hyper::Response;
use kubewake_config::model::Compression;

use super::{intake::Payload, rpc_status};
use crate::{
    core::{Admission, Code, Refusal, RefusalKind, TurnedAway},
    net::{
        decode::{self, DecodeError},
        reply::Reply,
    },
};

pub(super) const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
pub(super) const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const GRPC_DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");
const GRPC_ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
const GRPC_ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");
const ACCEPTED: HeaderValue = HeaderValue::from_static("gzip,zstd,snappy,deflate");
const CONTENT: HeaderValue = HeaderValue::from_static("application/grpc");

/// Whether a request is a gRPC call.
pub(super) fn is_grpc(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"))
}

/// Compressed messages from this size on are inflated in a task of their own: a connection is one task, and must go on
/// reading meanwhile.
const INFLATE_APART: usize = 8 << 10;

pub(super) async fn inflate(
    algorithm: Compression,
    compressed: Bytes,
    max: usize,
    mut admission: Admission,
) -> Result<(Payload, Admission), Refusal> {
    let apart = compressed.len() >= INFLATE_APART;
    let work = move || {
        let inflated = decode::decompress(algorithm, &compressed, max, &mut |more| admission.grow(more));
        inflated.map(|body| (body.into(), admission)).map_err(refusal)
    };
    if !apart {
        return work();
    }
    tokio::spawn(async { work() }).await.unwrap_or_else(|_| Err(internal("decompression failed")))
}

pub(super) fn encoding(headers: &HeaderMap) -> Result<Option<Compression>, Refusal> {
    let Some(name) = headers.get(GRPC_ENCODING) else { return Ok(None) };
    let name = name.to_str().unwrap_or_default();
    if name == "identity" {
        return Ok(None);
    }
    let algorithm = decode::algorithm(name).map(Some);
    algorithm.ok_or_else(|| refuse(Code::Unimplemented, format!("grpc: compression {name:?} is not supported")))
}

/// Why a message was not even scanned.
pub(super) fn reason(refusal: &Refusal) -> TurnedAway {
    match (refusal.kind, refusal.code) {
        (RefusalKind::NoMemory, _) => TurnedAway::Memory,
        (_, Code::ResourceExhausted) => TurnedAway::TooLarge,
        (_, Code::Unimplemented) => TurnedAway::Encoding,
        (_, Code::Cancelled | Code::DeadlineExceeded) => TurnedAway::Incomplete,
        _ => TurnedAway::Malformed,
    }
}

pub(super) fn refuse(code: Code, message: String) -> Refusal {
    Refusal { kind: RefusalKind::BadRequest, code, message: message.into(), retry_after: None }
}

pub(super) fn internal(message: &'static str) -> Refusal {
    refuse(Code::Internal, format!("grpc: {message}"))
}

fn refusal(error: DecodeError) -> Refusal {
    match error {
        DecodeError::Refused(refusal) => refusal,
        DecodeError::TooLarge(max) => {
            refuse(Code::ResourceExhausted, format!("grpc: received message after decompression larger than max {max}"))
        }
        corrupt @ DecodeError::Corrupt { .. } => Refusal::invalid(corrupt.to_string()),
    }
}

pub(super) fn ok(message: Bytes) -> Response<Reply> {
    let mut trailers = HeaderMap::with_capacity(1);
    trailers.insert(GRPC_STATUS, HeaderValue::from_static("0"));
    respond(Reply::with_trailers(message, trailers))
}

pub(super) fn respond(reply: Reply) -> Response<Reply> {
    let mut response = Response::new(reply);
    response.headers_mut().insert(CONTENT_TYPE, CONTENT);
    response
}

/// A refusal without a body: its status is in the headers, which are the trailers at once.
pub(super) fn refused(refusal: &Refusal) -> Response<Reply> {
    let mut response = respond(Reply::empty());
    let headers = response.headers_mut();
    headers.insert(GRPC_STATUS, HeaderValue::from(u16::from(refusal.code.number())));
    if let Ok(message) = HeaderValue::from_str(&percent_encode(&refusal.message)) {
        headers.insert(GRPC_MESSAGE, message);
    }
    if refusal.retry_after.is_some()
        && let Ok(details) = HeaderValue::from_str(&rpc_status::details_header(refusal))
    {
        headers.insert(GRPC_DETAILS, details);
    }
    if refusal.code == Code::Unimplemented {
        headers.insert(GRPC_ACCEPT_ENCODING, ACCEPTED);
    }
    response
}

/// `grpc-message` is percent-encoded: printable ASCII stays as it is.
fn percent_encode(message: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(message.len());
    for byte in message.bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => out.push(char::from(byte)),
            _ => drop(write!(out, "%{byte:02X}")),
        }
    }
    out
}
