//! Handles one OTLP/HTTP request.

use std::pin::pin;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE},
};
use http_body_util::BodyExt;
use hyper::{Request, Response, body::Incoming};
use kubewake_config::model::{BodyEncoding, CompressionType, HttpServer};
use kubewake_otlp::{Signal, json::JsonErrorKind};

use super::HttpConnection;
use crate::{
    core::{Code, EarlyRefusal, PartialSuccess, Refusal, RefusalKind, RequestReservation, heavy_work},
    extension::AuthRefusal,
    net::{
        decompress::{self, DecompressError},
        reply_body::ReplyBody,
    },
    receiver::{
        body_buffer::BodyBuffer,
        body_timeout::{BODY_TIMEOUT, BodyProgress, SlowBodyError},
        cors,
        discard::discard_rest,
        grpc_calls,
        otlp::partial_success,
        protocol_server::ActiveSettings,
        rpc_status,
        submitter::{RequestSubmitter, ReservedMemory, SenderPeer},
    },
};

const JSON_CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/json");
const PROTOBUF_CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/x-protobuf");
const TEXT_CONTENT_TYPE: HeaderValue = HeaderValue::from_static("text/plain");

/// A request that is not OTLP at all, and gets a plain-text response.
enum UnexpectedRequest {
    NotFound,
    Method,
    MediaType,
    Redirect(String),
}

/// A refusal, with the HTTP status where it does not follow from the code.
struct HttpRefusal {
    refusal: Refusal,
    status: Option<StatusCode>,
    /// The metric label, if the request was refused before it was scanned.
    early_refusal: Option<EarlyRefusal>,
}

impl From<Refusal> for HttpRefusal {
    fn from(refusal: Refusal) -> Self {
        // A request that never fits, whether that shows while it is read or while it is processed.
        let never_fits = refusal.kind == RefusalKind::BadRequest && refusal.code == Code::ResourceExhausted;
        Self { refusal, status: never_fits.then_some(StatusCode::PAYLOAD_TOO_LARGE), early_refusal: None }
    }
}

impl HttpRefusal {
    fn early(refusal: Refusal, reason: EarlyRefusal) -> Self {
        Self { refusal, status: None, early_refusal: Some(reason) }
    }
}

pub(super) async fn handle(
    request: Request<Incoming>,
    context: &HttpConnection,
    live: &ActiveSettings<HttpServer>,
) -> Response<ReplyBody> {
    let settings = &live.settings;
    let cross = settings.cors.as_ref();
    if let Some(cors) = cross.filter(|_| cors::is_preflight(request.method(), request.headers())) {
        let mut response = text_response(StatusCode::NO_CONTENT, None, "");
        response.headers_mut().extend(cors::preflight_headers(cors, request.headers()));
        return response;
    }
    let extra = cross.map(|cors| cors::response_headers(cors, request.headers()));
    let mut response = respond(request, context, live).await;
    response.headers_mut().extend(extra.into_iter().flatten());
    for (name, value) in &settings.response_headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value.reveal())) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

async fn respond(
    request: Request<Incoming>,
    context: &HttpConnection,
    live: &ActiveSettings<HttpServer>,
) -> Response<ReplyBody> {
    let (signal, encoding) = match classify(&request, &live.settings, &context.submitter) {
        Ok(known) => known,
        Err(stray) => {
            discard_rest(request.into_body(), live.settings.max_body_bytes);
            return unexpected_response(stray);
        }
    };
    match accept_request(request, signal, encoding, context, live).await {
        Ok(shortfall) => success_response(signal, encoding, shortfall.as_deref()),
        Err(refused) => refusal_response(&refused, encoding),
    }
}

