//! Writes an answer in the form that its caller accepts.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use serde_json::Value;

use super::{
    answer::{self, Answer},
    call::{Call, On},
    form::Form,
    heavy, in_flight,
    listing::ListShape,
};
use crate::{
    api::{GroupVersion, Status},
    codec::{
        self, Media,
        accept::{self, Chosen},
        query::Query,
    },
    http::{Body, Gzip},
    store::Stored,
    trace::Span,
};

const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");
/// Smaller answers are not worth it: kube-apiserver's own bound.
const GZIP_FROM: u64 = 128 << 10;

/// The answer to a request about objects.
pub async fn answered(on: On<'_>, answer: Answer) -> Result<Response<Body>, Status> {
    let size = match &answer {
        Answer::List(listing) => listing.items.iter().map(|item| item.body.len()).sum(),
        _ => 0,
    };
    match heavy::is_heavy(size) {
        true => on.core().heavy.run(async { written_answer(on, answer) }).await,
        false => written_answer(on, answer),
    }
}

fn written_answer(on: On<'_>, answer: Answer) -> Result<Response<Body>, Status> {
    let kind = match &answer {
        Answer::List(_) => accept::Answer::List,
        Answer::Watch(_) => accept::Answer::Watch,
        _ => accept::Answer::Object,
    };
    let form = Form::checked(on, kind)?;
    let (code, body) = match answer {
        Answer::Stored(code, stored) => (code, object(on, &form, answer::Shown::Stored(&stored))?.into()),
        Answer::Object(code, value) => (code, object(on, &form, answer::Shown::Value(value))?.into()),
        Answer::List(listing) => (StatusCode::OK, list(on, &form, listing)?),
        Answer::Watch(body) => return Ok(response(on.call, StatusCode::OK, form.chosen.content_type(true), body)),
        Answer::Stream(body) => return Ok(response(on.call, StatusCode::OK, "text/plain", body)),
        Answer::Text(code, content_type, bytes) => return Ok(response(on.call, code, content_type, bytes.into())),
    };
    if on.call.info.verb != "list" {
        on.span.event("Writing http response done");
    }
    let response = response(on.call, code, form.chosen.content_type(false), body);
    Ok(compressed(on.call, response))
}

fn object(on: On<'_>, form: &Form, shown: answer::Shown<'_>) -> Result<Bytes, Status> {
    let span = serialize_span(on.call, on.span, form.chosen, &on.shown().gv.to_string());
    form.chosen.check_form(false, &on.shown().gv, &on.shown().kind, on.shown().custom.is_some())?;
    let bytes = match shown {
        answer::Shown::Stored(stored) if is_plain(form, on) => answer::object(on.resource, stored),
        answer::Shown::Stored(stored) => written(form, on, as_shown(on, stored)),
        answer::Shown::Value(mut value) => {
            if value.get("kind").and_then(Value::as_str) == Some(&on.resource.kind) {
                on.to_shown(&mut value);
            }
            written(form, on, value)
        }
    };
    end_serialize(&span, bytes.len(), true);
    Ok(bytes)
}

fn list(on: On<'_>, form: &Form, listing: answer::Listing) -> Result<Body, Status> {
    let span = serialize_span(on.call, on.span, form.chosen, &on.shown().gv.to_string());
    form.chosen.check_form(true, &on.shown().gv, &on.shown().list_kind, on.shown().custom.is_some())?;
    let body = match is_plain(form, on) {
        true => answer::list(on.resource, listing),
        false => ListShape::new(on, form).body(listing),
    };
    end_serialize(&span, body.len().unwrap_or(0) as usize, true);
    Ok(body)
}

/// A value as its caller reads it. Protobuf is written where there is a message for it, else it is JSON.
pub fn encode(value: &Value, chosen: Chosen) -> Bytes {
    match (chosen.media, chosen.pretty) {
        (Media::Yaml, _) => codec::yaml::encode(value).into(),
        (Media::Protobuf, _) => codec::protobuf::encode(value).unwrap_or_else(|| codec::json::encode(value)).into(),
        (_, true) => codec::json::encode_pretty(value).into(),
        (_, false) => codec::json::encode(value).into(),
    }
}

fn is_plain(form: &Form, on: On<'_>) -> bool {
    let as_stored = on.view.is_none() && form.chosen.form == accept::Form::Object;
    form.chosen.media == Media::Json && !form.chosen.pretty && as_stored
}

/// A stored object in the shape that the caller sees.
fn as_shown(on: On<'_>, stored: &Stored) -> Value {
    let mut value = answer::value(on.resource, stored);
    on.to_shown(&mut value);
    value
}

fn written(form: &Form, on: On<'_>, value: Value) -> Bytes {
    let is_status = value.get("kind").and_then(Value::as_str) == Some("Status");
    let shown = if is_status { None } else { form.object(on.shown(), &value) };
    encode(&shown.unwrap_or(value), form.chosen)
}

/// The answer to a request that its handler refuses. Its encoder is that of the version of what the handler would answer.
pub fn refused_by_handler(on: On<'_>, status: &Status, span: &Span) -> Response<Body> {
    refuse(on.call, status, span, Refuser::Handler(&on.wanted_gv().to_string()))
}

/// The answer to a request that the router has no handler for. That of built-in kinds knows no version.
pub fn refused_by_router(call: &Call, status: &Status, span: &Span, gv: Option<&GroupVersion>) -> Response<Body> {
    refuse(call, status, span, Refuser::Filter(&gv.map_or_else(String::new, ToString::to_string)))
}

