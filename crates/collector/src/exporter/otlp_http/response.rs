//! Maps the response of a request to a result.

use http::{HeaderMap, header::CONTENT_TYPE, response::Parts};

use super::{JSON_CONTENT_TYPE, PROTOBUF_CONTENT_TYPE};
use crate::{
    core::{BackendStatus, Code, ErrorClass, SendError, SendSuccess},
    net::{
        http_error,
        request::BoundedResponse,
        response_status::{self, RpcStatus},
    },
};

/// Success with rejected items, or an error whose message does not name the endpoint yet.
pub(super) fn send_result(head: &Parts, answer: &BoundedResponse) -> Result<SendSuccess, SendError> {
    if head.status.is_success() { delivered(head, answer) } else { Err(http_error(head, answer)) }
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
    let retryable = matches!(head.status.as_u16(), 429 | 502 | 503 | 504);
    let error = http_error::status_error(head, &status.message, retryable);
    SendError { retry_after: error.retry_after.or(status.retry_delay), ..error }
}

/// The error message in the body: a `RpcStatus`, or plain text from a proxy on the way.
fn error_status(headers: &HeaderMap, answer: &BoundedResponse) -> RpcStatus {
    let status = match content_type(headers) {
        Some(PROTOBUF_CONTENT_TYPE) => RpcStatus::from_protobuf(&answer.bytes),
        Some(JSON_CONTENT_TYPE) => RpcStatus::from_json(&answer.bytes),
        Some("text/plain") => Some(RpcStatus { message: http_error::message_text(answer), retry_delay: None }),
        _ => None,
    };
    status.unwrap_or_default()
}

fn content_type(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    value.split(';').next().map(str::trim)
}
