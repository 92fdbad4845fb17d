//! Parts of gRPC that all services share: recognition, decompression, authentication, refusals.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header::CONTENT_TYPE};
use hyper::Response;
use kubewake_config::model::CompressionType;

use super::{rpc_status, submitter::RequestPayload};
use crate::{
    core::{Code, EarlyRefusal, Refusal, RefusalKind, RequestReservation, SenderShare, heavy_work},
    extension::AuthRefusal,
    net::{
        decompress::{self, DecompressError},
        reply_body::ReplyBody,
    },
};

pub(super) const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
pub(super) const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const GRPC_DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");
const GRPC_ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
const GRPC_ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");
const ACCEPTED_ENCODINGS: HeaderValue = HeaderValue::from_static("gzip,zstd,snappy,deflate");
const GRPC_CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/grpc");
const GRPC_MEDIA_TYPE: &[u8] = b"application/grpc";

pub(super) fn is_grpc(headers: &HeaderMap) -> bool {
    let prefix = headers.get(CONTENT_TYPE).and_then(|value| value.as_bytes().get(..GRPC_MEDIA_TYPE.len()));
    prefix.is_some_and(|prefix| prefix.eq_ignore_ascii_case(GRPC_MEDIA_TYPE))
}

/// Compressed messages from this size on are inflated in a task of their own: a connection is one task, and has
/// to go on reading meanwhile.
const MIN_BYTES_INFLATED_IN_OWN_TASK: usize = 8 << 10;

/// Compressed messages from this size on are inflated by another thread without an attempt in place. Most of
/// them inflate to more than [`heavy_work::HEAVY_WORK_MIN_BYTES`].
const MIN_BYTES_INFLATED_BY_OTHER_THREAD: usize = 32 << 10;

pub(super) async fn inflate(
    algorithm: CompressionType,
    compressed: Bytes,
    max: usize,
    admission: RequestReservation,
    sender: &Arc<SenderShare>,
) -> Result<(RequestPayload, RequestReservation), Refusal> {
    let size = compressed.len();
    let inflating = decompress(algorithm, compressed, max, admission, sender.clone());
    let inflated = match size {
        MIN_BYTES_INFLATED_IN_OWN_TASK..MIN_BYTES_INFLATED_BY_OTHER_THREAD => {
            tokio::spawn(inflating).await.unwrap_or_else(|_| Err(internal_error("decompression failed").into()))
        }
        _ => inflating.await,
    };
    inflated.map(|(body, admission)| (body.into(), admission)).map_err(decode_refusal)
}

/// Decompresses a body whose length `admission` has reserved. A large result is produced on another thread
/// however small the body is: a few kilobytes can inflate a thousandfold.
pub(super) async fn decompress(
    algorithm: CompressionType,
    compressed: impl AsRef<[u8]> + Send + 'static,
    max: usize,
    mut admission: RequestReservation,
    sender: Arc<SenderShare>,
) -> Result<(Vec<u8>, RequestReservation), DecompressError> {
    let size = compressed.as_ref().len();
    if size < MIN_BYTES_INFLATED_BY_OTHER_THREAD {
        let small = max.min(heavy_work::HEAVY_WORK_MIN_BYTES);
        match decompress::decompress(algorithm, compressed.as_ref(), small, &mut |more| admission.grow(more)) {
            Err(DecompressError::TooLarge(_)) if small < max => admission.shrink_to(size),
            inflated => return inflated.map(|body| (body, admission)),
        }
    }
    admission.acquire_heavy_work_slot(&sender).await;
    let work = move || {
        let inflated = decompress::decompress(algorithm, compressed.as_ref(), max, &mut |more| admission.grow(more));
        inflated.map(|body| (body, admission))
    };
    Box::pin(heavy_work::run_on_pool(work)).await
}

pub(super) fn grpc_encoding(headers: &HeaderMap) -> Result<Option<CompressionType>, Refusal> {
    let Some(name) = headers.get(GRPC_ENCODING) else { return Ok(None) };
    let name = name.to_str().unwrap_or_default();
    if name == "identity" {
        return Ok(None);
    }
    let algorithm = decompress::parse_encoding(name).map(Some);
    algorithm.ok_or_else(|| bad_request(Code::Unimplemented, format!("grpc: compression {name:?} is not supported")))
}

