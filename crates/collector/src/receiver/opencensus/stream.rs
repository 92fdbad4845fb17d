//! gRPC: a stream of requests, or one.

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
use kubewake_config::model::Compression;
use kubewake_otlp::{
    Signal,
    opencensus::{Sender, TranslateError},
};
use tokio::time::Instant;

use super::{connection::Served, messages::Messages};
use crate::{
    core::{Admission, Arrival, Code, Origin, Refusal, RefusalKind, TurnedAway, heavy},
    net::reply::Reply,
    receiver::{
        activity::{Busy, End},
        body::BodyBuffer,
        calls::{self, internal, ok, refuse, refused},
        discard::discard_rest,
        intake::{Pause, Payload},
        timers::{BODY_LIMIT, Pace, STALL_LIMIT, TooSlow, in_time},
    },
};

/// An `ExportTraceServiceResponse`, which has no fields.
const TAKEN: Bytes = Bytes::from_static(&[0; 5]);

const SERVICE: &str = "opencensus.proto.agent.trace.v1.TraceService";

/// How long a message that has begun to arrive waits for memory before its stream is refused.
const GROWTH_LIMIT: Duration = Duration::from_secs(10);

/// When a call must end although its client would go on.
type UntilEnd = Pin<Box<dyn Future<Output = End> + Send>>;

pub(super) async fn handle(request: Request<Incoming>, served: &Served, busy: Busy) -> Response<Reply> {
    if request.method() != Method::POST {
        let mut response = Response::new(Reply::empty());
        *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        return response;
    }
    let began = Instant::now();
    let (head, mut body) = request.into_parts();
    let (result, is_export) = match method(head.uri.path()) {
        Ok(method) => (call(&head.headers, &mut body, method, served, busy).await, true),
        Err(refusal) => (Err(refusal), false),
    };
    if is_export {
        let code = result.as_ref().err().map_or(Code::Ok, |refusal| refusal.code);
        served.taker.called(Signal::Traces, code, began.elapsed());
    }
    match result {
        Ok(answer) => ok(answer),
        Err(refusal) => {
            discard_rest(body, served.live.load().settings.server.max_message_bytes);
            refused(&refusal)
        }
    }
}

/// The methods that take spans.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Export {
    Stream,
    One,
}

fn method(path: &str) -> Result<Export, Refusal> {
    let (service, method) = path.trim_start_matches('/').split_once('/').unwrap_or((path, ""));
    match (service, method) {
        (SERVICE, "Export") => Ok(Export::Stream),
        (SERVICE, "ExportOne") => Ok(Export::One),
        (SERVICE, method) => Err(refuse(Code::Unimplemented, format!("{method} is not supported, only Export is"))),
        ("opencensus.proto.agent.metrics.v1.MetricsService", _) => {
            Err(refuse(Code::Unimplemented, "metrics of OpenCensus are not supported, only its traces are".to_owned()))
        }
        _ => Err(refuse(Code::Unimplemented, format!("unknown service {service}"))),
    }
}

/// Reads all messages of a call. The answer to a stream is that it ended.
async fn call(
    headers: &HeaderMap,
    body: &mut Incoming,
    method: Export,
    served: &Served,
    busy: Busy,
) -> Result<Bytes, Refusal> {
    let live = served.live.load_full();
    let subject = match &live.auth {
        None => None,
        Some(auth) => auth.authenticate(headers, served.peer.address).wait().await.map_err(|error| {
            served.taker.turn_away(TurnedAway::Unauthenticated);
            calls::unauthenticated(&error)
        })?,
    };
    if !served.taker.serves(Signal::Traces) {
        return Err(refuse(Code::Unimplemented, format!("no pipeline takes what {SERVICE} sends")));
    }
    let origin = served.peer.origin(headers, subject, live.settings.server.include_metadata);
    drop(live);
    let mut stream = Stream {
        served,
        algorithm: compression(headers)?,
        origin,
        sender: Sender::default(),
        messages: Messages::new(body),
        patient: method == Export::Stream,
        end: Box::pin(busy.until_the_end()),
    };
    match method {
        Export::Stream => stream.run().await.map(|()| Bytes::new()),
        Export::One => stream.one().await.map(|()| TAKEN),
    }
}