fn classify(
    request: &Request<Incoming>,
    settings: &HttpServer,
    taker: &RequestSubmitter,
) -> Result<(Signal, BodyEncoding), UnexpectedRequest> {
    let path = request.uri().path();
    if path.contains("//") {
        return Err(UnexpectedRequest::Redirect(normalized_path(path)));
    }
    let signal = match path {
        p if p == settings.traces_path => Signal::Traces,
        p if p == settings.metrics_path => Signal::Metrics,
        p if p == settings.logs_path => Signal::Logs,
        _ => return Err(UnexpectedRequest::NotFound),
    };
    if !taker.serves(signal) {
        return Err(UnexpectedRequest::NotFound);
    }
    if request.method() != Method::POST {
        return Err(UnexpectedRequest::Method);
    }
    let content = request.headers().get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    // Media types are case-insensitive.
    match content.split(';').next().unwrap_or_default().trim() {
        proto if proto.eq_ignore_ascii_case("application/x-protobuf") => Ok((signal, BodyEncoding::Proto)),
        json if json.eq_ignore_ascii_case("application/json") => Ok((signal, BodyEncoding::Json)),
        _ => Err(UnexpectedRequest::MediaType),
    }
}

fn normalized_path(path: &str) -> String {
    let parts: Vec<_> = path.split('/').filter(|part| !part.is_empty()).collect();
    format!("/{}", parts.join("/"))
}

async fn accept_request(
    mut request: Request<Incoming>,
    signal: Signal,
    encoding: BodyEncoding,
    context: &HttpConnection,
    live: &ActiveSettings<HttpServer>,
) -> Result<Option<Box<PartialSuccess>>, HttpRefusal> {
    let HttpConnection { peer, submitter: taker, .. } = context;
    let result = async {
        let subject = match &live.auth {
            None => None,
            Some(auth) => {
                auth.authenticate(request.headers(), peer.address).wait().await.map_err(|e| auth_refusal(&e))?
            }
        };
        let origin = peer.origin(request.headers(), subject, live.settings.include_metadata);
        let (body, admission) = read_body(&mut request, signal, &live.settings, context).await?;
        let (body, admission) = match encoding {
            BodyEncoding::Proto => (body, admission),
            BodyEncoding::Json => Box::pin(transcode(signal, body, admission, peer)).await?,
        };
        taker.submit(signal, body.into(), admission, origin, peer).await.map_err(HttpRefusal::from)
    };
    let result = result.await;
    if let Err(refused) = &result {
        refused.early_refusal.inspect(|reason| taker.count_early_refusal(*reason));
        discard_rest(request.into_body(), live.settings.max_body_bytes);
    }
    result
}

/// Transcodes a JSON request to protobuf.
async fn transcode(
    signal: Signal,
    body: Vec<u8>,
    mut admission: RequestReservation,
    peer: &SenderPeer,
) -> Result<(Vec<u8>, RequestReservation), HttpRefusal> {
    if body.len() < heavy_work::HEAVY_WORK_MIN_BYTES {
        return from_json(signal, body, admission);
    }
    admission.acquire_heavy_work_slot(peer.share()).await;
    heavy_work::run_on_pool(move || from_json(signal, body, admission)).await
}

/// Memory for a body that announces more than this is checked before the client is asked to send it.
const EARLY_CHECK_MIN_BYTES: usize = 64 << 10;

async fn read_body(
    request: &mut Request<Incoming>,
    signal: Signal,
    settings: &HttpServer,
    context: &HttpConnection,
) -> Result<(Vec<u8>, RequestReservation), HttpRefusal> {
    let algorithm = content_encoding(request.headers(), settings)?;
    let max = usize::try_from(settings.max_body_bytes).unwrap_or(usize::MAX);
    let length = request.headers().get(CONTENT_LENGTH).and_then(|v| v.to_str().ok()).and_then(|v| v.parse().ok());
    if length.is_some_and(|length: usize| length > max) {
        return Err(body_too_large(max));
    }
    if let Some(length) = length.filter(|length| *length > EARLY_CHECK_MIN_BYTES) {
        context.submitter.begin_arrival(signal, length, &context.peer).map_err(no_memory)?;
    }
    let pace = BodyProgress::with_timeout(settings.read_timeout.unwrap_or(BODY_TIMEOUT));
    let collect = pin!(collect_body(request.body_mut(), signal, length, max, &pace, context));
    let (body, admission) = context.timers.read_in_time(collect, &pace).await?;
    if algorithm == CompressionType::None {
        return Ok((body, admission));
    }
    let inflated = grpc_calls::decompress(algorithm, body, max, admission, context.peer.share().clone()).await;
    inflated.map_err(|error| decode_refusal(error, max))
}

