//! OpenCensus requests as JSON over HTTP.

use std::sync::Arc;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER},
    request::Parts,
};
use http_body_util::BodyExt;
use hyper::{Request, Response, body::Incoming};
use kubewake_otlp::{
    Signal,
    json::MAX_PROTOBUF_PER_JSON,
    opencensus::{OpenCensusStream, TranslateError, from_json},
};

use super::connection::OpenCensusConnection;
use crate::{
    core::{Code, EarlyRefusal, Origin, Refusal, RequestReservation, heavy_work},
    net::reply_body::ReplyBody,
    receiver::{
        body_buffer::BodyBuffer,
        body_timeout::{BodyProgress, read_in_time},
        cors,
        discard::discard_rest,
        grpc_calls::{self, bad_request},
        rpc_status,
    },
};

/// The paths of the two gRPC methods in the Collector's gateway.
const TRACE_PATHS: [&str; 2] = ["/v1/trace", "/v1/trace-one"];
const JSON_CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/json");

pub(super) async fn handle(request: Request<Incoming>, served: &OpenCensusConnection) -> Response<ReplyBody> {
    let live = served.active.load_full();
    let cross = live.settings.cors.as_ref();
    if let Some(cors) = cross.filter(|_| cors::is_preflight(request.method(), request.headers())) {
        let mut response = text_response(StatusCode::NO_CONTENT, "");
        response.headers_mut().extend(cors::preflight_headers(cors, request.headers()));
        return response;
    }
    let extra = cross.map(|cors| cors::response_headers(cors, request.headers()));
    let mut response = respond(request, served).await;
    response.headers_mut().extend(extra.into_iter().flatten());
    response
}

async fn respond(request: Request<Incoming>, served: &OpenCensusConnection) -> Response<ReplyBody> {
    let (head, mut body) = request.into_parts();
    let refusal = if !TRACE_PATHS.contains(&head.uri.path()) || !served.submitter.serves(Signal::Traces) {
        text_response(StatusCode::NOT_FOUND, "404 page not found\n")
    } else if head.method != Method::POST {
        text_response(StatusCode::METHOD_NOT_ALLOWED, "405 method not allowed, supported: [POST]")
    } else {
        match accept_request(&head, &mut body, served).await {
            Ok(()) => {
                let mut response = Response::new(ReplyBody::full(Bytes::from_static(b"{}")));
                response.headers_mut().insert(CONTENT_TYPE, JSON_CONTENT_TYPE);
                return response;
            }
            Err(refusal) => refusal_response(&refusal),
        }
    };
    discard_rest(body, served.active.load().settings.server.max_message_bytes);
    refusal
}

async fn accept_request(head: &Parts, body: &mut Incoming, served: &OpenCensusConnection) -> Result<(), Refusal> {
    let live = served.active.load_full();
    let subject = match &live.auth {
        None => None,
        Some(auth) => auth
            .authenticate(&head.headers, served.peer.address)
            .wait()
            .await
            .map_err(|error| grpc_calls::auth_refusal(&error))
            .inspect_err(|_| served.submitter.count_early_refusal(EarlyRefusal::Unauthenticated))?,
    };
    let origin = served.peer.origin(&head.headers, subject, live.settings.server.include_metadata);
    let max = usize::try_from(live.settings.server.max_message_bytes).unwrap_or(usize::MAX);
    let turned_away =
        |refusal: &Refusal| served.submitter.count_early_refusal(grpc_calls::early_refusal_reason(refusal));
    match read_body(&head.headers, body, max, served).await {
        Ok((body, admission)) => translate_and_submit(body, admission, origin, served).await,
        Err(refusal) => {
            turned_away(&refusal);
            Err(refusal)
        }
    }
}

