//! Responses in the three encodings of OTLP.

use std::{convert::Infallible, time::Duration};

use base64::{Engine, engine::general_purpose};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use kubewake_otlp::Signal;
use serde_json::{Value, json};

use super::mode::FailureCode;
use crate::load::encode::MessageBuilder;

pub(super) type SinkResponseBody = UnsyncBoxBody<Bytes, Infallible>;

/// The encoding of a request, and of its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExportEncoding {
    Grpc,
    Protobuf,
    Json,
}

/// Why a request was rejected.
#[derive(Clone, Debug)]
pub(super) struct ExportFailure {
    pub code: FailureCode,
    pub message: String,
    pub retry_after: Option<Duration>,
}

impl ExportFailure {
    /// A failure without a retry delay.
    pub(super) fn new(code: FailureCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), retry_after: None }
    }
}

/// The response to an accepted request with this number of rejected items.
pub(super) fn success_response(dialect: ExportEncoding, signal: Signal, rejected: u64) -> Response<SinkResponseBody> {
    match dialect {
        ExportEncoding::Grpc => grpc_success(&partial_success(rejected)),
        ExportEncoding::Protobuf => plain_response(StatusCode::OK, "application/x-protobuf", partial_success(rejected)),
        ExportEncoding::Json if rejected == 0 => json_response(StatusCode::OK, &json!({})),
        ExportEncoding::Json => {
            json_response(StatusCode::OK, &json!({ "partialSuccess": json_rejection(signal, rejected) }))
        }
    }
}

/// The response to a rejected request.
pub(super) fn failure_response(dialect: ExportEncoding, failure: &ExportFailure) -> Response<SinkResponseBody> {
    let mut response = match dialect {
        ExportEncoding::Grpc => return grpc_failure(failure),
        ExportEncoding::Protobuf => {
            let status = status_details(failure.code.grpc, &failure.message, None);
            plain_response(failure.code.http, "application/x-protobuf", status)
        }
        ExportEncoding::Json => {
            json_response(failure.code.http, &json!({ "code": failure.code.grpc, "message": failure.message }))
        }
    };
    if let Some(after) = failure.retry_after {
        // The header has a resolution of one second.
        let seconds = after.as_millis().div_ceil(1000) as u64;
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

pub(super) fn json_response(status: StatusCode, document: &Value) -> Response<SinkResponseBody> {
    plain_response(status, "application/json", document.to_string().into_bytes())
}

fn plain_response(status: StatusCode, content_type: &'static str, body: Vec<u8>) -> Response<SinkResponseBody> {
    let mut response = Response::new(Full::from(body).boxed_unsync());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

fn grpc_success(message: &[u8]) -> Response<SinkResponseBody> {
    let mut body = vec![0];
    body.extend_from_slice(&(message.len() as u32).to_be_bytes());
    body.extend_from_slice(message);
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    let body = Full::new(Bytes::from(body)).with_trailers(std::future::ready(Some(Ok(trailers))));
    let mut response = Response::new(body.boxed_unsync());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    response
}

/// An error has no message, so that its status is in the headers.
fn grpc_failure(failure: &ExportFailure) -> Response<SinkResponseBody> {
    let mut response = Response::new(Full::new(Bytes::new()).boxed_unsync());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert("grpc-status", failure.code.grpc.into());
    if let Ok(message) = HeaderValue::from_str(&failure.message) {
        headers.insert("grpc-message", message);
    }
    if failure.retry_after.is_some() {
        let details = status_details(failure.code.grpc, &failure.message, failure.retry_after);
        if let Ok(details) = HeaderValue::from_str(&general_purpose::STANDARD_NO_PAD.encode(details)) {
            headers.insert("grpc-status-details-bin", details);
        }
    }
    response
}

/// A `google.rpc.Status`, with a `RetryInfo` if there is a retry delay.
pub(crate) fn status_details(code: u16, message: &str, retry_after: Option<Duration>) -> Vec<u8> {
    let status = MessageBuilder::default().varint(1, code.into()).text(2, message);
    let status = match retry_after {
        Some(after) => {
            let delay = MessageBuilder::default().varint(1, after.as_secs()).varint(2, after.subsec_nanos().into());
            let info = MessageBuilder::default().message(1, delay);
            let any = MessageBuilder::default().text(1, "type.googleapis.com/google.rpc.RetryInfo").message(2, info);
            status.message(3, any)
        }
        None => status,
    };
    status.finish().0
}

/// An export response, which has the same form for all three signals.
fn partial_success(rejected: u64) -> Vec<u8> {
    if rejected == 0 {
        return Vec::new();
    }
    let partial = MessageBuilder::default().varint(1, rejected).text(2, "failure configured in the sink");
    MessageBuilder::default().message(1, partial).finish().0
}

fn json_rejection(signal: Signal, rejected: u64) -> Value {
    let field = match signal {
        Signal::Traces => "rejectedSpans",
        Signal::Metrics => "rejectedDataPoints",
        Signal::Logs => "rejectedLogRecords",
    };
    // Protobuf's JSON mapping writes an int64 as a string.
    json!({ field: rejected.to_string(), "errorMessage": "failure configured in the sink" })
}
