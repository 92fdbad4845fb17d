//! The gRPC methods: `Export`, a stream of requests, and `ExportOne`.

use std::{
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use hyper::{Request, Response, body::Incoming};
use kubewake_config::model::CompressionType;
use kubewake_otlp::{
    Signal,
    opencensus::{OpenCensusStream, TranslateError},
};
use tokio::time::Instant;

use super::{connection::OpenCensusConnection, messages::MessageReader};
use crate::{
    core::{ArrivingReservation, Code, EarlyRefusal, Origin, Refusal, RefusalKind, RequestReservation, heavy_work},
    net::reply_body::ReplyBody,
    receiver::{
        body_buffer::BodyBuffer,
        body_timeout::{BODY_TIMEOUT, BodyProgress, STALL_TIMEOUT, SlowBodyError, read_in_time},
        connection_activity::{CallGuard, CloseReason},
        discard::discard_rest,
        grpc_calls::{self, bad_request, internal_error, ok_response, refusal_response},
        submitter::{RequestPayload, RoomBackoff},
    },
};

/// An `ExportTraceServiceResponse`, which has no fields.
const EMPTY_RESPONSE: Bytes = Bytes::from_static(&[0; 5]);

const TRACE_SERVICE: &str = "opencensus.proto.agent.trace.v1.TraceService";

/// A message that has begun to arrive waits this long for memory before its stream is refused.
const GROWTH_TIMEOUT: Duration = Duration::from_secs(10);

/// Resolves when a call has to end although its client would continue.
type CloseFuture = Pin<Box<dyn Future<Output = CloseReason> + Send>>;

pub(super) async fn handle(
    request: Request<Incoming>,
    served: &OpenCensusConnection,
    busy: CallGuard,
) -> Response<ReplyBody> {
    if request.method() != Method::POST {
        let mut response = Response::new(ReplyBody::empty());
        *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        return response;
    }
    let began = Instant::now();
    let (head, mut body) = request.into_parts();
    let (result, is_export) = match export_method(head.uri.path()) {
        Ok(method) => (handle_call(&head.headers, &mut body, method, served, busy).await, true),
        Err(refusal) => (Err(refusal), false),
    };
    if is_export {
        let code = result.as_ref().err().map_or(Code::Ok, |refusal| refusal.code);
        served.submitter.record_call(Signal::Traces, code, began.elapsed());
    }
    match result {
        Ok(answer) => ok_response(answer),
        Err(refusal) => {
            discard_rest(body, served.active.load().settings.server.max_message_bytes);
            refusal_response(&refusal)
        }
    }
}

/// The methods that take spans.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ExportMethod {
    Streaming,
    Unary,
}

fn export_method(path: &str) -> Result<ExportMethod, Refusal> {
    let (service, method) = path.trim_start_matches('/').split_once('/').unwrap_or((path, ""));
    match (service, method) {
        (TRACE_SERVICE, "Export") => Ok(ExportMethod::Streaming),
        (TRACE_SERVICE, "ExportOne") => Ok(ExportMethod::Unary),
        (TRACE_SERVICE, method) => {
            Err(bad_request(Code::Unimplemented, format!("{method} is not supported, only Export is")))
        }
        ("opencensus.proto.agent.metrics.v1.MetricsService", _) => {
            Err(bad_request(Code::Unimplemented, "OpenCensus metrics are not supported, only traces are".to_owned()))
        }
        _ => Err(bad_request(Code::Unimplemented, format!("unknown service {service}"))),
    }
}

/// Reads all messages of a call. The response to a stream is sent at its end.
async fn handle_call(
    headers: &HeaderMap,
    body: &mut Incoming,
    method: ExportMethod,
    served: &OpenCensusConnection,
    busy: CallGuard,
) -> Result<Bytes, Refusal> {
    let live = served.active.load_full();
    let subject = match &live.auth {
        None => None,
        Some(auth) => auth.authenticate(headers, served.peer.address).wait().await.map_err(|error| {
            served.submitter.count_early_refusal(EarlyRefusal::Unauthenticated);
            grpc_calls::auth_refusal(&error)
        })?,
    };
    if !served.submitter.serves(Signal::Traces) {
        return Err(bad_request(Code::Unimplemented, format!("no pipeline accepts data from {TRACE_SERVICE}")));
    }
    let origin = served.peer.origin(headers, subject, live.settings.server.include_metadata);
    drop(live);
    let mut stream = ExportStream {
        served,
        algorithm: compression(headers)?,
        origin,
        sender: OpenCensusStream::default(),
        messages: MessageReader::new(body),
        waits_for_room: method == ExportMethod::Streaming,
        end: Box::pin(busy.wait_for_close()),
    };
    match method {
        ExportMethod::Streaming => stream.run_stream().await.map(|()| Bytes::new()),
        ExportMethod::Unary => stream.run_unary().await.map(|()| EMPTY_RESPONSE),
    }
}

