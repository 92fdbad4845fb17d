//! Encodes a response in the form that its caller accepts.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use serde_json::Value;

use super::{
    call::{ApiRequest, ResourceRequest},
    handler_response::{self, HandlerResponse},
    heavy_work, in_flight,
    list_encoder::ListShape,
    transform::ResponseTransform,
};
use crate::{
    api::{GroupVersion, StatusError},
    codec::{
        self, MediaType,
        accept::{self, MediaTypeOptions},
        query::QueryParameters,
    },
    http::{Body, GzipChunks},
    store::Stored,
    trace::TraceSpan,
};

const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");
/// The smallest response that is compressed: kube-apiserver's own bound.
const GZIP_MIN_BYTES: u64 = 128 << 10;

/// The response to a request about objects.
pub async fn respond(on: ResourceRequest<'_>, answer: HandlerResponse) -> Result<Response<Body>, StatusError> {
    let size = match &answer {
        HandlerResponse::List(listing) => listing.items.iter().map(|item| item.body.len()).sum(),
        _ => 0,
    };
    if heavy_work::is_heavy(size) {
        on.core().heavy.run(async { encode_response(on, answer) }).await
    } else {
        encode_response(on, answer)
    }
}

fn encode_response(on: ResourceRequest<'_>, answer: HandlerResponse) -> Result<Response<Body>, StatusError> {
    let kind = match &answer {
        HandlerResponse::List(_) => accept::ResponseKind::List,
        HandlerResponse::Watch(_) => accept::ResponseKind::Watch,
        _ => accept::ResponseKind::Object,
    };
    let form = ResponseTransform::negotiate_with_include(on, kind)?;
    let (code, body) = match answer {
        HandlerResponse::Stored(code, stored) => {
            (code, encode_object(on, &form, handler_response::ResponseObject::Stored(&stored))?.into())
        }
        HandlerResponse::Object(code, value) => {
            (code, encode_object(on, &form, handler_response::ResponseObject::Value(value))?.into())
        }
        HandlerResponse::List(listing) => (StatusCode::OK, encode_list(on, &form, listing)?),
        HandlerResponse::Watch(body) => {
            return Ok(response(on.call, StatusCode::OK, form.chosen.content_type(true), body));
        }
        HandlerResponse::Stream(body) => return Ok(response(on.call, StatusCode::OK, "text/plain", body)),
        HandlerResponse::Text(code, content_type, bytes) => {
            return Ok(response(on.call, code, content_type, bytes.into()));
        }
    };
    if on.call.info.verb != "list" {
        on.span.add_event("Writing http response done");
    }
    let response = response(on.call, code, form.chosen.content_type(false), body);
    Ok(compress_response(on.call, response))
}

fn encode_object(
    on: ResourceRequest<'_>,
    form: &ResponseTransform,
    shown: handler_response::ResponseObject<'_>,
) -> Result<Bytes, StatusError> {
    let span = serialize_span(on.call, on.span, form.chosen, &on.served_resource().gv.to_string());
    form.chosen.check_form(
        false,
        &on.served_resource().gv,
        &on.served_resource().kind,
        on.served_resource().custom.is_some(),
    )?;
    let bytes = match shown {
        handler_response::ResponseObject::Stored(stored) if is_plain(form, on) => {
            handler_response::object(on.resource, stored)
        }
        handler_response::ResponseObject::Stored(stored) => encode_transformed(form, on, served_value(on, stored)),
        handler_response::ResponseObject::Value(mut value) => {
            if value.get("kind").and_then(Value::as_str) == Some(&on.resource.kind) {
                on.convert_to_served(&mut value);
            }
            encode_transformed(form, on, value)
        }
    };
    end_serialize(&span, bytes.len(), true);
    Ok(bytes)
}

fn encode_list(
    on: ResourceRequest<'_>,
    form: &ResponseTransform,
    listing: handler_response::ListPage,
) -> Result<Body, StatusError> {
    let span = serialize_span(on.call, on.span, form.chosen, &on.served_resource().gv.to_string());
    form.chosen.check_form(
        true,
        &on.served_resource().gv,
        &on.served_resource().list_kind,
        on.served_resource().custom.is_some(),
    )?;
    let body = if is_plain(form, on) {
        handler_response::list(on.resource, listing)
    } else {
        ListShape::new(on, form).body(listing)
    };
    end_serialize(&span, body.len().unwrap_or(0) as usize, true);
    Ok(body)
}

