//! Requests in JSON over HTTP.

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
    opencensus::{Sender, TranslateError, from_json},
};

use super::connection::Served;
use crate::{
    core::{Admission, Code, Origin, Refusal, TurnedAway, heavy},
    net::reply::Reply,
    receiver::{
        body::BodyBuffer,
        calls::{self, refuse},
        cors,
        discard::discard_rest,
        rpc_status,
        timers::{Pace, in_time},
    },
};

/// Where the Collector's gateway had the two methods of gRPC.
const PATHS: [&str; 2] = ["/v1/trace", "/v1/trace-one"];
const JSON: HeaderValue = HeaderValue::from_static("application/json");

pub(super) async fn handle(request: Request<Incoming>, served: &Served) -> Response<Reply> {
    let live = served.live.load_full();
    let cross = live.settings.cors.as_ref();
    if let Some(cors) = cross.filter(|_| cors::is_preflight(request.method(), request.headers())) {
        let mut response = plain(StatusCode::NO_CONTENT, "");
        response.headers_mut().extend(cors::preflight(cors, request.headers()));
        return response;
    }
    let extra = cross.map(|cors| cors::answer(cors, request.headers()));
    let mut response = respond(request, served).await;
    response.headers_mut().extend(extra.into_iter().flatten());
    response
}

async fn respond(request: Request<Incoming>, served: &Served) -> Response<Reply> {
    let (head, mut body) = request.into_parts();
    let refusal = if !PATHS.contains(&head.uri.path()) || !served.taker.serves(Signal::Traces) {
        plain(StatusCode::NOT_FOUND, "404 page not found\n")
    } else if head.method != Method::POST {
        plain(StatusCode::METHOD_NOT_ALLOWED, "405 method not allowed, supported: [POST]")
    } else {
        match accept(&head, &mut body, served).await {
            Ok(()) => {
                let mut response = Response::new(Reply::full(Bytes::from_static(b"{}")));
                response.headers_mut().insert(CONTENT_TYPE, JSON);
                return response;
            }
            Err(refusal) => refused(&refusal),
        }
    };
    discard_rest(body, served.live.load().settings.server.max_message_bytes);
    refusal
}

async fn accept(head: &Parts, body: &mut Incoming, served: &Served) -> Result<(), Refusal> {
    let live = served.live.load_full();
    let subject = match &live.auth {
        None => None,
        Some(auth) => auth
            .authenticate(&head.headers, served.peer.address)
            .wait()
            .await
            .map_err(|error| calls::unauthenticated(&error))
            .inspect_err(|_| served.taker.turn_away(TurnedAway::Unauthenticated))?,
    };
    let origin = served.peer.origin(&head.headers, subject, live.settings.server.include_metadata);
    let max = usize::try_from(live.settings.server.max_message_bytes).unwrap_or(usize::MAX);
    let turned_away = |refusal: &Refusal| served.taker.turn_away(calls::reason(refusal));
    match read(&head.headers, body, max, served).await {
        Ok((body, admission)) => take(body, admission, origin, served).await,
        Err(refusal) => {
            turned_away(&refusal);
            Err(refusal)
        }
    }
}

/// Reads a body into memory that was reserved for it.
async fn read(
    headers: &HeaderMap,
    body: &mut Incoming,
    max: usize,
    served: &Served,
) -> Result<(Vec<u8>, Admission), Refusal> {
    if headers.get(CONTENT_ENCODING).is_some_and(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Err(refuse(Code::Unimplemented, "a body in JSON cannot be compressed".to_owned()));
    }
    let length = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()).and_then(|text| text.parse().ok());
    let too_large = || refuse(Code::ResourceExhausted, format!("the request body is larger than {max} bytes"));
    if length.is_some_and(|length: usize| length > max) {
        return Err(too_large());
    }
    let arrival = served.taker.begin_arrival(Signal::Traces, length.unwrap_or_default(), &served.peer)?;
    let mut buffer = BodyBuffer::charged(length, max, arrival);
    let pace = Pace::default();
    let collect = async {
        while let Some(frame) = body.frame().await {
            let frame =
                frame.map_err(|error| refuse(Code::Cancelled, format!("the request was cut short: {error}")))?;
            let Some(data) = frame.data_ref() else { continue };
            if buffer.len() + data.len() > max {
                return Err(too_large());
            }
            buffer.push(data)?;
            pace.advance(data.len());
        }
        Ok(())
    };
    in_time(std::pin::pin!(collect), &pace).await?;
    let (bytes, admission) = buffer.finish();
    Ok((bytes, admission.ok_or_else(Refusal::memory)?))
}

async fn take(body: Vec<u8>, mut admission: Admission, origin: Arc<Origin>, served: &Served) -> Result<(), Refusal> {
    // In a box, as most requests have no use for the room that its state takes.
    let translated = match body.len() < heavy::HEAVY_BYTES {
        true => translate(&body, admission),
        false => {
            Box::pin(async move {
                admission.take_place(served.peer.share()).await;
                heavy::elsewhere(move || translate(&body, admission)).await
            })
            .await
        }
    };
    let turned_away = |refusal: &Refusal| served.taker.turn_away(calls::reason(refusal));
    let (request, admission) = translated.inspect_err(turned_away)?;
    // It has no words for a part.
    served.taker.take(Signal::Traces, request.into(), admission, origin, &served.peer).await.map(drop)
}

/// Translates the documents of a body. They are a stream, as it is one in gRPC: the first says who sends.
fn translate(body: &[u8], mut admission: Admission) -> Result<(Vec<u8>, Admission), Refusal> {
    let mut sender = Sender::default();
    let mut all = Vec::new();
    // For the protobuf of each document, one after another.
    admission.grow(MAX_PROTOBUF_PER_JSON * body.len())?;
    for document in from_json(body) {
        let document = document.map_err(|error| Refusal::invalid(error.to_string()))?;
        let translated = sender.translate(&document, |more| admission.grow(more)).map_err(refusal)?;
        if all.is_empty() {
            all = translated;
        } else {
            // Requests behind each other are one request.
            admission.grow(translated.len())?;
            all.extend_from_slice(&translated);
        }
    }
    Ok((all, admission))
}

fn refusal(error: TranslateError<Refusal>) -> Refusal {
    match error {
        TranslateError::Memory(refusal) => refusal,
        error => Refusal::invalid(error.to_string()),
    }
}

fn refused(refusal: &Refusal) -> Response<Reply> {
    let mut response = Response::new(Reply::full(rpc_status::json(refusal)));
    *response.status_mut() = match (refusal.code, refusal.retry_after) {
        (Code::ResourceExhausted, None) => StatusCode::PAYLOAD_TOO_LARGE,
        (Code::Unimplemented, _) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        (code, _) => code.http_status(),
    };
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    if let Some(after) = refusal.retry_after {
        // Whole seconds; zero would mean at once.
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(after.as_secs().max(1)));
    }
    response
}

fn plain(status: StatusCode, words: &'static str) -> Response<Reply> {
    let mut response = Response::new(Reply::full(Bytes::from_static(words.as_bytes())));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
