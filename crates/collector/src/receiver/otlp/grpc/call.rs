//! One call.

use std::{
    convert::Infallible,
    future::Future,
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header::CONTENT_TYPE, request::Parts};
use hyper::{Response, body::Incoming};
use kubewake_config::model::{Compression, GrpcServer};
use kubewake_otlp::Signal;
use tokio::time::Instant;

use super::{
    super::{
        Live,
        intake::{Payload, Taker},
        rpc_status,
    },
    Served,
    activity::{Busy, End},
    health,
    message::{self, Message},
};
use crate::{
    core::{Admission, Code, Refusal, RefusalKind, TurnedAway},
    net::{
        decode::{self, DecodeError},
        reply::Reply,
    },
};

pub(super) const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const GRPC_DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");
const GRPC_ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
const GRPC_ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");
const ACCEPTED: HeaderValue = HeaderValue::from_static("gzip,zstd,snappy,deflate");
const CONTENT: HeaderValue = HeaderValue::from_static("application/grpc");

/// An uncompressed message of two bytes: an empty `partial_success`, which says that all was taken.
const ALL_TAKEN: Bytes = Bytes::from_static(&[0, 0, 0, 0, 2, 0x0a, 0]);

/// A body must arrive within this time: it holds memory while it does.
const BODY_LIMIT: Duration = Duration::from_secs(60);

/// Answers a call. The request is taken apart here and lent from here on: what is handed from one future to the next is
/// stored in both.
pub(super) async fn handle(
    head: Parts,
    mut body: Incoming,
    served: Arc<Served>,
    busy: Busy,
) -> Result<Response<Reply>, Infallible> {
    let is_grpc = head.headers.get(CONTENT_TYPE).is_some_and(|v| v.as_bytes().starts_with(b"application/grpc"));
    if head.method != Method::POST || !is_grpc {
        let mut response = Response::new(Reply::empty());
        *response.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return Ok(response);
    }
    let (signal, began) = (signal(head.uri.path()), Instant::now());
    let (response, code) = match route(&head, &mut body, signal, &served, busy).await {
        Ok(response) => (response, Code::Ok),
        Err(refusal) => (refused(&refusal), refusal.code),
    };
    signal.inspect(|signal| served.taker.called(*signal, code, began.elapsed()));
    Ok(response)
}

async fn route(
    head: &Parts,
    body: &mut Incoming,
    signal: Option<Signal>,
    served: &Served,
    busy: Busy,
) -> Result<Response<Reply>, Refusal> {
    let Served { peer, live, taker } = served;
    // Not another holder of them, whose count all threads would write to.
    let live = live.load();
    let subject = match &live.auth {
        None => None,
        Some(auth) => auth.authenticate(&head.headers).wait().await.map_err(|error| {
            taker.turn_away(TurnedAway::Unauthenticated);
            refuse(Code::Unauthenticated, error.to_string())
        })?,
    };
    let path = head.uri.path();
    match signal {
        Some(signal) if taker.serves(signal) => {
            let read = read(&head.headers, body, signal, &live, taker).await;
            let (body, admission) = read.inspect_err(|refusal| taker.turn_away(reason(refusal)))?;
            let origin = peer.origin(&head.headers, subject, live.settings.include_metadata);
            taker.take(signal, body, admission, origin).await?;
            Ok(ok(ALL_TAKEN))
        }
        _ if health::is_check(path) => health::check(&health_request(body).await?).map(ok),
        _ if health::is_watch(path) => Ok(watch(&health_request(body).await?, busy)),
        _ => Err(unknown(path)),
    }
}

async fn health_request(body: &mut Incoming) -> Result<Bytes, Refusal> {
    let message = in_time(pin!(message::read(body, health::MAX_REQUEST, |_| Ok(())))).await?;
    Ok(message.bytes)
}

/// Says how a service is, and once more when that changes: when the receiver closes. Without the end it would hold up the
/// closing, which waits for calls under way.
fn watch(request: &[u8], busy: Busy) -> Response<Reply> {
    let end = busy.until_the_end();
    let last = async { (end.await == End::Closing).then(health::not_serving) };
    let mut trailers = HeaderMap::with_capacity(2);
    trailers.insert(GRPC_STATUS, HeaderValue::from(u16::from(Code::Unavailable.number())));
    trailers.insert(GRPC_MESSAGE, HeaderValue::from_static("the connection is closing"));
    respond(Reply::held_open(health::first(request), last, trailers))
}

fn signal(path: &str) -> Option<Signal> {
    match path {
        "/opentelemetry.proto.collector.trace.v1.TraceService/Export" => Some(Signal::Traces),
        "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export" => Some(Signal::Metrics),
        "/opentelemetry.proto.collector.logs.v1.LogsService/Export" => Some(Signal::Logs),
        _ => None,
    }
}

