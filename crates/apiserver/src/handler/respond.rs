//! Writes an answer in the form that its caller accepts.

use std::io::Write as _;

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use serde_json::Value;

use super::{
    answer::{self, Answer},
    call::{Call, On},
    form::Form,
};
use crate::{
    api::Status,
    codec::{
        self, Media,
        accept::{self, Chosen},
        query::Query,
    },
    http::Body,
    store::Stored,
    trace::Span,
};

const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");
/// Smaller answers are not worth it: kube-apiserver's own bound.
const GZIP_FROM: u64 = 128 << 10;

/// The answer to a request about objects.
pub fn answered(on: On<'_>, answer: Answer) -> Result<Response<Body>, Status> {
    let kind = match &answer {
        Answer::List(_) => accept::Answer::List,
        Answer::Watch(_) => accept::Answer::Watch,
        _ => accept::Answer::Object,
    };
    let form = Form::of(on, kind)?;
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
    let body = match form.list(on, &listing) {
        None if is_plain(form, on) => answer::list(on.resource, listing),
        None => {
            let json = answer::list(on.resource, listing).into_bytes();
            let mut value: Value = serde_json::from_slice(&json).unwrap_or_default();
            if on.view.is_some() {
                show_items(on, &mut value);
            }
            encode(&value, form.chosen).into()
        }
        Some(value) => encode(&value, form.chosen).into(),
    };
    end_serialize(&span, body.len().unwrap_or(0) as usize, true);
    Ok(body)
}

/// A value as its caller reads it. Protobuf is written where there is a message for it, else it is JSON.
fn encode(value: &Value, chosen: Chosen) -> Bytes {
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

fn show_items(on: On<'_>, list: &mut Value) {
    let Some(list) = list.as_object_mut() else { return };
    list.insert("apiVersion".into(), on.shown().gv.to_string().into());
    for item in list.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten() {
        on.to_shown(item);
        if let Some(item) = item.as_object_mut() {
            item.remove("apiVersion");
            item.remove("kind");
        }
    }
}

fn written(form: &Form, on: On<'_>, value: Value) -> Bytes {
    let is_status = value.get("kind").and_then(Value::as_str) == Some("Status");
    let shown = if is_status { None } else { form.object(on.shown(), &value) };
    encode(&shown.unwrap_or(value), form.chosen)
}

/// The answer to a request that its handler refuses.
pub fn refused_by_handler(call: &Call, status: &Status, span: &Span) -> Response<Body> {
    refuse(call, status, span, true)
}

/// The answer to a request that does not reach its handler.
pub fn refused(call: &Call, status: &Status, span: &Span) -> Response<Body> {
    refuse(call, status, span, false)
}

fn refuse(call: &Call, status: &Status, span: &Span, handler: bool) -> Response<Body> {
    let query = Query::parse(&call.query);
    let header = |name| Some(call.header(name)).filter(|text| !text.is_empty());
    let chosen = accept::negotiate_plain(header(header::ACCEPT), header(header::USER_AGENT), &query);
    let serialize = serialize_span(call, span, chosen, "v1");
    let bytes = encode(&status.to_value(), chosen);
    end_serialize(&serialize, bytes.len(), handler);
    let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = response(call, code, chosen.content_type(false), bytes.into());
    if let Some(seconds) = status.retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
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
    if !wanted || response.body().len().is_none_or(|length| length < GZIP_FROM) {
        return response;
    }
    let (mut head, body) = response.into_parts();
    let pieces = match body.into_pieces() {
        Ok(pieces) => pieces,
        Err(body) => return Response::from_parts(head, body),
    };
    // The fastest level: the network is rarely slower than that.
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let written = pieces.iter().try_for_each(|piece| encoder.write_all(piece)).and_then(|()| encoder.finish());
    let Ok(bytes) = written else { return Response::from_parts(head, Body::pieces(pieces)) };
    head.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    head.headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    Response::from_parts(head, bytes.into())
}

fn serialize_span(call: &Call, parent: &Span, chosen: Chosen, gv: &str) -> Span {
    let span = parent.step("SerializeObject");
    if span.is_recording() {
        span.set("audit-id", &call.audit_id);
        span.set("method", call.method.as_str());
        span.set("url", &call.info.path);
        span.set("protocol", call.protocol);
        span.set("mediaType", chosen.media.name());
        span.set("encoder", &encoder(chosen, gv));
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
