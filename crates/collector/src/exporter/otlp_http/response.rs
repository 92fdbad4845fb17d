//! Maps the response of a request to a result.

use http::{
    HeaderMap, StatusCode,
    header::{CONTENT_TYPE, RETRY_AFTER},
    response::Parts,
};
use jiff::Timestamp;

use super::{JSON_CONTENT_TYPE, PROTOBUF_CONTENT_TYPE};
use crate::{
    core::{BackendStatus, Code, ErrorClass, SendError, SendSuccess},
    net::{
        request::BoundedResponse,
        response_status::{self, RpcStatus},
    },
};

/// Success with rejected items, or an error whose message does not name the endpoint yet.
pub(super) fn send_result(head: &Parts, answer: &BoundedResponse) -> Result<SendSuccess, SendError> {
    if head.status.is_success() { delivered(head, answer) } else { Err(http_error(head, answer)) }
}

/// Whether a TLS port has answered a request without TLS. Go, nginx and Apache each have their own text for it.
pub(super) fn wants_tls(head: &Parts, answer: &BoundedResponse) -> bool {
    const TLS_REQUIRED_MESSAGES: [&[u8]; 3] =
        [b"HTTP request to an HTTPS server", b"sent to HTTPS port", b"SSL-enabled server port"];
    head.status == StatusCode::BAD_REQUEST && TLS_REQUIRED_MESSAGES.iter().any(|words| answer.contains(words))
}

fn delivered(head: &Parts, answer: &BoundedResponse) -> Result<SendSuccess, SendError> {
    if answer.bytes.is_empty() || !answer.complete {
        return Ok(SendSuccess::default());
    }
    let read = match content_type(&head.headers) {
        Some(PROTOBUF_CONTENT_TYPE) => response_status::parse_export_response(&answer.bytes),
        Some(JSON_CONTENT_TYPE) => response_status::parse_export_response_json(&answer.bytes),
        // A body of another type reports nothing, as in the Collector.
        _ => Some(SendSuccess::default()),
    };
    read.ok_or_else(|| SendError {
        code: Code::Unavailable,
        class: ErrorClass::Protocol,
        backend_status: Some(BackendStatus::Http(head.status)),
        message: format!("HTTP {} with a body that is not an export response", head.status.as_u16()).into(),
        retry_after: None,
        // The Collector retries, and so do we: the response, and perhaps the request, was garbled on the way.
        retryable: true,
        partial: None,
    })
}

fn http_error(head: &Parts, answer: &BoundedResponse) -> SendError {
    let status = error_status(&head.headers, answer);
    let code = grpc_code(head.status);
    let header = head.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let hint = header.and_then(|value| response_status::parse_retry_after(value, Timestamp::now()));
    SendError {
        code,
        class: ErrorClass::from(code),
        backend_status: Some(BackendStatus::Http(head.status)),
        message: format!("HTTP {} {}", head.status.as_u16(), status.message).trim_end().to_owned().into(),
        retry_after: hint.or(status.retry_delay),
        retryable: matches!(head.status.as_u16(), 429 | 502 | 503 | 504),
        partial: None,
    }
}

/// The error message in the body: a `RpcStatus`, or plain text from a proxy on the way.
fn error_status(headers: &HeaderMap, answer: &BoundedResponse) -> RpcStatus {
    let status = match content_type(headers) {
        Some(PROTOBUF_CONTENT_TYPE) => RpcStatus::from_protobuf(&answer.bytes),
        Some(JSON_CONTENT_TYPE) => RpcStatus::from_json(&answer.bytes),
        Some("text/plain") => Some(RpcStatus {
            message: response_status::clip_message(&String::from_utf8_lossy(&answer.bytes)),
            retry_delay: None,
        }),
        _ => None,
    };
    status.unwrap_or_default()
}

fn content_type(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    value.split(';').next().map(str::trim)
}

/// The gRPC status for a sender that waits for the result.
fn grpc_code(status: StatusCode) -> Code {
    match status.as_u16() {
        401 => Code::Unauthenticated,
        403 => Code::PermissionDenied,
        // The URL is not that of an OTLP server.
        300..=399 | 404 | 405 | 501 => Code::Unimplemented,
        429 => Code::ResourceExhausted,
        502..=504 => Code::Unavailable,
        400..=499 => Code::InvalidArgument,
        500..=599 => Code::Internal,
        _ => Code::Unknown,
    }
}