fn content_encoding(headers: &HeaderMap, settings: &HttpServer) -> Result<CompressionType, HttpRefusal> {
    let name = headers.get(CONTENT_ENCODING).map_or(Some(""), |v| v.to_str().ok()).unwrap_or("?");
    let algorithm = decompress::parse_encoding(name).filter(|a| settings.compression_algorithms.contains(a));
    let refusal = || Refusal::invalid(format!("unsupported Content-Encoding: {name}"));
    algorithm.ok_or_else(|| HttpRefusal::early(refusal(), EarlyRefusal::Encoding))
}

/// Reads the body. One that has arrived completely is charged in one step, any other as it arrives.
async fn collect_body(
    body: &mut Incoming,
    signal: Signal,
    length: Option<usize>,
    max: usize,
    pace: &BodyProgress,
    context: &HttpConnection,
) -> Result<(Vec<u8>, RequestReservation), HttpRefusal> {
    let mut next = next_data(body).await?;
    let first = next.as_ref().map_or(0, Bytes::len);
    if next.is_none() || Some(first) == length {
        let admission = context.submitter.reserve(signal, first).map_err(no_memory)?;
        let mut out = Vec::with_capacity(first);
        out.extend_from_slice(next.as_deref().unwrap_or_default());
        return expect_end(body, max).await.map(|()| (out, admission));
    }
    let arrival =
        context.submitter.begin_arrival(signal, length.unwrap_or_default(), &context.peer).map_err(no_memory)?;
    let mut buffer = BodyBuffer::charged(length, max, arrival);
    while let Some(data) = next {
        if buffer.len() + data.len() > max {
            return Err(body_too_large(max));
        }
        buffer.push(&data).map_err(no_memory)?;
        pace.record_arrival(data.len());
        next = next_data(body).await?;
    }
    let (bytes, admission) = buffer.finish();
    Ok((bytes, admission.ok_or_else(|| no_memory(Refusal::out_of_memory()))?))
}