/// Encodes a value. Protobuf falls back to JSON for kinds without a message.
pub fn encode(value: &Value, chosen: MediaTypeOptions) -> Bytes {
    match (chosen.media, chosen.pretty) {
        (MediaType::Yaml, _) => codec::yaml::encode(value).into(),
        (MediaType::Protobuf, _) => codec::protobuf::encode(value).unwrap_or_else(|| codec::json::encode(value)).into(),
        (_, true) => codec::json::encode_pretty(value).into(),
        (_, false) => codec::json::encode(value).into(),
    }
}

fn is_plain(form: &ResponseTransform, on: ResourceRequest<'_>) -> bool {
    let as_stored = on.view.is_none() && form.chosen.form == accept::ObjectForm::Object;
    form.chosen.media == MediaType::Json && !form.chosen.pretty && as_stored
}

/// A stored object in the served shape.
fn served_value(on: ResourceRequest<'_>, stored: &Stored) -> Value {
    let mut value = handler_response::value(on.resource, stored);
    on.convert_to_served(&mut value);
    value
}

fn encode_transformed(form: &ResponseTransform, on: ResourceRequest<'_>, value: Value) -> Bytes {
    let is_status = value.get("kind").and_then(Value::as_str) == Some("Status");
    let shown = if is_status { None } else { form.object(on.served_resource(), &value) };
    encode(&shown.unwrap_or(value), form.chosen)
}

/// The error response of a handler. Its encoder is that of the version that the handler would have returned.
pub fn handler_error_response(on: ResourceRequest<'_>, status: &StatusError, span: &TraceSpan) -> Response<Body> {
    write_error_response(on.call, status, span, RefusalOrigin::Handler(&on.body_group_version().to_string()))
}

/// The error response of the router. For built-in kinds its encoder has no version.
pub fn router_error_response(
    call: &ApiRequest,
    status: &StatusError,
    span: &TraceSpan,
    gv: Option<&GroupVersion>,
) -> Response<Body> {
    write_error_response(call, status, span, RefusalOrigin::Filter(&gv.map_or_else(String::new, ToString::to_string)))
}

/// The response to a request that is refused before the router.
pub fn refused(call: &ApiRequest, status: &StatusError, span: &TraceSpan) -> Response<Body> {
    write_error_response(call, status, span, RefusalOrigin::Filter("v1"))
}

