//! Handles one unary OTLP/gRPC call.

use std::{convert::Infallible, pin::pin, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, request::Parts};
use hyper::{Response, body::Incoming};
use kubewake_config::model::{CompressionType, GrpcServer};
use kubewake_otlp::Signal;
use tokio::time::Instant;

use super::{
    GrpcConnection, health,
    message::{self, GrpcMessage, MessageMemory},
};
use crate::{
    core::{Code, EarlyRefusal, Refusal, RequestReservation},
    net::reply_body::ReplyBody,
    receiver::{
        body_buffer::BodyBuffer,
        body_timeout::{BodyProgress, read_in_time},
        connection_activity::{CallGuard, CloseReason},
        discard::discard_rest,
        grpc_calls::{
            self, GRPC_MESSAGE, GRPC_STATUS, bad_request, grpc_response, internal_error, is_grpc, ok_response,
            refusal_response,
        },
        otlp::partial_success,
        protocol_server::ActiveSettings,
        submitter::RequestPayload,
    },
};

/// Answers a call. The request is taken apart here and borrowed from here on: a value that moves from one
/// future to the next is stored in both.
pub(super) async fn handle(
    head: Parts,
    mut body: Incoming,
    served: Arc<GrpcConnection>,
    busy: CallGuard,
) -> Result<Response<ReplyBody>, Infallible> {
    if head.method != Method::POST || !is_grpc(&head.headers) {
        let mut response = Response::new(ReplyBody::empty());
        *response.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        discard_rest_of_call(body, &served);
        return Ok(response);
    }
    let signal = signal_of_path(head.uri.path());
    let began = Instant::now();
    let (response, code) = match route(&head, &mut body, signal, &served, busy).await {
        Ok(response) => (response, Code::Ok),
        Err(refusal) => {
            discard_rest_of_call(body, &served);
            (refusal_response(&refusal), refusal.code)
        }
    };
    signal.inspect(|signal| served.submitter.record_call(*signal, code, began.elapsed()));
    Ok(response)
}

/// Lets the client finish a call that was answered already.
fn discard_rest_of_call(body: Incoming, served: &GrpcConnection) {
    discard_rest(body, served.active.load().settings.max_message_bytes);
}

async fn route(
    head: &Parts,
    body: &mut Incoming,
    signal: Option<Signal>,
    served: &GrpcConnection,
    busy: CallGuard,
) -> Result<Response<ReplyBody>, Refusal> {
    let GrpcConnection { peer, active: live, submitter: taker, .. } = served;
    // `load` instead of a clone of the `Arc`, whose count all threads would write to.
    let live = live.load();
    let subject = match &live.auth {
        None => None,
        Some(auth) => auth.authenticate(&head.headers, peer.address).wait().await.map_err(|error| {
            taker.count_early_refusal(EarlyRefusal::Unauthenticated);
            grpc_calls::auth_refusal(&error)
        })?,
    };
    let path = head.uri.path();
    match signal {
        Some(signal) if taker.serves(signal) => {
            let read = read_message(&head.headers, body, signal, &live, served).await;
            let (body, admission) =
                read.inspect_err(|refusal| taker.count_early_refusal(grpc_calls::early_refusal_reason(refusal)))?;
            let origin = peer.origin(&head.headers, subject, live.settings.include_metadata);
            let shortfall = taker.submit(signal, body, admission, origin, peer).await?;
            Ok(ok_response(partial_success::grpc(shortfall.as_deref())))
        }
        _ if health::is_check(path) => health::check(&health_request(body).await?).map(ok_response),
        _ if health::is_watch(path) => watch_health(&health_request(body).await?, served, busy),
        _ => Err(unknown_method(path)),
    }
}

async fn health_request(body: &mut Incoming) -> Result<Bytes, Refusal> {
    let pace = BodyProgress::default();
    let message =
        read_in_time(pin!(message::read_message(body, health::MAX_REQUEST_BYTES, &pace, &mut UnchargedMemory)), &pace)
            .await?;
    Ok(message.bytes)
}

/// The memory of a message that is too small to be charged.
pub(super) struct UnchargedMemory;

impl MessageMemory for UnchargedMemory {
    fn reserve_whole(&mut self, _: usize) -> Result<(), Refusal> {
        Ok(())
    }

    fn begin_buffer(&mut self, length: usize) -> Result<BodyBuffer, Refusal> {
        Ok(BodyBuffer::uncharged(length))
    }

    fn finish(&mut self, _: Option<RequestReservation>) {}
}

/// The memory of a request, from the pipelines that will receive it.
struct PipelineMemory<'a> {
    signal: Signal,
    served: &'a GrpcConnection,
    admission: Option<RequestReservation>,
}