/// The metric label of a request that was refused before it was scanned.
pub(super) fn early_refusal_reason(refusal: &Refusal) -> EarlyRefusal {
    match (refusal.kind, refusal.code) {
        (RefusalKind::NoMemory, _) => EarlyRefusal::Memory,
        (_, Code::ResourceExhausted) => EarlyRefusal::TooLarge,
        (_, Code::Unimplemented) => EarlyRefusal::Encoding,
        (_, Code::Cancelled | Code::DeadlineExceeded) => EarlyRefusal::Incomplete,
        _ => EarlyRefusal::Malformed,
    }
}

pub(super) fn bad_request(code: Code, message: String) -> Refusal {
    Refusal { kind: RefusalKind::BadRequest, code, message: message.into(), retry_after: None }
}

/// The refusal that a sender gets whose credentials were not accepted.
pub(super) fn auth_refusal(error: &AuthRefusal) -> Refusal {
    match error {
        AuthRefusal::Unauthenticated(error) => bad_request(Code::Unauthenticated, error.to_string()),
        AuthRefusal::Forbidden(message) => bad_request(Code::PermissionDenied, (*message).to_owned()),
        AuthRefusal::Busy => Refusal { message: error.to_string().into(), ..Refusal::queue_full() },
    }
}

pub(super) fn internal_error(message: &'static str) -> Refusal {
    bad_request(Code::Internal, format!("grpc: {message}"))
}

fn decode_refusal(error: DecompressError) -> Refusal {
    match error {
        DecompressError::Refused(refusal) => refusal,
        DecompressError::TooLarge(max) => bad_request(
            Code::ResourceExhausted,
            format!("grpc: received message after decompression larger than max {max}"),
        ),
        corrupt @ DecompressError::Corrupt { .. } => Refusal::invalid(corrupt.to_string()),
    }
}

pub(super) fn ok_response(message: Bytes) -> Response<ReplyBody> {
    let mut trailers = HeaderMap::with_capacity(1);
    trailers.insert(GRPC_STATUS, HeaderValue::from_static("0"));
    grpc_response(ReplyBody::with_trailers(message, trailers))
}

pub(super) fn grpc_response(reply: ReplyBody) -> Response<ReplyBody> {
    let mut response = Response::new(reply);
    response.headers_mut().insert(CONTENT_TYPE, GRPC_CONTENT_TYPE);
    response
}

/// A refusal without a body ("trailers-only"): the status is in the headers.
pub(super) fn refusal_response(refusal: &Refusal) -> Response<ReplyBody> {
    let mut response = grpc_response(ReplyBody::empty());
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
        headers.insert(GRPC_ACCEPT_ENCODING, ACCEPTED_ENCODINGS);
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
    use crate::core::{Allowance, Budget, Pipeline, PipelineSet, PipelineStats};

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// A body that records the thread that read it last.
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
        let intake = PipelineSet::default();
        let max = 4 << 20;
        intake.set_pipelines(Signal::Traces, vec![Pipeline::new(id, allowance, Arc::<PipelineStats>::default())]);

        let sizes = [heavy_work::HEAVY_WORK_MIN_BYTES, heavy_work::HEAVY_WORK_MIN_BYTES + 1, max, max + 1];
        for size in sizes {
            let bytes = gzip(&vec![0; size]);
            assert!(bytes.len() < MIN_BYTES_INFLATED_IN_OWN_TASK);
            let admission = intake.reserve(Signal::Traces, bytes.len()).unwrap();
            let reader = Arc::<Mutex<_>>::default();
            let body = TracedBody { bytes, reader: Arc::clone(&reader) };

            let inflated = decompress(CompressionType::Gzip, body, max, admission, Arc::default()).await;

            let in_place = *reader.lock().unwrap() == Some(thread::current().id());
            assert_eq!(in_place, size <= heavy_work::HEAVY_WORK_MIN_BYTES, "{size} bytes");
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