fn compression(headers: &HeaderMap) -> Result<Compression, Refusal> {
    calls::encoding(headers).map(|algorithm| algorithm.unwrap_or(Compression::None))
}

struct Stream<'s> {
    served: &'s Served,
    algorithm: Compression,
    origin: Arc<Origin>,
    sender: Sender,
    messages: Messages<'s>,
    /// Whether it waits for room rather than being refused.
    patient: bool,
    end: UntilEnd,
}

impl Stream<'_> {
    async fn run(&mut self) -> Result<(), Refusal> {
        loop {
            let begun = tokio::select! {
                biased;
                begun = self.messages.begin() => begun?,
                _ = &mut self.end => return Err(closing()),
            };
            if !begun {
                return Ok(());
            }
            self.message().await?;
        }
    }

    async fn one(&mut self) -> Result<(), Refusal> {
        self.message().await?;
        match self.messages.begin().await? {
            true => Err(internal("more than one message in a unary call")),
            false => Ok(()),
        }
    }

    /// Reads, translates and hands in one message.
    async fn message(&mut self) -> Result<(), Refusal> {
        let served = self.served;
        let turned_away = |refusal: &Refusal| served.taker.turn_away(calls::reason(refusal));
        let (body, admission) = read(self).await.inspect_err(turned_away)?;
        let _not_read = Waiting::begin(&served.waiting);
        let (payload, admission) = self.translate(body, admission).await.inspect_err(turned_away)?;
        let (taker, origin) = (&served.taker, self.origin.clone());
        match self.patient {
            true => {
                let end = &mut self.end;
                taker.take_in_the_end(Signal::Traces, payload, admission, origin, &served.peer, end).await
            }
            // It has no words for a part.
            false => taker.take(Signal::Traces, payload, admission, origin, &served.peer).await.map(drop),
        }
    }

    /// Reads a message of which only a part is here into memory that is reserved as it arrives.
    async fn gather(&mut self, length: usize) -> Result<(Vec<u8>, Admission), Refusal> {
        let arrival = self.begin_arrival(length).await?;
        let mut buffer = BodyBuffer::charged(Some(length), length, arrival);
        let mut left = BODY_LIMIT;
        while buffer.len() < length {
            let began = Instant::now();
            let piece = self.piece(length - buffer.len(), left).await?;
            left = left.saturating_sub(began.elapsed());
            self.push(&mut buffer, &piece).await?;
        }
        let (bytes, admission) = buffer.finish();
        Ok((bytes, admission.ok_or_else(Refusal::memory)?))
    }

    async fn begin_arrival(&mut self, length: usize) -> Result<Arrival, Refusal> {
        let mut pause = Pause::default();
        let _not_read = Waiting::begin(&self.served.waiting);
        loop {
            match self.served.taker.begin_arrival(Signal::Traces, length, &self.served.peer) {
                Err(refusal) if self.patient && refusal.is_want_of_room() && pause.wait(&mut self.end).await => {}
                result => return result,
            }
        }
    }

    /// The next piece of a message, which has so much time left. A stream that other streams of its connection hold up has not
    /// stalled by itself.
    async fn piece(&mut self, missing: usize, left: Duration) -> Result<Bytes, Refusal> {
        let deadline = Instant::now() + left;
        loop {
            let end = deadline.min(Instant::now() + STALL_LIMIT);
            let is_held_up = || self.served.waiting.load(Ordering::Relaxed) > 0;
            match tokio::time::timeout_at(end, self.messages.piece(missing)).await {
                Ok(piece) => return piece,
                Err(_) if Instant::now() >= deadline => return Err(TooSlow::Late(BODY_LIMIT).into()),
                Err(_) if is_held_up() => {}
                Err(_) => return Err(TooSlow::Stalled.into()),
            }
        }
    }

    /// Appends to a message. Two that wait for what the other one holds must not do so for ever.
    async fn push(&mut self, buffer: &mut BodyBuffer, piece: &[u8]) -> Result<(), Refusal> {
        let (mut pause, give_up) = (Pause::default(), Instant::now() + GROWTH_LIMIT);
        loop {
            let Err(refusal) = buffer.push(piece) else { return Ok(()) };
            let may_wait = self.patient && refusal.is_want_of_room() && Instant::now() < give_up;
            let _not_read = Waiting::begin(&self.served.waiting);
            if !may_wait || !pause.wait(&mut self.end).await {
                return Err(refusal);
            }
        }
    }

    async fn admit(&mut self, bytes: usize) -> Result<Admission, Refusal> {
        let _not_read = Waiting::begin(&self.served.waiting);
        match self.patient {
            true => self.served.taker.admit_in_the_end(Signal::Traces, bytes, &mut self.end).await,
            false => self.served.taker.admit(Signal::Traces, bytes),
        }
    }

    /// The same request in OTLP. Its memory grows as it needs it, and the old one's is given back in the end. A large one is translated by
    /// another thread, so that other connections do not wait for it.
    async fn translate(&mut self, body: Payload, mut admission: Admission) -> Result<(Payload, Admission), Refusal> {
        let mut pause = Pause::default();
        loop {
            let is_heavy = body.bytes.len() >= heavy::HEAVY_BYTES;
            if is_heavy {
                admission.take_place(self.served.peer.share()).await;
            }
            let (mut sender, bytes) = (std::mem::take(&mut self.sender), body.bytes.clone());
            let work = move || {
                let translated = sender.translate(&bytes, |more| admission.grow(more));
                (sender, translated, admission)
            };
            let translated;
            // In a box, as most messages have no use for the room that its state takes.
            (self.sender, translated, admission) = match is_heavy {
                true => Box::pin(heavy::elsewhere(work)).await,
                false => work(),
            };
            match translated {
                Ok(translated) => return Ok((translated.into(), admission)),
                Err(TranslateError::Memory(refusal)) => {
                    // All that was reserved goes back, so that two that wait do not wait for each other.
                    drop(admission);
                    if !refusal.is_want_of_room() || !self.patient || !pause.wait(&mut self.end).await {
                        return Err(refusal);
                    }
                    admission = self.admit(body.held).await?;
                }
                Err(error) => return Err(Refusal::invalid(error.to_string())),
            }
        }
    }
}