/// Reads the next data frame; `None` at the end of the body.
async fn next_data(body: &mut Incoming) -> Result<Option<Bytes>, HttpRefusal> {
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            let refusal = Refusal::invalid(format!("the request was interrupted: {error}"));
            HttpRefusal::early(refusal, EarlyRefusal::Incomplete)
        })?;
        if let Some(data) = frame.into_data().ok().filter(|data| !data.is_empty()) {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

/// Reads the end of a body whose data has all arrived.
async fn expect_end(body: &mut Incoming, max: usize) -> Result<(), HttpRefusal> {
    match next_data(body).await? {
        None => Ok(()),
        // HTTP itself ends a body at its announced length.
        Some(_) => Err(body_too_large(max)),
    }
}

/// Transcodes JSON to protobuf, which is smaller than its JSON except for lists of short numbers.
fn from_json(
    signal: Signal,
    body: Vec<u8>,
    mut admission: RequestReservation,
) -> Result<(Vec<u8>, RequestReservation), HttpRefusal> {
    let decoded = transcoded(signal, &body, &mut admission);
    // The body is dropped before its charge, also if the request is refused.
    drop(body);
    decoded.map(|decoded| (decoded, admission))
}

fn transcoded(signal: Signal, body: &[u8], admission: &mut RequestReservation) -> Result<Vec<u8>, HttpRefusal> {
    // Room for strings with escapes, and for the protobuf of a small request.
    admission.grow(body.len()).map_err(no_memory)?;
    let mut memory = ReservedMemory::for_held_bytes(admission);
    let decoded = kubewake_otlp::json::decode_within(signal, body, &mut memory);
    let (reserved, refusal) = memory.into_outcome();
    let decoded = decoded.map_err(|error| match error.reason() {
        JsonErrorKind::NoMemory => no_memory(refusal.unwrap_or_else(Refusal::out_of_memory)),
        _ => malformed(error.to_string()),
    })?;
    admission.grow(decoded.capacity().saturating_sub(body.len() + reserved)).map_err(no_memory)?;
    Ok(decoded)
}

fn no_memory(refusal: Refusal) -> HttpRefusal {
    if refusal.is_retryable() { HttpRefusal::early(refusal, EarlyRefusal::Memory) } else { too_large_refusal(refusal) }
}

fn malformed(message: String) -> HttpRefusal {
    HttpRefusal::early(Refusal::invalid(message), EarlyRefusal::Malformed)
}

fn body_too_large(max: usize) -> HttpRefusal {
    too_large_refusal(Refusal::invalid(format!("the request body is larger than {max} bytes")))
}

fn too_large_refusal(refusal: Refusal) -> HttpRefusal {
    HttpRefusal { refusal, status: Some(StatusCode::PAYLOAD_TOO_LARGE), early_refusal: Some(EarlyRefusal::TooLarge) }
}

impl From<SlowBodyError> for HttpRefusal {
    fn from(error: SlowBodyError) -> Self {
        let refusal = Refusal::invalid(error.to_string());
        Self { refusal, status: Some(StatusCode::REQUEST_TIMEOUT), early_refusal: Some(EarlyRefusal::Incomplete) }
    }
}

fn auth_refusal(error: &AuthRefusal) -> HttpRefusal {
    HttpRefusal::early(grpc_calls::auth_refusal(error), EarlyRefusal::Unauthenticated)
}

fn decode_refusal(error: DecompressError, max: usize) -> HttpRefusal {
    match error {
        DecompressError::TooLarge(_) => body_too_large(max),
        DecompressError::Refused(refusal) => no_memory(refusal),
        corrupt @ DecompressError::Corrupt { .. } => malformed(corrupt.to_string()),
    }
}

fn success_response(signal: Signal, encoding: BodyEncoding, shortfall: Option<&PartialSuccess>) -> Response<ReplyBody> {
    let (content, body) = match encoding {
        BodyEncoding::Proto => (PROTOBUF_CONTENT_TYPE, partial_success::protobuf(shortfall)),
        BodyEncoding::Json => (JSON_CONTENT_TYPE, partial_success::json(signal, shortfall)),
    };
    let mut response = Response::new(ReplyBody::full(body));
    response.headers_mut().insert(CONTENT_TYPE, content);
    response
}

fn refusal_response(refused: &HttpRefusal, encoding: BodyEncoding) -> Response<ReplyBody> {
    let refusal = &refused.refusal;
    let (content, body) = match encoding {
        BodyEncoding::Proto => (PROTOBUF_CONTENT_TYPE, rpc_status::protobuf(refusal)),
        BodyEncoding::Json => (JSON_CONTENT_TYPE, rpc_status::json(refusal)),
    };
    let mut response = Response::new(ReplyBody::full(body));
    *response.status_mut() = refused.status.unwrap_or_else(|| refusal.code.http_status());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, content);
    if let Some(after) = refusal.retry_after {
        // Whole seconds; zero would mean "at once".
        headers.insert(RETRY_AFTER, HeaderValue::from(after.as_secs().max(1)));
    }
    if refusal.code == Code::Unauthenticated && refusal.kind == RefusalKind::BadRequest {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer, Basic"));
    }
    response
}

fn unexpected_response(stray: UnexpectedRequest) -> Response<ReplyBody> {
    match stray {
        UnexpectedRequest::NotFound => {
            let text = HeaderValue::from_static("text/plain; charset=utf-8");
            text_response(StatusCode::NOT_FOUND, Some(text), "404 page not found\n")
        }
        UnexpectedRequest::Method => text_response(
            StatusCode::METHOD_NOT_ALLOWED,
            Some(TEXT_CONTENT_TYPE),
            "405 method not allowed, supported: [POST]",
        ),
        UnexpectedRequest::MediaType => {
            let words = "415 unsupported media type, supported: [application/json, application/x-protobuf]";
            text_response(StatusCode::UNSUPPORTED_MEDIA_TYPE, Some(TEXT_CONTENT_TYPE), words)
        }
        UnexpectedRequest::Redirect(to) => {
            let mut response = text_response(StatusCode::TEMPORARY_REDIRECT, None, "");
            if let Ok(to) = HeaderValue::try_from(to) {
                response.headers_mut().insert(LOCATION, to);
            }
            response
        }
    }
}

fn text_response(status: StatusCode, content: Option<HeaderValue>, words: &'static str) -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::full(Bytes::from_static(words.as_bytes())));
    *response.status_mut() = status;
    if let Some(content) = content {
        response.headers_mut().insert(CONTENT_TYPE, content);
    }
    response
}
