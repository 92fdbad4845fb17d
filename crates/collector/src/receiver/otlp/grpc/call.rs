//! One call.

use std::{convert::Infallible, pin::pin, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, request::Parts};
use hyper::{Response, body::Incoming};
use kubewake_config::model::{Compression, GrpcServer};
use kubewake_otlp::Signal;
use tokio::time::Instant;

use super::{
    Served, health,
    message::{self, Message, Reserve},
};
use crate::{
    core::{Admission, Code, Refusal, TurnedAway},
    net::reply::Reply,
    receiver::{
        activity::{Busy, End},
        body::BodyBuffer,
        calls::{self, GRPC_MESSAGE, GRPC_STATUS, internal, is_grpc, ok, refuse, refused, respond},
        discard::discard_rest,
        intake::Payload,
        otlp::partial,
        port::Live,
        timers::{Pace, in_time},
    },
};

/// Answers a call. The request is taken apart here and lent from here on: what is handed from one future to the next is
/// stored in both.
pub(super) async fn handle(
    head: Parts,
    mut body: Incoming,
    served: Arc<Served>,
    busy: Busy,
) -> Result<Response<Reply>, Infallible> {
    if head.method != Method::POST || !is_grpc(&head.headers) {
        let mut response = Response::new(Reply::empty());
        *response.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        discard(body, &served);
        return Ok(response);
    }
    let (signal, began) = (signal(head.uri.path()), Instant::now());
    let (response, code) = match route(&head, &mut body, signal, &served, busy).await {
        Ok(response) => (response, Code::Ok),
        Err(refusal) => {
            discard(body, &served);
            (refused(&refusal), refusal.code)
        }
    };
    signal.inspect(|signal| served.taker.called(*signal, code, began.elapsed()));
    Ok(response)
}

/// Lets the client finish a call that is answered already.
fn discard(body: Incoming, served: &Served) {
    discard_rest(body, served.live.load().settings.max_message_bytes);
}

async fn route(
    head: &Parts,
    body: &mut Incoming,
    signal: Option<Signal>,
    served: &Served,
    busy: Busy,
) -> Result<Response<Reply>, Refusal> {
    let Served { peer, live, taker, .. } = served;
    // Not another holder of them, whose count all threads would write to.
    let live = live.load();
    let subject = match &live.auth {
        None => None,
        Some(auth) => auth.authenticate(&head.headers, peer.address).wait().await.map_err(|error| {
            taker.turn_away(TurnedAway::Unauthenticated);
            calls::unauthenticated(&error)
        })?,
    };
    let path = head.uri.path();
    match signal {
        Some(signal) if taker.serves(signal) => {
            let read = read(&head.headers, body, signal, &live, served).await;
            let (body, admission) = read.inspect_err(|refusal| taker.turn_away(calls::reason(refusal)))?;
            let origin = peer.origin(&head.headers, subject, live.settings.include_metadata);
            let shortfall = taker.take(signal, body, admission, origin, peer).await?;
            Ok(ok(partial::grpc(shortfall.as_deref())))
        }
        _ if health::is_check(path) => health::check(&health_request(body).await?).map(ok),
        _ if health::is_watch(path) => watch(&health_request(body).await?, served, busy),
        _ => Err(unknown(path)),
    }
}

async fn health_request(body: &mut Incoming) -> Result<Bytes, Refusal> {
    let pace = Pace::default();
    let message = in_time(pin!(message::read(body, health::MAX_REQUEST, &pace, &mut Uncharged)), &pace).await?;
    Ok(message.bytes)
}

/// The memory of a message that is too small to be counted.
pub(super) struct Uncharged;

impl Reserve for Uncharged {
    fn whole(&mut self, _: usize) -> Result<(), Refusal> {
        Ok(())
    }

    fn begin(&mut self, length: usize) -> Result<BodyBuffer, Refusal> {
        Ok(BodyBuffer::uncharged(length))
    }

    fn finish(&mut self, _: Option<Admission>) {}
}

/// The memory of a request, from the pipelines that will get it.
struct FromPipelines<'a> {
    signal: Signal,
    served: &'a Served,
    admission: Option<Admission>,
}

impl Reserve for FromPipelines<'_> {
    fn whole(&mut self, length: usize) -> Result<(), Refusal> {
        self.served.taker.admit(self.signal, length).map(|granted| self.admission = Some(granted))
    }

    fn begin(&mut self, length: usize) -> Result<BodyBuffer, Refusal> {
        let arrival = self.served.taker.begin_arrival(self.signal, length, &self.served.peer)?;
        Ok(BodyBuffer::charged(Some(length), length, arrival))
    }

    fn finish(&mut self, admission: Option<Admission>) {
        self.admission = admission;
    }
}

/// Says how a service is, and once more when that changes: when the receiver closes. Without the end it would hold up the
/// closing, which waits for calls under way.
fn watch(request: &[u8], served: &Served, busy: Busy) -> Result<Response<Reply>, Refusal> {
    let places = [&served.watches, served.taker.watches()];
    let places: Result<Vec<_>, _> = places.into_iter().map(|places| places.clone().try_acquire_owned()).collect();
    let places = places
        .map_err(|_| refuse(Code::ResourceExhausted, "too many Watch calls are under way; use Check".to_owned()))?;
    let end = busy.until_the_end();
    let last = async move {
        let _places = places;
        (end.await == End::Closing).then(health::not_serving)
    };
    let mut trailers = HeaderMap::with_capacity(2);
    trailers.insert(GRPC_STATUS, HeaderValue::from(u16::from(Code::Unavailable.number())));
    trailers.insert(GRPC_MESSAGE, HeaderValue::from_static("the connection is closing"));
    Ok(respond(Reply::held_open(health::first(request), last, trailers)))
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
    served: &Served,
) -> Result<(Payload, Admission), Refusal> {
    let algorithm = calls::encoding(headers)?;
    let max = usize::try_from(live.settings.max_message_bytes).unwrap_or(usize::MAX);
    let mut memory = FromPipelines { signal, served, admission: None };
    let pace = Pace::default();
    let message = served.timers.limit(pin!(message::read(body, max, &pace, &mut memory)), &pace).await?;
    let admission = memory.admission.ok_or_else(Refusal::memory)?;
    if message.compressed {
        let algorithm = algorithm.filter(|a| *a != Compression::None);
        let algorithm = algorithm.ok_or_else(|| internal("a compressed message without grpc-encoding"))?;
        return calls::inflate(algorithm, message.bytes, max, admission, served.peer.share()).await;
    }
    Ok(settle(message, admission))
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