/// Reads the request into memory that was reserved for it.
async fn read(
    headers: &HeaderMap,
    body: &mut Incoming,
    signal: Signal,
    live: &Live<GrpcServer>,
    taker: &Taker,
) -> Result<(Payload, Admission), Refusal> {
    let algorithm = encoding(headers)?;
    let max = usize::try_from(live.settings.max_message_bytes).unwrap_or(usize::MAX);
    let mut admission = None;
    let reserve = |length| taker.admit(signal, length).map(|granted| admission = Some(granted));
    let message = in_time(pin!(message::read(body, max, reserve))).await?;
    let admission = admission.ok_or_else(Refusal::memory)?;
    if message.compressed {
        let algorithm = algorithm.filter(|a| *a != Compression::None);
        let algorithm = algorithm.ok_or_else(|| internal("a compressed message without grpc-encoding"))?;
        return inflate(algorithm, message.bytes, max, admission).await;
    }
    Ok(settle(message, admission))
}

/// Compressed messages from this size on are inflated in a task of their own: a connection is one task, and must go on
/// reading meanwhile.
const INFLATE_APART: usize = 8 << 10;

async fn inflate(
    algorithm: Compression,
    compressed: Bytes,
    max: usize,
    mut admission: Admission,
) -> Result<(Payload, Admission), Refusal> {
    let apart = compressed.len() >= INFLATE_APART;
    let work = move || {
        let inflated = decode::decompress(algorithm, &compressed, max, &mut |more| admission.grow(more));
        inflated.map(|body| (body.into(), admission)).map_err(refusal)
    };
    if !apart {
        return work();
    }
    tokio::spawn(async { work() }).await.unwrap_or_else(|_| Err(internal("decompression failed")))
}

/// Limits how long a message may take to arrive. Most are here already, and need no timer.
async fn in_time(mut read: Pin<&mut impl Future<Output = Result<Message, Refusal>>>) -> Result<Message, Refusal> {
    let here = std::future::poll_fn(|cx| match read.as_mut().poll(cx) {
        Poll::Ready(result) => Poll::Ready(Some(result)),
        Poll::Pending => Poll::Ready(None),
    });
    match here.await {
        Some(result) => result,
        // Boxed, so that those that need no timer have no room for one.
        None => Box::pin(tokio::time::timeout(BODY_LIMIT, read)).await.map_err(|_| too_slow())?,
    }
}

/// Charges a message for the buffer that it holds on to; without the memory for that it is copied out of it.
fn settle(message: Message, mut admission: Admission) -> (Payload, Admission) {
    let length = message.bytes.len();
    let stays = message.in_place && admission.grow_all((message::HELD - 1) * length);
    let payload = match (message.in_place, stays) {
        (true, true) => Payload { held: message::HELD * length, bytes: message.bytes },
        (true, false) => Payload { held: length, bytes: Bytes::copy_from_slice(&message.bytes) },
        (false, _) => Payload { held: length, bytes: message.bytes },
    };
    (payload, admission)
}

fn encoding(headers: &HeaderMap) -> Result<Option<Compression>, Refusal> {
    let Some(name) = headers.get(GRPC_ENCODING) else { return Ok(None) };
    let name = name.to_str().unwrap_or_default();
    if name == "identity" {
        return Ok(None);
    }
    let algorithm = decode::algorithm(name).map(Some);
    algorithm.ok_or_else(|| refuse(Code::Unimplemented, format!("grpc: compression {name:?} is not supported")))
}

/// Why a message was not even scanned.
fn reason(refusal: &Refusal) -> TurnedAway {
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

pub(super) fn internal(message: &'static str) -> Refusal {
    refuse(Code::Internal, format!("grpc: {message}"))
}

fn too_slow() -> Refusal {
    refuse(Code::DeadlineExceeded, format!("the message did not arrive within {BODY_LIMIT:?}"))
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

fn unknown(path: &str) -> Refusal {
    let (service, method) = path.trim_start_matches('/').split_once('/').unwrap_or((path, ""));
    let known = ["trace.v1.TraceService", "metrics.v1.MetricsService", "logs.v1.LogsService"];
    let known = known.iter().any(|k| service.strip_prefix("opentelemetry.proto.collector.") == Some(k));
    refuse(
        Code::Unimplemented,
        match known {
            true if method == "Export" => format!("no pipeline takes what {service} sends"),
            true => format!("unknown method {method} for service {service}"),
            false => format!("unknown service {service}"),
        },
    )
}

fn ok(message: Bytes) -> Response<Reply> {
    let mut trailers = HeaderMap::with_capacity(1);
    trailers.insert(GRPC_STATUS, HeaderValue::from_static("0"));
    respond(Reply::with_trailers(message, trailers))
}

fn respond(reply: Reply) -> Response<Reply> {
    let mut response = Response::new(reply);
    response.headers_mut().insert(CONTENT_TYPE, CONTENT);
    response
}

/// A refusal without a body: its status is in the headers, which are the trailers at once.
fn refused(refusal: &Refusal) -> Response<Reply> {
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
