//! An export request, from its headers to its answer.

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
    Sink,
    decompress::decompress,
    mode::Code,
    reply::{self, Body, Dialect, Failure},
};

/// What a request asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    signal: Signal,
    dialect: Dialect,
}

impl Call {
    /// The export that a request is; `None` if it is something else.
    pub(super) fn of<B>(request: &Request<B>) -> Option<Self> {
        if request.method() != Method::POST {
            return None;
        }
        let signal = match request.uri().path() {
            "/v1/traces" | "/opentelemetry.proto.collector.trace.v1.TraceService/Export" => Signal::Traces,
            "/v1/metrics" | "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export" => Signal::Metrics,
            "/v1/logs" | "/opentelemetry.proto.collector.logs.v1.LogsService/Export" => Signal::Logs,
            _ => return None,
        };
        let content_type = text(request.headers(), header::CONTENT_TYPE.as_str());
        let dialect = if content_type.starts_with("application/grpc") {
            Dialect::Grpc
        } else if content_type.starts_with("application/json") {
            Dialect::Json
        } else {
            Dialect::Protobuf
        };
        Some(Self { signal, dialect })
    }
}

/// Takes a request, or does to it what the mode says.
pub(super) async fn receive(sink: &Sink, call: Call, request: Request<Incoming>) -> Response<Body> {
    // The body stays unread meanwhile, as with a backend that is stuck: flow control stops the sender.
    wait_while_hanging(sink).await;
    let (head, body) = request.into_parts();
    let Ok(body) = body.collect().await else {
        sink.counters.add_unreadable();
        return reply::failure(call.dialect, &Failure::new(Code::INVALID_ARGUMENT, "the body broke off"));
    };
    let mode = *sink.mode.borrow();
    tokio::time::sleep(mode.delay).await;
    if mode.fails() {
        sink.counters.add_failed();
        let failure = Failure { code: mode.fail_code, message: "as asked".to_owned(), retry_after: mode.retry_after };
        return reply::failure(call.dialect, &failure);
    }
    let taken = message(call, &head.headers, body.to_bytes())
        .and_then(|message| sink.counters.add(call.signal, &message).map_err(|error| unreadable(&error)));
    match taken {
        Ok(()) => reply::success(call.dialect, call.signal, mode.reject_items),
        Err(failure) => {
            sink.counters.add_unreadable();
            reply::failure(call.dialect, &failure)
        }
    }
}

async fn wait_while_hanging(sink: &Sink) {
    if !sink.mode.borrow().hang {
        return;
    }
    let _hanging = Hanging::new(&sink.hanging);
    let mut mode = sink.mode.subscribe();
    // The sender of modes lives as long as the sink, so this ends only when the hanging does.
    let _ = mode.wait_for(|mode| !mode.hang).await;
}

/// Counts a request while it hangs, also when its sender gives up.
struct Hanging<'a>(&'a AtomicU64);

impl<'a> Hanging<'a> {
    fn new(count: &'a AtomicU64) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Hanging<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The request's protobuf, whole and sound.
fn message(call: Call, headers: &HeaderMap, body: Bytes) -> Result<Bytes, Failure> {
    let message = match call.dialect {
        Dialect::Grpc => grpc_message(headers, body)?,
        Dialect::Protobuf => http_message(headers, body)?,
        Dialect::Json => {
            let decoded = kubewake_otlp::json::decode(call.signal, &http_message(headers, body)?);
            decoded.map_err(|error| unreadable(&error))?.into()
        }
    };
    kubewake_otlp::scan(call.signal, &message).map_err(|error| unreadable(&error))?;
    Ok(message)
}

fn http_message(headers: &HeaderMap, body: Bytes) -> Result<Bytes, Failure> {
    decompress(text(headers, "content-encoding"), body).map_err(|error| unreadable(&error))
}

fn grpc_message(headers: &HeaderMap, mut body: Bytes) -> Result<Bytes, Failure> {
    let Some((prefix, rest)) = body.split_first_chunk::<5>() else {
        return Err(unreadable(&"the message has no prefix"));
    };
    let [compressed, length @ ..] = *prefix;
    if rest.len() as u64 != u64::from(u32::from_be_bytes(length)) {
        return Err(unreadable(&"the message has another length than its prefix says"));
    }
    let message = body.split_off(5);
    let encoding = if compressed == 1 { text(headers, "grpc-encoding") } else { "" };
    decompress(encoding, message).map_err(|error| unreadable(&error))
}

fn unreadable(error: &dyn Display) -> Failure {
    Failure::new(Code::INVALID_ARGUMENT, error.to_string())
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}