fn compression(headers: &HeaderMap) -> Result<CompressionType, Refusal> {
    grpc_calls::grpc_encoding(headers).map(|algorithm| algorithm.unwrap_or(CompressionType::None))
}

struct ExportStream<'s> {
    served: &'s OpenCensusConnection,
    algorithm: CompressionType,
    origin: Arc<Origin>,
    sender: OpenCensusStream,
    messages: MessageReader<'s>,
    /// Whether the call waits for room instead of being refused.
    waits_for_room: bool,
    end: CloseFuture,
}

impl ExportStream<'_> {
    async fn run_stream(&mut self) -> Result<(), Refusal> {
        loop {
            let begun = tokio::select! {
                biased;
                begun = self.messages.wait_for_message() => begun?,
                _ = &mut self.end => return Err(closing_refusal()),
            };
            if !begun {
                return Ok(());
            }
            self.process_message().await?;
        }
    }

    async fn run_unary(&mut self) -> Result<(), Refusal> {
        self.process_message().await?;
        if self.messages.wait_for_message().await? {
            Err(internal_error("more than one message in a unary call"))
        } else {
            Ok(())
        }
    }

    /// Reads, translates and submits one message.
    async fn process_message(&mut self) -> Result<(), Refusal> {
        let served = self.served;
        let turned_away =
            |refusal: &Refusal| served.submitter.count_early_refusal(grpc_calls::early_refusal_reason(refusal));
        let (body, admission) = read_message(self).await.inspect_err(turned_away)?;
        let _not_read = PausedStreamGuard::begin(&served.paused_streams);
        let (payload, admission) = self.translate(body, admission).await.inspect_err(turned_away)?;
        let taker = &served.submitter;
        let origin = self.origin.clone();
        if self.waits_for_room {
            let end = &mut self.end;
            taker.submit_waiting(Signal::Traces, payload, admission, origin, &served.peer, end).await
        } else {
            taker.submit(Signal::Traces, payload, admission, origin, &served.peer).await.map(drop)
        }
    }

    /// Reads a message that has arrived in part, into memory that is reserved as it arrives.
    async fn read_chunks(&mut self, length: usize) -> Result<(Vec<u8>, RequestReservation), Refusal> {
        let arrival = self.begin_arrival(length).await?;
        let mut buffer = BodyBuffer::charged(Some(length), length, arrival);
        let mut left = BODY_TIMEOUT;
        while buffer.len() < length {
            let began = Instant::now();
            let piece = self.next_chunk(length - buffer.len(), left).await?;
            left = left.saturating_sub(began.elapsed());
            self.append_chunk(&mut buffer, &piece).await?;
        }
        let (bytes, admission) = buffer.finish();
        Ok((bytes, admission.ok_or_else(Refusal::out_of_memory)?))
    }

    async fn begin_arrival(&mut self, length: usize) -> Result<ArrivingReservation, Refusal> {
        let mut pause = RoomBackoff::default();
        let _not_read = PausedStreamGuard::begin(&self.served.paused_streams);
        loop {
            match self.served.submitter.begin_arrival(Signal::Traces, length, &self.served.peer) {
                Err(refusal) if self.waits_for_room && refusal.is_lack_of_room() && pause.wait(&mut self.end).await => {
                }
                result => return result,
            }
        }
    }

    /// Reads the next piece of a message, within the time `left`. Time in which other streams of the connection
    /// are paused does not count as a stall of this one.
    async fn next_chunk(&mut self, missing: usize, left: Duration) -> Result<Bytes, Refusal> {
        let deadline = Instant::now() + left;
        loop {
            let end = deadline.min(Instant::now() + STALL_TIMEOUT);
            let is_held_up = || self.served.paused_streams.load(Ordering::Relaxed) > 0;
            match tokio::time::timeout_at(end, self.messages.next_chunk(missing)).await {
                Ok(piece) => return piece,
                Err(_) if Instant::now() >= deadline => return Err(SlowBodyError::Late(BODY_TIMEOUT).into()),
                Err(_) if is_held_up() => {}
                Err(_) => return Err(SlowBodyError::Stalled.into()),
            }
        }
    }

    /// Appends to a message. [`GROWTH_TIMEOUT`] ends a deadlock of messages that wait for each other.
    async fn append_chunk(&mut self, buffer: &mut BodyBuffer, piece: &[u8]) -> Result<(), Refusal> {
        let mut pause = RoomBackoff::default();
        let give_up = Instant::now() + GROWTH_TIMEOUT;
        loop {
            let Err(refusal) = buffer.push(piece) else { return Ok(()) };
            let may_wait = self.waits_for_room && refusal.is_lack_of_room() && Instant::now() < give_up;
            let _not_read = PausedStreamGuard::begin(&self.served.paused_streams);
            if !may_wait || !pause.wait(&mut self.end).await {
                return Err(refusal);
            }
        }
    }

    async fn reserve(&mut self, bytes: usize) -> Result<RequestReservation, Refusal> {
        let _not_read = PausedStreamGuard::begin(&self.served.paused_streams);
        if self.waits_for_room {
            self.served.submitter.reserve_waiting(Signal::Traces, bytes, &mut self.end).await
        } else {
            self.served.submitter.reserve(Signal::Traces, bytes)
        }
    }

    /// Translates a request to OTLP. The memory of the result grows as needed; that of the input is given back
    /// at the end. A large request is translated by another thread, so that connections do not wait for it.
    async fn translate(
        &mut self,
        body: RequestPayload,
        mut admission: RequestReservation,
    ) -> Result<(RequestPayload, RequestReservation), Refusal> {
        let mut pause = RoomBackoff::default();
        loop {
            let is_heavy = body.bytes.len() >= heavy_work::HEAVY_WORK_MIN_BYTES;
            if is_heavy {
                admission.acquire_heavy_work_slot(self.served.peer.share()).await;
            }
            let mut sender = std::mem::take(&mut self.sender);
            let bytes = body.bytes.clone();
            let work = move || {
                let translated = sender.translate(&bytes, |more| admission.grow(more));
                (sender, translated, admission)
            };
            let translated;
            // Boxed, as most messages do not need the space of its state.
            (self.sender, translated, admission) =
                if is_heavy { Box::pin(heavy_work::run_on_pool(work)).await } else { work() };
            match translated {
                Ok(translated) => return Ok((translated.into(), admission)),
                Err(TranslateError::Memory(refusal)) => {
                    // Give the whole reservation back, so that two waiting messages cannot deadlock.
                    drop(admission);
                    if !refusal.is_lack_of_room() || !self.waits_for_room || !pause.wait(&mut self.end).await {
                        return Err(refusal);
                    }
                    admission = self.reserve(body.held_bytes).await?;
                }
                Err(error) => return Err(Refusal::invalid(error.to_string())),
            }
        }
    }
}