/// The answer to a request that does not reach the router.
pub fn refused(call: &Call, status: &Status, span: &Span) -> Response<Body> {
    refuse(call, status, span, Refuser::Filter("v1"))
}

/// Who refuses, with the version of its encoder.
#[derive(Clone, Copy, Debug)]
enum Refuser<'a> {
    Filter(&'a str),
    Handler(&'a str),
}

fn refuse(call: &Call, status: &Status, span: &Span, refuser: Refuser<'_>) -> Response<Body> {
    let query = Query::parse(&call.query);
    let header = |name| Some(call.header(name)).filter(|text| !text.is_empty());
    let fitting = accept::negotiate_plain(header(header::ACCEPT), header(header::USER_AGENT), &query);
    // Where nothing fits, kube-apiserver writes JSON past all encoders.
    let chosen = fitting.unwrap_or(Chosen::JSON);
    let bytes = encode(&status.to_value(), chosen);
    if fitting.is_some() {
        let (Refuser::Filter(gv) | Refuser::Handler(gv)) = refuser;
        let serialize = serialize_span(call, span, chosen, gv);
        end_serialize(&serialize, bytes.len(), matches!(refuser, Refuser::Handler(_)));
    }
    let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = response(call, code, chosen.content_type(false), bytes.into());
    if let Some(seconds) = status.retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// The answer to a request for which there is no place.
pub fn too_many(call: &Call) -> Response<Body> {
    let bytes = Bytes::from_static(in_flight::TOO_MANY.as_bytes());
    let mut response = response(call, StatusCode::TOO_MANY_REQUESTS, "text/plain; charset=utf-8", bytes.into());
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(in_flight::RETRY_AFTER));
    response
}

/// An answer that is no object.
pub fn plain(call: &Call, code: StatusCode, content_type: &str, bytes: Bytes) -> Response<Body> {
    compressed(call, response(call, code, content_type, bytes.into()))
}

fn response(call: &Call, code: StatusCode, content_type: &str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    if let Ok(id) = HeaderValue::from_str(&call.audit_id) {
        headers.insert(AUDIT_ID, id);
    }
    if let Ok(content_type) = HeaderValue::from_str(content_type)
        && !content_type.is_empty()
    {
        headers.insert(header::CONTENT_TYPE, content_type);
    }
    for warning in call.warnings.take() {
        let text = warning.replace('\\', "\\\\").replace('"', "\\\"").replace(['\r', '\n'], " ");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{text}\"")) {
            headers.append(header::WARNING, value);
        }
    }
    response
}

fn compressed(call: &Call, response: Response<Body>) -> Response<Body> {
    let wanted = call.header(header::ACCEPT_ENCODING).split(',').any(|coding| coding.trim().starts_with("gzip"));
    if !wanted || response.body().len().is_some_and(|length| length < GZIP_FROM) {
        return response;
    }
    let is_large = response.body().len().is_none_or(|length| length >= heavy::HEAVY_BYTES as u64);
    let (mut head, body) = response.into_parts();
    let pieces = match body.into_pieces() {
        Ok(pieces) => Gzip::new(pieces),
        Err(body) => return Response::from_parts(head, body),
    };
    head.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    head.headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    let body = if is_large { Body::made_of_any_length(pieces) } else { Body::pieces(pieces) };
    Response::from_parts(head, body)
}

fn serialize_span(call: &Call, parent: &Span, chosen: Chosen, gv: &str) -> Span {
    let span = parent.step("SerializeObject");
    if span.is_recording() {
        describe_answer(call, &span, chosen.media.name(), &encoder(chosen, gv));
    }
    span
}

fn describe_answer(call: &Call, span: &Span, media_type: &str, encoder: &str) {
    span.set("audit-id", &call.audit_id);
    span.set("method", call.method.as_str());
    span.set("url", &call.info.path);
    span.set("protocol", call.protocol);
    span.set("mediaType", media_type);
    span.set("encoder", encoder);
}

/// The span of the events of a watch.
pub fn watch_span(on: On<'_>, parent: &Span, chosen: Chosen) -> Span {
    let span = parent.step("WatchServer.HandleHTTP");
    if span.is_recording() {
        describe_answer(on.call, &span, chosen.content_type(true), &encoder(chosen, &on.shown().gv.to_string()));
    }
    span
}

/// The span of writing a document of discovery, which follows no version.
pub fn discovered(call: &Call, parent: &Span, size: usize) {
    let chosen = Chosen { media: Media::Json, pretty: false, form: accept::Form::Object };
    let span = serialize_span(call, parent, chosen, "");
    end_serialize(&span, size, false);
}

/// kube-apiserver names its encoder in JSON within JSON.
fn encoder(chosen: Chosen, gv: &str) -> String {
    let (yaml, pretty) = (chosen.media == Media::Yaml, chosen.pretty);
    let gv = if gv.is_empty() { String::new() } else { format!(r#""encodeGV":"{gv}","#) };
    let inner = format!(r#"{{\"name\":\"json\",\"pretty\":\"{pretty}\",\"strict\":\"false\",\"yaml\":\"{yaml}\"}}"#);
    format!(r#"{{{gv}"encoder":"{inner}","name":"versioning"}}"#)
}

fn end_serialize(span: &Span, size: usize, handler: bool) {
    let writer = if handler {
        "*responsewriter.outerWithCloseNotifyFlushAndHijack"
    } else {
        "struct { httpsnoop.Unwrapper; http.ResponseWriter; http.Flusher; http.CloseNotifier; http.Hijacker }"
    };
    span.event_with("About to start writing response", &[("size", size.into()), ("writer", writer.into())]);
    span.event_with("Write call succeeded", &[("size", size.into())]);
    span.end();
}