impl MessageMemory for PipelineMemory<'_> {
    fn reserve_whole(&mut self, length: usize) -> Result<(), Refusal> {
        self.served.submitter.reserve(self.signal, length).map(|granted| self.admission = Some(granted))
    }

    fn begin_buffer(&mut self, length: usize) -> Result<BodyBuffer, Refusal> {
        let arrival = self.served.submitter.begin_arrival(self.signal, length, &self.served.peer)?;
        Ok(BodyBuffer::charged(Some(length), length, arrival))
    }

    fn finish(&mut self, admission: Option<RequestReservation>) {
        self.admission = admission;
    }
}

/// Streams the health of a service: at once, and again when the receiver closes. The stream has to end then, as
/// it would hold up the shutdown, which waits for calls under way.
fn watch_health(request: &[u8], served: &GrpcConnection, busy: CallGuard) -> Result<Response<ReplyBody>, Refusal> {
    let places = [&served.watches, served.submitter.watch_permits()];
    let places: Result<Vec<_>, _> = places.into_iter().map(|places| places.clone().try_acquire_owned()).collect();
    let places = places.map_err(|_| {
        bad_request(Code::ResourceExhausted, "too many Watch calls are in progress; use Check".to_owned())
    })?;
    let end = busy.wait_for_close();
    let last = async move {
        let _places = places;
        (end.await == CloseReason::Shutdown).then(health::not_serving)
    };
    let mut trailers = HeaderMap::with_capacity(2);
    trailers.insert(GRPC_STATUS, HeaderValue::from(u16::from(Code::Unavailable.number())));
    trailers.insert(GRPC_MESSAGE, HeaderValue::from_static("the connection is closing"));
    Ok(grpc_response(ReplyBody::streaming(health::first_watch_response(request), last, trailers)))
}

fn signal_of_path(path: &str) -> Option<Signal> {
    match path {
        "/opentelemetry.proto.collector.trace.v1.TraceService/Export" => Some(Signal::Traces),
        "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export" => Some(Signal::Metrics),
        "/opentelemetry.proto.collector.logs.v1.LogsService/Export" => Some(Signal::Logs),
        _ => None,
    }
}

/// Reads the request into memory that was reserved for it.
async fn read_message(
    headers: &HeaderMap,
    body: &mut Incoming,
    signal: Signal,
    live: &ActiveSettings<GrpcServer>,
    served: &GrpcConnection,
) -> Result<(RequestPayload, RequestReservation), Refusal> {
    let algorithm = grpc_calls::grpc_encoding(headers)?;
    let max = usize::try_from(live.settings.max_message_bytes).unwrap_or(usize::MAX);
    let mut memory = PipelineMemory { signal, served, admission: None };
    let pace = BodyProgress::default();
    let message = served.timers.read_in_time(pin!(message::read_message(body, max, &pace, &mut memory)), &pace).await?;
    let admission = memory.admission.ok_or_else(Refusal::out_of_memory)?;
    if message.compressed {
        let algorithm = algorithm.filter(|a| *a != CompressionType::None);
        let algorithm = algorithm.ok_or_else(|| internal_error("a compressed message without grpc-encoding"))?;
        return grpc_calls::inflate(algorithm, message.bytes, max, admission, served.peer.share()).await;
    }
    Ok(charge_message(message, admission))
}

/// Charges a message for its read buffer; without memory for that, the message is copied out of it.
fn charge_message(message: GrpcMessage, mut admission: RequestReservation) -> (RequestPayload, RequestReservation) {
    let length = message.bytes.len();
    let stays = message.in_place && admission.grow_all((message::HELD_BYTES_FACTOR - 1) * length);
    let payload = match (message.in_place, stays) {
        (true, true) => RequestPayload { held_bytes: message::HELD_BYTES_FACTOR * length, bytes: message.bytes },
        (true, false) => RequestPayload { held_bytes: length, bytes: Bytes::copy_from_slice(&message.bytes) },
        (false, _) => RequestPayload { held_bytes: length, bytes: message.bytes },
    };
    (payload, admission)
}

fn unknown_method(path: &str) -> Refusal {
    let (service, method) = path.trim_start_matches('/').split_once('/').unwrap_or((path, ""));
    let known = ["trace.v1.TraceService", "metrics.v1.MetricsService", "logs.v1.LogsService"];
    let known = known.iter().any(|k| service.strip_prefix("opentelemetry.proto.collector.") == Some(k));
    bad_request(
        Code::Unimplemented,
        match known {
            true if method == "Export" => format!("no pipeline accepts data from {service}"),
            true => format!("unknown method {method} for service {service}"),
            false => format!("unknown service {service}"),
        },
    )
}
