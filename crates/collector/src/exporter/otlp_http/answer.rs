//! What the answer to a request means.

use http::{
    HeaderMap, StatusCode,
    header::{CONTENT_TYPE, RETRY_AFTER},
    response::Parts,
};
use jiff::Timestamp;

use super::{JSON, PROTOBUF};
use crate::{
    core::{Code, Delivered, ErrorClass, Said, SendError},
    net::{
        request::Answer,
        status::{self, Status},
    },
};

/// Success with what came of it, or an error whose message does not yet say who answered.
pub(super) fn settle(head: &Parts, answer: &Answer) -> Result<Delivered, SendError> {
    if head.status.is_success() { delivered(head, answer) } else { Err(refused(head, answer)) }
}

/// Whether it is the answer of a port that expects TLS to somebody without. Go, nginx and Apache have their own words for it.
pub(super) fn wants_tls(head: &Parts, answer: &Answer) -> bool {
    const WORDS: [&[u8]; 3] = [b"HTTP request to an HTTPS server", b"sent to HTTPS port", b"SSL-enabled server port"];
    head.status == StatusCode::BAD_REQUEST && WORDS.iter().any(|words| answer.says(words))
}

fn delivered(head: &Parts, answer: &Answer) -> Result<Delivered, SendError> {
    if answer.bytes.is_empty() || !answer.complete {
        return Ok(Delivered::default());
    }
    let read = match content_type(&head.headers) {
        Some(PROTOBUF) => status::delivered(&answer.bytes),
        Some(JSON) => status::delivered_json(&answer.bytes),
        // A body of another kind says nothing about the data, as for the Collector.
        _ => Some(Delivered::default()),
    };
    read.ok_or_else(|| SendError {
        code: Code::Unavailable,
        class: ErrorClass::Protocol,
        said: Some(Said::Http(head.status)),
        message: format!("HTTP {} with a body that is no export response", head.status.as_u16()).into(),
        retry_after: None,
        // The Collector sends again, and so do we: something on the way has garbled the answer, and perhaps the request.
        retryable: true,
    })
}

fn refused(head: &Parts, answer: &Answer) -> SendError {
    let status = words(&head.headers, answer);
    let code = code(head.status);
    let header = head.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let hint = header.and_then(|value| status::retry_after(value, Timestamp::now()));
    SendError {
        code,
        class: ErrorClass::from(code),
        said: Some(Said::Http(head.status)),
        message: format!("HTTP {} {}", head.status.as_u16(), status.message).trim_end().to_owned().into(),
        retry_after: hint.or(status.retry_delay),
        retryable: matches!(head.status.as_u16(), 429 | 502 | 503 | 504),
    }
}

/// What the body says to people: a `Status`, or plain text from a proxy on the way.
fn words(headers: &HeaderMap, answer: &Answer) -> Status {
    let status = match content_type(headers) {
        Some(PROTOBUF) => Status::from_protobuf(&answer.bytes),
        Some(JSON) => Status::from_json(&answer.bytes),
        Some("text/plain") => {
            Some(Status { message: status::clip(&String::from_utf8_lossy(&answer.bytes)), retry_delay: None })
        }
        _ => None,
    };
    status.unwrap_or_default()
}

fn content_type(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    value.split(';').next().map(str::trim)
}

/// What a sender that waits for the answer hears on gRPC.
fn code(status: StatusCode) -> Code {
    match status.as_u16() {
        401 => Code::Unauthenticated,
        403 => Code::PermissionDenied,
        // Not the place that we took it for.
        300..=399 | 404 | 405 | 501 => Code::Unimplemented,
        429 => Code::ResourceExhausted,
        502..=504 => Code::Unavailable,
        400..=499 => Code::InvalidArgument,
        500..=599 => Code::Internal,
        _ => Code::Unknown,
    }
}
