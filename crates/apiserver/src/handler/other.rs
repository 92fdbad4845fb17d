//! Paths that are no objects: health, version, metrics, discovery and OpenAPI.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::{Value, json};

use super::{call::Call, respond};
use crate::{
    api::{GroupVersion, Status},
    codec::{Media, accept, query::Query, yaml},
    discovery::{self, Found},
    http::Body,
    openapi,
    trace::Span,
};

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";
/// What every server of this kind checks; being able to answer is being ready.
const CHECKS: [&str; 3] = ["ping", "log", "etcd"];

/// Answers such a path.
pub fn answer(call: &Call, span: &Span) -> Response<Body> {
    let path = call.info.path.trim_end_matches('/');
    if call.info.verb != "get" {
        return respond::refused(call, &Status::method_not_allowed(), span);
    }
    if let Some(found) = described(call, span) {
        return found;
    }
    match path {
        "" => respond::plain(call, StatusCode::OK, JSON, roots(call)),
        "/version" => respond::plain(call, StatusCode::OK, JSON, version()),
        "/metrics" => respond::plain(call, StatusCode::OK, METRICS, metrics(call)),
        "/.well-known/openid-configuration" => issuer(call, JSON, &call.core.access.tokens.openid_configuration()),
        "/openid/v1/jwks" => issuer(call, "application/jwk-set+json", &call.core.access.tokens.jwks()),
        _ => health(call, path).unwrap_or_else(|| not_found(call)),
    }
}

/// Discovery and OpenAPI, which follow from what is served.
fn described(call: &Call, span: &Span) -> Option<Response<Body>> {
    let header = |name| Some(call.header(name)).filter(|text| !text.is_empty());
    let (path, accept) = (call.info.path.as_str(), header(header::ACCEPT));
    let discovered = discovery::answer(&call.catalog, path, accept).map(|found| negotiated(call, found, accept));
    let discovered = match discovered {
        Some(Err(status)) => return Some(respond::refused_by_router(call, &status, span, None)),
        Some(Ok(found)) => Some(found),
        None => None,
    };
    let found = discovered
        .inspect(|found| respond::discovered(call, span, found.body.len()))
        .or_else(|| openapi::answer(&call.catalog, path, &call.query, accept))?
        .revalidated(header(header::IF_NONE_MATCH));
    let status = StatusCode::from_u16(found.status).unwrap_or(StatusCode::OK);
    let mut response = respond::plain(call, status, found.content_type, found.body);
    for (name, value) in found.headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(name, value);
        }
    }
    Some(response)
}

/// A document of discovery in what the caller accepts. Protobuf is answered in JSON.
fn negotiated(call: &Call, found: Found, accept: Option<&str>) -> Result<Found, Status> {
    if found.content_type != JSON {
        return Ok(found);
    }
    if is_routed(call) {
        accept::route(accept, accept::Answer::Object, &[])?;
    }
    let chosen = accept::negotiate_plain(accept, None, &Query::parse(&call.query));
    match chosen.ok_or_else(|| accept::not_acceptable(accept::Answer::Object))?.media {
        Media::Yaml => {
            let document: Value = serde_json::from_slice(&found.body).map_err(Status::internal)?;
            Ok(Found { content_type: Media::Yaml.name(), body: yaml::encode(&document).into(), ..found })
        }
        Media::Json | Media::Protobuf => Ok(found),
    }
}

/// Whether kube-apiserver's router leads to a document, which it does for its own versions; lists of groups, groups and versions of
/// custom resources are answered beside it.
fn is_routed(call: &Call) -> bool {
    let segments: Vec<&str> = call.info.path.split('/').filter(|segment| !segment.is_empty()).collect();
    match segments.as_slice() {
        ["apis", group, version] => {
            let gv = GroupVersion::new(group, version);
            call.catalog.of(&gv).any(|resource| resource.custom.is_none())
        }
        ["apis", ..] => false,
        _ => true,
    }
}

/// What others need to check tokens of ServiceAccounts. It seldom changes.
fn issuer(call: &Call, content_type: &str, document: &Value) -> Response<Body> {
    let mut response = respond::plain(call, StatusCode::OK, content_type, document.to_string().into());
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
    response
}

/// Nobody serves this path, not even to refuse it as an API would.
pub fn not_found(call: &Call) -> Response<Body> {
    respond::plain(call, StatusCode::NOT_FOUND, TEXT, Bytes::from_static(b"404 page not found\n"))
}

fn health(call: &Call, path: &str) -> Option<Response<Body>> {
    let rest = ["/healthz", "/livez", "/readyz"].iter().find_map(|root| path.strip_prefix(root))?;
    let body = match rest {
        "" if call.query.split('&').any(|pair| pair.split('=').next() == Some("verbose")) => {
            let checks: String = CHECKS.iter().map(|check| format!("[+]{check} ok\n")).collect();
            format!("{checks}{} check passed\n", path.trim_start_matches('/'))
        }
        "" => "ok".to_owned(),
        rest => CHECKS.contains(&rest.strip_prefix('/')?).then(|| "ok".to_owned())?,
    };
    Some(respond::plain(call, StatusCode::OK, TEXT, body.into()))
}

/// The version whose behaviour this server has.
pub fn version() -> Bytes {
    let version = json!({
        "major": "1", "minor": "35", "emulationMajor": "1", "emulationMinor": "35", "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "34", "gitVersion": "v1.35.8", "gitCommit": "$Format:%H$", "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "go1.27.3", "compiler": "gc", "platform": "linux/amd64",
    });
    version.to_string().into()
}

fn roots(call: &Call) -> Bytes {
    let mut paths: Vec<String> = [
        "/.well-known/openid-configuration",
        "/api",
        "/api/v1",
        "/apis",
        "/healthz",
        "/livez",
        "/metrics",
        "/openapi/v2",
        "/openapi/v3",
        "/openid/v1/jwks",
        "/readyz",
        "/version",
    ]
    .map(str::to_owned)
    .to_vec();
    for resource in call.catalog.all().filter(|resource| !resource.gv.group.is_empty()) {
        paths.push(format!("/apis/{}", resource.gv.group));
        paths.push(format!("/apis/{}", resource.gv));
    }
    paths.sort_unstable();
    paths.dedup();
    json!({ "paths": paths }).to_string().into()
}

fn metrics(call: &Call) -> Bytes {
    let (stats, spans) = (call.core.store.stats(), call.core.tracer.counts());
    let more = [
        ("apiserver_storage_objects", "gauge", "Objects that are stored.", stats.objects as u64),
        ("apiserver_storage_size_bytes", "gauge", "Memory that objects take.", stats.bytes as u64),
        (
            "kubewake_apiserver_history_bytes",
            "gauge",
            "Memory that only the history takes.",
            stats.history_bytes as u64,
        ),
        ("kubewake_apiserver_revision", "counter", "The newest resourceVersion.", stats.revision),
        ("apiserver_longrunning_requests", "gauge", "Watches that are open.", stats.watchers as u64),
        ("kubewake_apiserver_spans_exported", "counter", "Spans that were taken.", spans.exported),
        (
            "kubewake_apiserver_spans_dropped",
            "counter",
            "Spans that were lost: too many at once, or not taken.",
            spans.dropped,
        ),
        ("kubewake_apiserver_span_exports_failed", "counter", "Batches of spans that were not taken.", spans.failed),
    ];
    call.core.metrics.text(&more).into()
}
