//! Answers in the three dialects of OTLP.

use std::{convert::Infallible, time::Duration};

use base64::{Engine, engine::general_purpose};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use kubewake_otlp::Signal;
use serde_json::{Value, json};

use super::mode::Code;
use crate::load::encode::Message;

/// The body of any answer.
pub(super) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// The way in which a request is written, and so its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// gRPC.
    Grpc,
    /// Protobuf over HTTP.
    Protobuf,
    /// JSON over HTTP.
    Json,
}

/// Why a request was not taken.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub code: Code,
    pub message: String,
    pub retry_after: Option<Duration>,
}

impl Failure {
    /// A failure without a hint.
    pub(super) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), retry_after: None }
    }
}

/// The answer to a request that was taken, except for so many items.
pub(super) fn success(dialect: Dialect, signal: Signal, rejected: u64) -> Response<Body> {
    match dialect {
        Dialect::Grpc => grpc_success(&partial_success(rejected)),
        Dialect::Protobuf => plain(StatusCode::OK, "application/x-protobuf", partial_success(rejected)),
        Dialect::Json if rejected == 0 => json(StatusCode::OK, &json!({})),
        Dialect::Json => json(StatusCode::OK, &json!({ "partialSuccess": json_rejection(signal, rejected) })),
    }
}

/// The answer to a request that was not.
pub(super) fn failure(dialect: Dialect, failure: &Failure) -> Response<Body> {
    let mut response = match dialect {
        Dialect::Grpc => return grpc_failure(failure),
        Dialect::Protobuf => {
            let status = status_details(failure.code.grpc, &failure.message, None);
            plain(failure.code.http, "application/x-protobuf", status)
        }
        Dialect::Json => json(failure.code.http, &json!({ "code": failure.code.grpc, "message": failure.message })),
    };
    if let Some(after) = failure.retry_after {
        // The header counts whole seconds.
        let seconds = after.as_millis().div_ceil(1000) as u64;
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

/// A JSON document.
pub(super) fn json(status: StatusCode, document: &Value) -> Response<Body> {
    plain(status, "application/json", document.to_string().into_bytes())
}

fn plain(status: StatusCode, content_type: &'static str, body: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(Full::from(body).boxed_unsync());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

fn grpc_success(message: &[u8]) -> Response<Body> {
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

/// An error has no message, so its status stands in the headers.
fn grpc_failure(failure: &Failure) -> Response<Body> {
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

/// A `google.rpc.Status`, with a `RetryInfo` if there is a hint.
pub(crate) fn status_details(code: u16, message: &str, retry_after: Option<Duration>) -> Vec<u8> {
    let status = Message::default().varint(1, code.into()).text(2, message);
    let status = match retry_after {
        Some(after) => {
            let delay = Message::default().varint(1, after.as_secs()).varint(2, after.subsec_nanos().into());
            let info = Message::default().message(1, delay);
            let any = Message::default().text(1, "type.googleapis.com/google.rpc.RetryInfo").message(2, info);
            status.message(3, any)
        }
        None => status,
    };
    status.finish().0
}

/// An export response. The three signals' have the same shape.
fn partial_success(rejected: u64) -> Vec<u8> {
    if rejected == 0 {
        return Vec::new();
    }
    let partial = Message::default().varint(1, rejected).text(2, "as asked");
    Message::default().message(1, partial).finish().0
}

fn json_rejection(signal: Signal, rejected: u64) -> Value {
    let field = match signal {
        Signal::Traces => "rejectedSpans",
        Signal::Metrics => "rejectedDataPoints",
        Signal::Logs => "rejectedLogRecords",
    };
    // In protobuf's JSON an int64 is a string.
    json!({ field: rejected.to_string(), "errorMessage": "as asked" })
}
