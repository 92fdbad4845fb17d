//! One request.

use std::pin::pin;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE},
};
use http_body_util::BodyExt;
use hyper::{Request, Response, body::Incoming};
use kubewake_config::model::{Compression, Encoding, HttpServer};
use kubewake_otlp::{Signal, json::Reason};

use super::Context;
use crate::{
    core::{Admission, Code, Refusal, RefusalKind, Shortfall, TurnedAway, heavy},
    extension::AuthRefusal,
    net::{
        decode::{self, DecodeError},
        reply::Reply,
    },
    receiver::{
        body::BodyBuffer,
        calls, cors,
        discard::discard_rest,
        intake::{AdmittedMemory, Peer, Taker},
        otlp::partial,
        port::Live,
        rpc_status,
        timers::{BODY_LIMIT, Pace, TooSlow},
    },
};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain");

/// A request that is not OTLP at all, and is answered in plain words.
enum Stray {
    NotFound,
    Method,
    MediaType,
    Redirect(String),
}

/// A refusal, and the HTTP status where it is not the one that follows from the code.
struct Refused {
    refusal: Refusal,
    status: Option<StatusCode>,
    /// Why, if the request was not even scanned.
    unread: Option<TurnedAway>,
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        // Such a request never fits, whether that shows when it is read or when it is worked on.
        let never_fits = refusal.kind == RefusalKind::BadRequest && refusal.code == Code::ResourceExhausted;
        Self { refusal, status: never_fits.then_some(StatusCode::PAYLOAD_TOO_LARGE), unread: None }
    }
}

impl Refused {
    fn unread(refusal: Refusal, reason: TurnedAway) -> Self {
        Self { refusal, status: None, unread: Some(reason) }
    }
}

pub(super) async fn handle(request: Request<Incoming>, context: &Context, live: &Live<HttpServer>) -> Response<Reply> {
    let settings = &live.settings;
    let cross = settings.cors.as_ref();
    if let Some(cors) = cross.filter(|_| cors::is_preflight(request.method(), request.headers())) {
        let mut response = plain(StatusCode::NO_CONTENT, None, "");
        response.headers_mut().extend(cors::preflight(cors, request.headers()));
        return response;
    }
    let extra = cross.map(|cors| cors::answer(cors, request.headers()));
    let mut response = respond(request, context, live).await;
    response.headers_mut().extend(extra.into_iter().flatten());
    for (name, value) in &settings.response_headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value.reveal())) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

async fn respond(request: Request<Incoming>, context: &Context, live: &Live<HttpServer>) -> Response<Reply> {
    let (signal, encoding) = match classify(&request, &live.settings, &context.taker) {
        Ok(known) => known,
        Err(stray) => {
            discard_rest(request.into_body(), live.settings.max_body_bytes);
            return answer_stray(stray);
        }
    };
    match accept(request, signal, encoding, context, live).await {
        Ok(shortfall) => taken(signal, encoding, shortfall.as_deref()),
        Err(refused) => refuse(&refused, encoding),
    }
}

fn classify(request: &Request<Incoming>, settings: &HttpServer, taker: &Taker) -> Result<(Signal, Encoding), Stray> {
    let path = request.uri().path();
    if path.contains("//") {
        return Err(Stray::Redirect(clean(path)));
    }
    let signal = match path {
        p if p == settings.traces_path => Signal::Traces,
        p if p == settings.metrics_path => Signal::Metrics,
        p if p == settings.logs_path => Signal::Logs,
        _ => return Err(Stray::NotFound),
    };
    if !taker.serves(signal) {
        return Err(Stray::NotFound);
    }
    if request.method() != Method::POST {
        return Err(Stray::Method);
    }
    let content = request.headers().get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    // Media types are the same in upper and lower case.
    match content.split(';').next().unwrap_or_default().trim() {
        proto if proto.eq_ignore_ascii_case("application/x-protobuf") => Ok((signal, Encoding::Proto)),
        json if json.eq_ignore_ascii_case("application/json") => Ok((signal, Encoding::Json)),
        _ => Err(Stray::MediaType),
    }
}

fn clean(path: &str) -> String {
    let parts: Vec<_> = path.split('/').filter(|part| !part.is_empty()).collect();
    format!("/{}", parts.join("/"))
}

async fn accept(
    mut request: Request<Incoming>,
    signal: Signal,
    encoding: Encoding,
    context: &Context,
    live: &Live<HttpServer>,
) -> Result<Option<Box<Shortfall>>, Refused> {
    let Context { peer, taker, .. } = context;
    let result = async {
        let subject = match &live.auth {
            None => None,
            Some(auth) => {
                auth.authenticate(request.headers(), peer.address).wait().await.map_err(|e| unauthenticated(&e))?
            }
        };
        let origin = peer.origin(request.headers(), subject, live.settings.include_metadata);
        let (body, admission) = read(&mut request, signal, &live.settings, context).await?;
        let (body, admission) = match encoding {
            Encoding::Proto => (body, admission),
            Encoding::Json => Box::pin(transcode(signal, body, admission, peer)).await?,
        };
        taker.take(signal, body.into(), admission, origin, peer).await.map_err(Refused::from)
    };
    let result = result.await;
    if let Err(refused) = &result {
        refused.unread.inspect(|reason| taker.turn_away(*reason));
        discard_rest(request.into_body(), live.settings.max_body_bytes);
    }
    result
}

