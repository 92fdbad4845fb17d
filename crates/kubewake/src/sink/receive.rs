//! Handles an export request, from its headers to its response.

use std::{
    fmt::Display,
    sync::atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use kubewake_otlp::Signal;

use super::{
    SinkServer,
    decompress::decompress,
    mode::FailureCode,
    response::{self, ExportEncoding, ExportFailure, SinkResponseBody},
};

/// Signal and encoding of an export.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExportCall {
    signal: Signal,
    dialect: ExportEncoding,
}

impl ExportCall {
    /// The export in a request; `None` for other requests.
    pub(super) fn from_request<B>(request: &Request<B>) -> Option<Self> {
        if request.method() != Method::POST {
            return None;
        }
        let signal = match request.uri().path() {
            "/v1/traces" | "/opentelemetry.proto.collector.trace.v1.TraceService/Export" => Signal::Traces,
            "/v1/metrics" | "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export" => Signal::Metrics,
            "/v1/logs" | "/opentelemetry.proto.collector.logs.v1.LogsService/Export" => Signal::Logs,
            _ => return None,
        };
        let content_type = header_text(request.headers(), header::CONTENT_TYPE.as_str());
        let dialect = if content_type.starts_with("application/grpc") {
            ExportEncoding::Grpc
        } else if content_type.starts_with("application/json") {
            ExportEncoding::Json
        } else {
            ExportEncoding::Protobuf
        };
        Some(Self { signal, dialect })
    }
}

/// Accepts a request, or treats it as the mode says.
pub(super) async fn receive(
    sink: &SinkServer,
    call: ExportCall,
    request: Request<Incoming>,
) -> Response<SinkResponseBody> {
    // The body stays unread meanwhile, as with a backend that hangs: flow control stops the sender.
    wait_while_hanging(sink).await;
    let (head, body) = request.into_parts();
    let Ok(body) = body.collect().await else {
        sink.counters.add_unreadable();
        return response::failure_response(
            call.dialect,
            &ExportFailure::new(FailureCode::INVALID_ARGUMENT, "the connection closed before the end of the body"),
        );
    };
    let mode = *sink.mode.borrow();
    tokio::time::sleep(mode.delay).await;
    if mode.draw_failure() {
        sink.counters.add_failed();
        let failure = ExportFailure {
            code: mode.fail_code,
            message: "failure configured in the sink".to_owned(),
            retry_after: mode.retry_after,
        };
        return response::failure_response(call.dialect, &failure);
    }
    let taken = read_message(call, &head.headers, body.to_bytes())
        .and_then(|message| sink.counters.add(call.signal, &message).map_err(|error| unreadable_failure(&error)));
    match taken {
        Ok(()) => response::success_response(call.dialect, call.signal, mode.reject_items),
        Err(failure) => {
            sink.counters.add_unreadable();
            response::failure_response(call.dialect, &failure)
        }
    }
}

async fn wait_while_hanging(sink: &SinkServer) {
    if !sink.mode.borrow().hang {
        return;
    }
    let _hanging = HangingGuard::new(&sink.hanging);
    let mut mode = sink.mode.subscribe();
    // The mode's sender lives as long as the sink, so an error is impossible, and this ends with the hanging.
    let _ = mode.wait_for(|mode| !mode.hang).await;
}

/// Counts a request while it hangs, even if its sender gives up.
struct HangingGuard<'a>(&'a AtomicU64);

impl<'a> HangingGuard<'a> {
    fn new(count: &'a AtomicU64) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for HangingGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Reads a request, and checks that it is valid protobuf.
fn read_message(call: ExportCall, headers: &HeaderMap, body: Bytes) -> Result<Bytes, ExportFailure> {
    let message = match call.dialect {
        ExportEncoding::Grpc => read_grpc_message(headers, body)?,
        ExportEncoding::Protobuf => read_http_message(headers, body)?,
        ExportEncoding::Json => {
            let decoded = kubewake_otlp::json::decode(call.signal, &read_http_message(headers, body)?);
            decoded.map_err(|error| unreadable_failure(&error))?.into()
        }
    };
    kubewake_otlp::scan(call.signal, &message).map_err(|error| unreadable_failure(&error))?;
    Ok(message)
}

fn read_http_message(headers: &HeaderMap, body: Bytes) -> Result<Bytes, ExportFailure> {
    decompress(header_text(headers, "content-encoding"), body).map_err(|error| unreadable_failure(&error))
}

fn read_grpc_message(headers: &HeaderMap, mut body: Bytes) -> Result<Bytes, ExportFailure> {
    let Some((prefix, rest)) = body.split_first_chunk::<5>() else {
        return Err(unreadable_failure(&"the gRPC message has no length prefix"));
    };
    let [compressed, length @ ..] = *prefix;
    if rest.len() as u64 != u64::from(u32::from_be_bytes(length)) {
        return Err(unreadable_failure(&"the length of the gRPC message differs from its prefix"));
    }
    let message = body.split_off(5);
    let encoding = if compressed == 1 { header_text(headers, "grpc-encoding") } else { "" };
    decompress(encoding, message).map_err(|error| unreadable_failure(&error))
}

fn unreadable_failure(error: &dyn Display) -> ExportFailure {
    ExportFailure::new(FailureCode::INVALID_ARGUMENT, error.to_string())
}

fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}