/// Reads a body into memory that was reserved for it.
async fn read_body(
    headers: &HeaderMap,
    body: &mut Incoming,
    max: usize,
    served: &OpenCensusConnection,
) -> Result<(Vec<u8>, RequestReservation), Refusal> {
    if headers.get(CONTENT_ENCODING).is_some_and(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Err(bad_request(Code::Unimplemented, "a JSON body must not be compressed".to_owned()));
    }
    let length = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()).and_then(|text| text.parse().ok());
    let too_large = || bad_request(Code::ResourceExhausted, format!("the request body is larger than {max} bytes"));
    if length.is_some_and(|length: usize| length > max) {
        return Err(too_large());
    }
    let arrival = served.submitter.begin_arrival(Signal::Traces, length.unwrap_or_default(), &served.peer)?;
    let mut buffer = BodyBuffer::charged(length, max, arrival);
    let pace = BodyProgress::default();
    let collect = async {
        while let Some(frame) = body.frame().await {
            let frame =
                frame.map_err(|error| bad_request(Code::Cancelled, format!("the request was interrupted: {error}")))?;
            let Some(data) = frame.data_ref() else { continue };
            if buffer.len() + data.len() > max {
                return Err(too_large());
            }
            buffer.push(data)?;
            pace.record_arrival(data.len());
        }
        Ok(())
    };
    read_in_time(std::pin::pin!(collect), &pace).await?;
    let (bytes, admission) = buffer.finish();
    Ok((bytes, admission.ok_or_else(Refusal::out_of_memory)?))
}

async fn translate_and_submit(
    body: Vec<u8>,
    mut admission: RequestReservation,
    origin: Arc<Origin>,
    served: &OpenCensusConnection,
) -> Result<(), Refusal> {
    // Boxed, as most requests do not need the space of its state.
    let translated = if body.len() < heavy_work::HEAVY_WORK_MIN_BYTES {
        translate(&body, admission)
    } else {
        Box::pin(async move {
            admission.acquire_heavy_work_slot(served.peer.share()).await;
            heavy_work::run_on_pool(move || translate(&body, admission)).await
        })
        .await
    };
    let turned_away =
        |refusal: &Refusal| served.submitter.count_early_refusal(grpc_calls::early_refusal_reason(refusal));
    let (request, admission) = translated.inspect_err(turned_away)?;
    // OpenCensus cannot report a partial success.
    served.submitter.submit(Signal::Traces, request.into(), admission, origin, &served.peer).await.map(drop)
}

/// Translates the documents of a body. They form a stream as in gRPC: the first one identifies the sender.
fn translate(body: &[u8], mut admission: RequestReservation) -> Result<(Vec<u8>, RequestReservation), Refusal> {
    let mut sender = OpenCensusStream::default();
    let mut all = Vec::new();
    // Room for the protobuf of one document at a time.
    admission.grow(MAX_PROTOBUF_PER_JSON * body.len())?;
    for document in from_json(body) {
        let document = document.map_err(|error| Refusal::invalid(error.to_string()))?;
        let translated = sender.translate(&document, |more| admission.grow(more)).map_err(translate_refusal)?;
        if all.is_empty() {
            all = translated;
        } else {
            // Concatenated requests are one request.
            admission.grow(translated.len())?;
            all.extend_from_slice(&translated);
        }
    }
    Ok((all, admission))
}

fn translate_refusal(error: TranslateError<Refusal>) -> Refusal {
    match error {
        TranslateError::Memory(refusal) => refusal,
        error => Refusal::invalid(error.to_string()),
    }
}

fn refusal_response(refusal: &Refusal) -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::full(rpc_status::json(refusal)));
    *response.status_mut() = match (refusal.code, refusal.retry_after) {
        (Code::ResourceExhausted, None) => StatusCode::PAYLOAD_TOO_LARGE,
        (Code::Unimplemented, _) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        (code, _) => code.http_status(),
    };
    response.headers_mut().insert(CONTENT_TYPE, JSON_CONTENT_TYPE);
    if let Some(after) = refusal.retry_after {
        // Whole seconds; zero would mean "at once".
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(after.as_secs().max(1)));
    }
    response
}

fn text_response(status: StatusCode, words: &'static str) -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::full(Bytes::from_static(words.as_bytes())));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