/// The origin of a refusal, which determines its encoder.
#[derive(Clone, Copy, Debug)]
enum RefusalOrigin<'a> {
    Filter(&'a str),
    Handler(&'a str),
}

fn write_error_response(
    call: &ApiRequest,
    status: &StatusError,
    span: &TraceSpan,
    refuser: RefusalOrigin<'_>,
) -> Response<Body> {
    let query = QueryParameters::parse(&call.query);
    let header = |name| Some(call.header(name)).filter(|text| !text.is_empty());
    let fitting = accept::negotiate_plain(header(header::ACCEPT), header(header::USER_AGENT), &query);
    // If nothing is acceptable, kube-apiserver writes JSON without an encoder.
    let chosen = fitting.unwrap_or(MediaTypeOptions::JSON);
    let bytes = encode(&status.to_value(), chosen);
    if fitting.is_some() {
        let (RefusalOrigin::Filter(gv) | RefusalOrigin::Handler(gv)) = refuser;
        let serialize = serialize_span(call, span, chosen, gv);
        end_serialize(&serialize, bytes.len(), matches!(refuser, RefusalOrigin::Handler(_)));
    }
    let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = response(call, code, chosen.content_type(false), bytes.into());
    if let Some(seconds) = status.retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// The response to a request above the limit.
pub fn too_many_requests_response(call: &ApiRequest) -> Response<Body> {
    let bytes = Bytes::from_static(in_flight::TOO_MANY_REQUESTS_MESSAGE.as_bytes());
    let mut response = response(call, StatusCode::TOO_MANY_REQUESTS, "text/plain; charset=utf-8", bytes.into());
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(in_flight::RETRY_AFTER_SECONDS));
    response
}

/// A response that is not an object.
pub fn plain_response(call: &ApiRequest, code: StatusCode, content_type: &str, bytes: Bytes) -> Response<Body> {
    compress_response(call, response(call, code, content_type, bytes.into()))
}

fn response(call: &ApiRequest, code: StatusCode, content_type: &str, body: Body) -> Response<Body> {
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

fn compress_response(call: &ApiRequest, response: Response<Body>) -> Response<Body> {
    let wanted = call.header(header::ACCEPT_ENCODING).split(',').any(|coding| coding.trim().starts_with("gzip"));
    if !wanted || response.body().len().is_some_and(|length| length < GZIP_MIN_BYTES) {
        return response;
    }
    let is_large = response.body().len().is_none_or(|length| length >= heavy_work::HEAVY_REQUEST_BYTES as u64);
    let (mut head, body) = response.into_parts();
    let pieces = match body.into_chunks() {
        Ok(pieces) => GzipChunks::new(pieces),
        Err(body) => return Response::from_parts(head, body),
    };
    head.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    head.headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    let body = if is_large { Body::lazy(pieces) } else { Body::from_chunks(pieces) };
    Response::from_parts(head, body)
}

fn serialize_span(call: &ApiRequest, parent: &TraceSpan, chosen: MediaTypeOptions, gv: &str) -> TraceSpan {
    let span = parent.component_child("SerializeObject");
    if span.is_recording() {
        describe_answer(call, &span, chosen.media.name(), &encoder(chosen, gv));
    }
    span
}

fn describe_answer(call: &ApiRequest, span: &TraceSpan, media_type: &str, encoder: &str) {
    span.set_attribute("audit-id", &call.audit_id);
    span.set_attribute("method", call.method.as_str());
    span.set_attribute("url", &call.info.path);
    span.set_attribute("protocol", call.protocol);
    span.set_attribute("mediaType", media_type);
    span.set_attribute("encoder", encoder);
}

/// The span of the events of a watch.
pub fn watch_span(on: ResourceRequest<'_>, parent: &TraceSpan, chosen: MediaTypeOptions) -> TraceSpan {
    let span = parent.component_child("WatchServer.HandleHTTP");
    if span.is_recording() {
        describe_answer(
            on.call,
            &span,
            chosen.content_type(true),
            &encoder(chosen, &on.served_resource().gv.to_string()),
        );
    }
    span
}

/// Records the span of writing a discovery document, which has no version.
pub fn record_discovery_span(call: &ApiRequest, parent: &TraceSpan, size: usize) {
    let chosen = MediaTypeOptions { media: MediaType::Json, pretty: false, form: accept::ObjectForm::Object };
    let span = serialize_span(call, parent, chosen, "");
    end_serialize(&span, size, false);
}

/// The name of kube-apiserver's encoder: JSON within JSON.
fn encoder(chosen: MediaTypeOptions, gv: &str) -> String {
    let yaml = chosen.media == MediaType::Yaml;
    let pretty = chosen.pretty;
    let gv = if gv.is_empty() { String::new() } else { format!(r#""encodeGV":"{gv}","#) };
    let inner = format!(r#"{{\"name\":\"json\",\"pretty\":\"{pretty}\",\"strict\":\"false\",\"yaml\":\"{yaml}\"}}"#);
    format!(r#"{{{gv}"encoder":"{inner}","name":"versioning"}}"#)
}

fn end_serialize(span: &TraceSpan, size: usize, handler: bool) {
    let writer = if handler {
        "*responsewriter.outerWithCloseNotifyFlushAndHijack"
    } else {
        "struct { httpsnoop.Unwrapper; http.ResponseWriter; http.Flusher; http.CloseNotifier; http.Hijacker }"
    };
    span.add_event_with("About to start writing response", &[("size", size.into()), ("writer", writer.into())]);
    span.add_event_with("Write call succeeded", &[("size", size.into())]);
    span.end();
}