/// Reads a message into memory that was reserved for it.
async fn read(stream: &mut Stream<'_>) -> Result<(Payload, Admission), Refusal> {
    let max = stream.served.live.load().settings.server.max_message_bytes;
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    let prefix = in_time(pin!(stream.messages.prefix()), &Pace::default()).await?;
    if prefix.length > max {
        let message = format!("grpc: received message larger than max ({} vs. {max})", prefix.length);
        return Err(refuse(Code::ResourceExhausted, message));
    }
    let (content, admission) = match stream.messages.is_whole(prefix.length) {
        true => {
            let admission = stream.admit(prefix.length).await?;
            (stream.messages.whole(prefix.length).to_vec(), admission)
        }
        false => stream.gather(prefix.length).await?,
    };
    match (prefix.compressed, stream.algorithm) {
        (false, _) => Ok((content.into(), admission)),
        (true, Compression::None) => Err(internal("a compressed message without grpc-encoding")),
        (true, algorithm) => {
            calls::inflate(algorithm, content.into(), max, admission, stream.served.peer.share()).await
        }
    }
}

/// A stream that does not read, as long as this is there.
struct Waiting<'s>(&'s AtomicUsize);

impl<'s> Waiting<'s> {
    fn begin(count: &'s AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn closing() -> Refusal {
    let kind = RefusalKind::NoRoom;
    Refusal { kind, code: Code::Unavailable, message: "the connection is closing".into(), retry_after: None }
}