/// The same request in protobuf.
async fn transcode(
    signal: Signal,
    body: Vec<u8>,
    mut admission: Admission,
    peer: &Peer,
) -> Result<(Vec<u8>, Admission), Refused> {
    if body.len() < heavy::HEAVY_BYTES {
        return from_json(signal, &body, admission);
    }
    admission.take_place(peer.share()).await;
    heavy::elsewhere(move || from_json(signal, &body, admission)).await
}

/// A body that claims to be larger than this is refused before it is asked for, if there is no memory for it.
const CHECKED_AHEAD: usize = 64 << 10;

async fn read(
    request: &mut Request<Incoming>,
    signal: Signal,
    settings: &HttpServer,
    context: &Context,
) -> Result<(Vec<u8>, Admission), Refused> {
    let algorithm = content_encoding(request.headers(), settings)?;
    let max = usize::try_from(settings.max_body_bytes).unwrap_or(usize::MAX);
    let length = request.headers().get(CONTENT_LENGTH).and_then(|v| v.to_str().ok()).and_then(|v| v.parse().ok());
    if length.is_some_and(|length: usize| length > max) {
        return Err(too_large(max));
    }
    if let Some(length) = length.filter(|length| *length > CHECKED_AHEAD) {
        context.taker.begin_arrival(signal, length, &context.peer).map_err(no_memory)?;
    }
    let pace = Pace::within(settings.read_timeout.unwrap_or(BODY_LIMIT));
    let collect = pin!(collect(request.body_mut(), signal, length, max, &pace, context));
    let (body, admission) = context.timers.limit(collect, &pace).await?;
    if algorithm == Compression::None {
        return Ok((body, admission));
    }
    let inflated = calls::decompress(algorithm, body, max, admission, context.peer.share().clone()).await;
    inflated.map_err(|error| undecodable(error, max))
}

fn content_encoding(headers: &HeaderMap, settings: &HttpServer) -> Result<Compression, Refused> {
    let name = headers.get(CONTENT_ENCODING).map_or(Some(""), |v| v.to_str().ok()).unwrap_or("?");
    let algorithm = decode::algorithm(name).filter(|a| settings.compression_algorithms.contains(a));
    let refusal = || Refusal::invalid(format!("unsupported Content-Encoding: {name}"));
    algorithm.ok_or_else(|| Refused::unread(refusal(), TurnedAway::Encoding))
}

/// Reads the body. One that is here as a whole is charged in one step, any other as it arrives.
async fn collect(
    body: &mut Incoming,
    signal: Signal,
    length: Option<usize>,
    max: usize,
    pace: &Pace,
    context: &Context,
) -> Result<(Vec<u8>, Admission), Refused> {
    let mut next = next_data(body).await?;
    let first = next.as_ref().map_or(0, Bytes::len);
    if next.is_none() || Some(first) == length {
        let admission = context.taker.admit(signal, first).map_err(no_memory)?;
        let mut out = Vec::with_capacity(first);
        out.extend_from_slice(next.as_deref().unwrap_or_default());
        return ended(body, max).await.map(|()| (out, admission));
    }
    let arrival = context.taker.begin_arrival(signal, length.unwrap_or_default(), &context.peer).map_err(no_memory)?;
    let mut buffer = BodyBuffer::charged(length, max, arrival);
    while let Some(data) = next {
        if buffer.len() + data.len() > max {
            return Err(too_large(max));
        }
        buffer.push(&data).map_err(no_memory)?;
        pace.advance(data.len());
        next = next_data(body).await?;
    }
    let (bytes, admission) = buffer.finish();
    Ok((bytes, admission.ok_or_else(|| no_memory(Refusal::memory()))?))
}

