//! What gRPC calls have in common, whatever they carry.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header::CONTENT_TYPE};
use hyper::Response;
use kubewake_config::model::Compression;

use super::{intake::Payload, rpc_status};
use crate::{
    core::{Admission, Code, Refusal, RefusalKind, SenderShare, TurnedAway, heavy},
    extension::AuthRefusal,
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
const GRPC_MEDIA_TYPE: &[u8] = b"application/grpc";

/// Whether a request is a gRPC call.
pub(super) fn is_grpc(headers: &HeaderMap) -> bool {
    let prefix = headers.get(CONTENT_TYPE).and_then(|value| value.as_bytes().get(..GRPC_MEDIA_TYPE.len()));
    prefix.is_some_and(|prefix| prefix.eq_ignore_ascii_case(GRPC_MEDIA_TYPE))
}

/// Compressed messages from this size on are inflated in a task of their own: a connection is one task, and must go on
/// reading meanwhile.
const INFLATE_APART: usize = 8 << 10;

/// Those from this size on are inflated by another thread without a try in place. Most become larger than
/// [`heavy::HEAVY_BYTES`].
const INFLATE_HEAVY: usize = 32 << 10;

pub(super) async fn inflate(
    algorithm: Compression,
    compressed: Bytes,
    max: usize,
    admission: Admission,
    sender: &Arc<SenderShare>,
) -> Result<(Payload, Admission), Refusal> {
    let size = compressed.len();
    let inflating = decompress(algorithm, compressed, max, admission, sender.clone());
    let inflated = match size {
        INFLATE_APART..INFLATE_HEAVY => {
            tokio::spawn(inflating).await.unwrap_or_else(|_| Err(internal("decompression failed").into()))
        }
        _ => inflating.await,
    };
    inflated.map(|(body, admission)| (body.into(), admission)).map_err(refusal)
}

/// Decompresses a body, of which `admission` has reserved the length. What becomes large is decompressed by another thread
/// however small it arrived: a few kilobytes can become a thousand times as much.
pub(super) async fn decompress(
    algorithm: Compression,
    compressed: impl AsRef<[u8]> + Send + 'static,
    max: usize,
    mut admission: Admission,
    sender: Arc<SenderShare>,
) -> Result<(Vec<u8>, Admission), DecodeError> {
    let size = compressed.as_ref().len();
    if size < INFLATE_HEAVY {
        let small = max.min(heavy::HEAVY_BYTES);
        match decode::decompress(algorithm, compressed.as_ref(), small, &mut |more| admission.grow(more)) {
            Err(DecodeError::TooLarge(_)) if small < max => admission.shrink_to(size),
            inflated => return inflated.map(|body| (body, admission)),
        }
    }
    admission.take_place(&sender).await;
    let work = move || {
        let inflated = decode::decompress(algorithm, compressed.as_ref(), max, &mut |more| admission.grow(more));
        inflated.map(|body| (body, admission))
    };
    Box::pin(heavy::elsewhere(work)).await
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

/// What a sender is told whose credentials were not accepted.
pub(super) fn unauthenticated(error: &AuthRefusal) -> Refusal {
    match error {
        AuthRefusal::Unauthenticated(error) => refuse(Code::Unauthenticated, error.to_string()),
        AuthRefusal::Forbidden(message) => refuse(Code::PermissionDenied, (*message).to_owned()),
        AuthRefusal::Busy => Refusal { message: error.to_string().into(), ..Refusal::queue_full() },
    }
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

#[cfg(test)]
mod tests {
    use std::{
        io::Write as _,
        sync::Mutex,
        thread::{self, ThreadId},
    };

    use kubewake_config::PipelineId;
    use kubewake_otlp::Signal;

    use super::*;
    use crate::core::{Allowance, Budget, Intake, Pipeline, PipelineStats};

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// A body that notes which thread read it last.
    struct TracedBody {
        bytes: Vec<u8>,
        reader: Arc<Mutex<Option<ThreadId>>>,
    }

    impl AsRef<[u8]> for TracedBody {
        fn as_ref(&self) -> &[u8] {
            *self.reader.lock().unwrap() = Some(thread::current().id());
            &self.bytes
        }
    }

    #[tokio::test]
    async fn small_body_that_becomes_large_is_inflated_by_another_thread() {
        let budget = Budget::new(16 << 20, 0);
        let allowance = Allowance { member: budget.join(), limiter: None };
        let id = PipelineId { signal: Signal::Traces, name: None };
        let (intake, max) = (Intake::default(), 4 << 20);
        intake.point_at(Signal::Traces, vec![Pipeline::new(id, allowance, Arc::<PipelineStats>::default())]);

        let sizes = [heavy::HEAVY_BYTES, heavy::HEAVY_BYTES + 1, max, max + 1];
        for size in sizes {
            let bytes = gzip(&vec![0; size]);
            assert!(bytes.len() < INFLATE_APART);
            let admission = intake.admit(Signal::Traces, bytes.len()).unwrap();
            let reader = Arc::<Mutex<_>>::default();
            let body = TracedBody { bytes, reader: Arc::clone(&reader) };

            let inflated = decompress(Compression::Gzip, body, max, admission, Arc::default()).await;

            let in_place = *reader.lock().unwrap() == Some(thread::current().id());
            assert_eq!(in_place, size <= heavy::HEAVY_BYTES, "{size} bytes");
            match inflated {
                Ok((inflated, _admission)) => assert_eq!(inflated.len(), size),
                Err(error) => {
                    assert!(size > max, "{size} bytes are refused: {error}");
                    assert!(error.to_string().contains(&max.to_string()), "{error}");
                }
            }
            assert_eq!(budget.used(), 0, "all of it is given back");
        }
    }
}