/// Reads a message into memory that was reserved for it.
async fn read_message(stream: &mut ExportStream<'_>) -> Result<(RequestPayload, RequestReservation), Refusal> {
    let max = stream.served.active.load().settings.server.max_message_bytes;
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    let prefix = read_in_time(pin!(stream.messages.read_prefix()), &BodyProgress::default()).await?;
    if prefix.length > max {
        let message = format!("grpc: received message larger than max ({} vs. {max})", prefix.length);
        return Err(bad_request(Code::ResourceExhausted, message));
    }
    let (content, admission) = if stream.messages.is_buffered(prefix.length) {
        let admission = stream.reserve(prefix.length).await?;
        (stream.messages.take_buffered(prefix.length).to_vec(), admission)
    } else {
        stream.read_chunks(prefix.length).await?
    };
    match (prefix.compressed, stream.algorithm) {
        (false, _) => Ok((content.into(), admission)),
        (true, CompressionType::None) => Err(internal_error("a compressed message without grpc-encoding")),
        (true, algorithm) => {
            grpc_calls::inflate(algorithm, content.into(), max, admission, stream.served.peer.share()).await
        }
    }
}

/// Counts its stream as paused until it is dropped.
struct PausedStreamGuard<'s>(&'s AtomicUsize);

impl<'s> PausedStreamGuard<'s> {
    fn begin(count: &'s AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for PausedStreamGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn closing_refusal() -> Refusal {
    let kind = RefusalKind::NoRoom;
    Refusal { kind, code: Code::Unavailable, message: "the connection is closing".into(), retry_after: None }
}