/// The next data of a body; `None` at its end.
async fn next_data(body: &mut Incoming) -> Result<Option<Bytes>, Refused> {
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            let refusal = Refusal::invalid(format!("the request was cut short: {error}"));
            Refused::unread(refusal, TurnedAway::Incomplete)
        })?;
        if let Some(data) = frame.into_data().ok().filter(|data| !data.is_empty()) {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

/// Reads the end of a body of which all data is here.
async fn ended(body: &mut Incoming, max: usize) -> Result<(), Refused> {
    match next_data(body).await? {
        None => Ok(()),
        // HTTP itself ends a body at its announced length.
        Some(_) => Err(too_large(max)),
    }
}

/// The same request in protobuf, which is smaller than the JSON that it came from, but for lists of short numbers.
fn from_json(signal: Signal, body: &[u8], mut admission: Admission) -> Result<(Vec<u8>, Admission), Refused> {
    // For strings with escapes, and for the protobuf of a small request.
    admission.grow(body.len()).map_err(no_memory)?;
    let mut memory = AdmittedMemory::to_hold(&mut admission);
    let decoded = kubewake_otlp::json::decode_within(signal, body, &mut memory);
    let (reserved, refusal) = memory.into_outcome();
    let decoded = decoded.map_err(|error| match error.reason() {
        Reason::NoMemory => no_memory(refusal.unwrap_or_else(Refusal::memory)),
        _ => malformed(error.to_string()),
    })?;
    admission.grow(decoded.capacity().saturating_sub(body.len() + reserved)).map_err(no_memory)?;
    Ok((decoded, admission))
}

fn no_memory(refusal: Refusal) -> Refused {
    match refusal.is_retryable() {
        true => Refused::unread(refusal, TurnedAway::Memory),
        false => larger(refusal),
    }
}

fn malformed(message: String) -> Refused {
    Refused::unread(Refusal::invalid(message), TurnedAway::Malformed)
}

fn too_large(max: usize) -> Refused {
    larger(Refusal::invalid(format!("the request body is larger than {max} bytes")))
}

fn larger(refusal: Refusal) -> Refused {
    Refused { refusal, status: Some(StatusCode::PAYLOAD_TOO_LARGE), unread: Some(TurnedAway::TooLarge) }
}

impl From<TooSlow> for Refused {
    fn from(error: TooSlow) -> Self {
        let refusal = Refusal::invalid(error.to_string());
        Self { refusal, status: Some(StatusCode::REQUEST_TIMEOUT), unread: Some(TurnedAway::Incomplete) }
    }
}

fn unauthenticated(error: &AuthRefusal) -> Refused {
    Refused::unread(calls::unauthenticated(error), TurnedAway::Unauthenticated)
}

fn undecodable(error: DecodeError, max: usize) -> Refused {
    match error {
        DecodeError::TooLarge(_) => too_large(max),
        DecodeError::Refused(refusal) => no_memory(refusal),
        corrupt @ DecodeError::Corrupt { .. } => malformed(corrupt.to_string()),
    }
}

fn taken(signal: Signal, encoding: Encoding, shortfall: Option<&Shortfall>) -> Response<Reply> {
    let (content, body) = match encoding {
        Encoding::Proto => (PROTOBUF, partial::protobuf(shortfall)),
        Encoding::Json => (JSON, partial::json(signal, shortfall)),
    };
    let mut response = Response::new(Reply::full(body));
    response.headers_mut().insert(CONTENT_TYPE, content);
    response
}

fn refuse(refused: &Refused, encoding: Encoding) -> Response<Reply> {
    let refusal = &refused.refusal;
    let (content, body) = match encoding {
        Encoding::Proto => (PROTOBUF, rpc_status::protobuf(refusal)),
        Encoding::Json => (JSON, rpc_status::json(refusal)),
    };
    let mut response = Response::new(Reply::full(body));
    *response.status_mut() = refused.status.unwrap_or_else(|| refusal.code.http_status());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, content);
    if let Some(after) = refusal.retry_after {
        // Whole seconds; zero would mean at once.
        headers.insert(RETRY_AFTER, HeaderValue::from(after.as_secs().max(1)));
    }
    if refusal.code == Code::Unauthenticated && refusal.kind == RefusalKind::BadRequest {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer, Basic"));
    }
    response
}

fn answer_stray(stray: Stray) -> Response<Reply> {
    match stray {
        Stray::NotFound => {
            let text = HeaderValue::from_static("text/plain; charset=utf-8");
            plain(StatusCode::NOT_FOUND, Some(text), "404 page not found\n")
        }
        Stray::Method => plain(StatusCode::METHOD_NOT_ALLOWED, Some(TEXT), "405 method not allowed, supported: [POST]"),
        Stray::MediaType => {
            let words = "415 unsupported media type, supported: [application/json, application/x-protobuf]";
            plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, Some(TEXT), words)
        }
        Stray::Redirect(to) => {
            let mut response = plain(StatusCode::TEMPORARY_REDIRECT, None, "");
            if let Ok(to) = HeaderValue::try_from(to) {
                response.headers_mut().insert(LOCATION, to);
            }
            response
        }
    }
}

fn plain(status: StatusCode, content: Option<HeaderValue>, words: &'static str) -> Response<Reply> {
    let mut response = Response::new(Reply::full(Bytes::from_static(words.as_bytes())));
    *response.status_mut() = status;
    if let Some(content) = content {
        response.headers_mut().insert(CONTENT_TYPE, content);
    }
    response
}
