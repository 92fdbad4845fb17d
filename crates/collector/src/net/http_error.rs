//! Errors in the responses of HTTP destinations.

use std::time::Duration;

use http::{HeaderMap, StatusCode, header::RETRY_AFTER, response::Parts};
use jiff::Timestamp;

use super::{request::BoundedResponse, response_status};
use crate::core::{BackendStatus, Code, ErrorClass, SendError};

/// The error of a response with this message, which does not name the URL yet.
pub(crate) fn status_error(head: &Parts, message: &str, retryable: bool) -> SendError {
    let code = match grpc_code(head.status) {
        code if retryable && !code.is_retryable(true) => Code::Unavailable,
        code => code,
    };
    SendError {
        code,
        class: ErrorClass::from(code),
        backend_status: Some(BackendStatus::Http(head.status)),
        message: format!("HTTP {} {message}", head.status.as_u16()).trim_end().to_owned().into(),
        retry_after: retry_after(&head.headers),
        retryable,
        partial: None,
    }
}

/// The text of a response, for a message.
pub(crate) fn message_text(answer: &BoundedResponse) -> String {
    response_status::clip_message(&String::from_utf8_lossy(&answer.bytes))
}

/// The hint of the destination when to try again.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let header = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    header.and_then(|value| response_status::parse_retry_after(value, Timestamp::now()))
}

/// Whether a TLS port has answered a request without TLS. Go, nginx and Apache each have their own text for it.
pub(crate) fn wants_tls(head: &Parts, answer: &BoundedResponse) -> bool {
    const TLS_REQUIRED_MESSAGES: [&[u8]; 3] =
        [b"HTTP request to an HTTPS server", b"sent to HTTPS port", b"SSL-enabled server port"];
    head.status == StatusCode::BAD_REQUEST && TLS_REQUIRED_MESSAGES.iter().any(|words| answer.contains(words))
}

/// The gRPC status for a sender that waits for the result.
fn grpc_code(status: StatusCode) -> Code {
    match status.as_u16() {
        401 => Code::Unauthenticated,
        403 => Code::PermissionDenied,
        // The URL is not that of such a server.
        300..=399 | 404 | 405 | 501 => Code::Unimplemented,
        429 => Code::ResourceExhausted,
        502..=504 => Code::Unavailable,
        400..=499 => Code::InvalidArgument,
        500..=599 => Code::Internal,
        _ => Code::Unknown,
    }
}
