//! One request.

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE},
};
use http_body_util::BodyExt;
use hyper::{Request, Response, body::Incoming};
use kubewake_config::model::{Compression, Encoding, HttpServer};
use kubewake_otlp::Signal;

use crate::{
    core::{Admission, Code, Refusal, RefusalKind, Shortfall, TurnedAway},
    net::{
        decode::{self, DecodeError},
        reply::Reply,
    },
    receiver::{
        cors,
        intake::{Peer, Taker},
        otlp::partial,
        port::Live,
        rpc_status,
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
        Self { refusal, status: None, unread: None }
    }
}

impl Refused {
    fn unread(refusal: Refusal, reason: TurnedAway) -> Self {
        Self { refusal, status: None, unread: Some(reason) }
    }
}

pub(super) async fn handle(
    request: Request<Incoming>,
    peer: &Peer,
    live: &Live<HttpServer>,
    taker: &Taker,
) -> Response<Reply> {
    let settings = &live.settings;
    let cross = settings.cors.as_ref();
    if let Some(cors) = cross.filter(|_| cors::is_preflight(request.method(), request.headers())) {
        let mut response = plain(StatusCode::NO_CONTENT, None, "");
        response.headers_mut().extend(cors::preflight(cors, request.headers()));
        return response;
    }
    let extra = cross.map(|cors| cors::answer(cors, request.headers()));
    let mut response = respond(request, peer, live, taker).await;
    response.headers_mut().extend(extra.into_iter().flatten());
    for (name, value) in &settings.response_headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value.reveal())) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

async fn respond(request: Request<Incoming>, peer: &Peer, live: &Live<HttpServer>, taker: &Taker) -> Response<Reply> {
    let (signal, encoding) = match classify(&request, &live.settings, taker) {
        Ok(known) => known,
        Err(stray) => return answer_stray(stray),
    };
    match accept(request, signal, encoding, peer, live, taker).await {
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
    match content.split(';').next().unwrap_or_default().trim() {
        "application/x-protobuf" => Ok((signal, Encoding::Proto)),
        "application/json" => Ok((signal, Encoding::Json)),
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
    peer: &Peer,
    live: &Live<HttpServer>,
    taker: &Taker,
) -> Result<Option<Box<Shortfall>>, Refused> {
    let result = async {
        let subject = match &live.auth {
            None => None,
            Some(auth) => {
                auth.authenticate(request.headers()).wait().await.map_err(|e| unauthenticated(e.to_string()))?
            }
        };
        let origin = peer.origin(request.headers(), subject, live.settings.include_metadata);
        let (body, admission) = read(&mut request, signal, &live.settings, taker).await?;
        let (body, admission) = match encoding {
            Encoding::Proto => (body, admission),
            Encoding::Json => from_json(signal, &body, admission)?,
        };
        taker.take(signal, body.into(), admission, origin).await.map_err(Refused::from)
    };
    let result = result.await;
    if let Err(refused) = &result {
        refused.unread.inspect(|reason| taker.turn_away(*reason));
        // Most clients read the answer only after they have written all of the request.
        discard(request.body_mut(), &live.settings).await;
    }
    result
}

/// Reads and throws away what is left of a body, within the limits of one that is kept.
async fn discard(body: &mut Incoming, settings: &HttpServer) {
    let mut left = settings.max_body_bytes;
    let drain = async {
        while let Some(Ok(frame)) = body.frame().await {
            let length = frame.data_ref().map_or(0, Bytes::len) as u64;
            if length > left {
                return;
            }
            left -= length;
        }
    };
    let _ = tokio::time::timeout(DISCARD_LIMIT, drain).await;
}

/// How long a refused sender may take to finish its request.
const DISCARD_LIMIT: std::time::Duration = std::time::Duration::from_secs(5);
/// A body must arrive within this time where the settings name none: it holds memory while it does.
const BODY_LIMIT: std::time::Duration = std::time::Duration::from_secs(60);

async fn read(
    request: &mut Request<Incoming>,
    signal: Signal,
    settings: &HttpServer,
    taker: &Taker,
) -> Result<(Vec<u8>, Admission), Refused> {
    let algorithm = content_encoding(request.headers(), settings)?;
    let max = usize::try_from(settings.max_body_bytes).unwrap_or(usize::MAX);
    let length = request.headers().get(CONTENT_LENGTH).and_then(|v| v.to_str().ok()).and_then(|v| v.parse().ok());
    if length.is_some_and(|length: usize| length > max) {
        return Err(too_large(max));
    }
    let mut admission = taker.admit(signal, length.unwrap_or_default()).map_err(no_memory)?;
    let limit = settings.read_timeout.unwrap_or(BODY_LIMIT);
    let collect = collect(request.body_mut(), length.unwrap_or_default(), max, &mut admission);
    let body = tokio::time::timeout(limit, collect).await.map_err(|_| too_slow())??;
    if algorithm == Compression::None {
        return Ok((body, admission));
    }
    let inflated = decode::decompress(algorithm, &body, max, &mut |more| admission.grow(more));
    Ok((inflated.map_err(|error| undecodable(error, max))?, admission))
}

fn content_encoding(headers: &HeaderMap, settings: &HttpServer) -> Result<Compression, Refused> {
    let name = headers.get(CONTENT_ENCODING).map_or(Some(""), |v| v.to_str().ok()).unwrap_or("?");
    let algorithm = decode::algorithm(name).filter(|a| settings.compression_algorithms.contains(a));
    let refusal = || Refusal::invalid(format!("unsupported Content-Encoding: {name}"));
    algorithm.ok_or_else(|| Refused::unread(refusal(), TurnedAway::Encoding))
}

/// Reads the body. `length` bytes are reserved already; a body without a length is reserved as it comes.
async fn collect(
    body: &mut Incoming,
    length: usize,
    max: usize,
    admission: &mut Admission,
) -> Result<Vec<u8>, Refused> {
    let mut out = Vec::with_capacity(length);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            let refusal = Refusal::invalid(format!("the request was cut short: {error}"));
            Refused::unread(refusal, TurnedAway::Incomplete)
        })?;
        let Some(data) = frame.data_ref() else { continue };
        if out.len() + data.len() > max {
            return Err(too_large(max));
        }
        let spare = out.capacity() - out.len();
        if data.len() > spare {
            let more = data.len().max(out.capacity()).min(max - out.len());
            admission.grow(more).map_err(no_memory)?;
            out.reserve_exact(more);
        }
        out.extend_from_slice(data);
    }
    Ok(out)
}

fn from_json(signal: Signal, body: &[u8], mut admission: Admission) -> Result<(Vec<u8>, Admission), Refused> {
    // Protobuf is smaller than the JSON that it came from, but for lists of short numbers.
    admission.grow(body.len()).map_err(no_memory)?;
    let decoded = kubewake_otlp::json::decode(signal, body).map_err(|error| malformed(error.to_string()))?;
    admission.grow(decoded.capacity().saturating_sub(body.len())).map_err(no_memory)?;
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

fn too_slow() -> Refused {
    let refusal = Refusal::invalid("the request body did not arrive in time");
    Refused { refusal, status: Some(StatusCode::REQUEST_TIMEOUT), unread: Some(TurnedAway::Incomplete) }
}

fn unauthenticated(message: String) -> Refused {
    let kind = RefusalKind::BadRequest;
    let refusal = Refusal { kind, code: Code::Unauthenticated, message: message.into(), retry_after: None };
    Refused::unread(refusal, TurnedAway::Unauthenticated)
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
