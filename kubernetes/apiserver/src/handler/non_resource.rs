//! Non-resource paths: health, version, metrics, discovery and OpenAPI.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use kubewake_runtime::prometheus::MetricKind;
use serde_json::{Value, json};

use super::{call::ApiRequest, respond};
use crate::{
    api::{GroupVersion, StatusError},
    codec::{MediaType, accept, protobuf, query::QueryParameters, yaml},
    discovery::{self, DiscoveryDocument},
    http::Body,
    openapi,
    trace::TraceSpan,
};

const TEXT_MEDIA_TYPE: &str = "text/plain; charset=utf-8";
const JSON_MEDIA_TYPE: &str = "application/json";
const METRICS_MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";
/// The health checks of every server; a server that answers is ready.
const HEALTH_CHECKS: [&str; 3] = ["ping", "log", "etcd"];

pub fn handle_non_resource(call: &ApiRequest, span: &TraceSpan) -> Response<Body> {
    let path = call.info.path.trim_end_matches('/');
    if call.info.verb != "get" {
        return respond::refused(call, &StatusError::method_not_allowed(), span);
    }
    if let Some(found) = discovery_or_openapi(call, span) {
        return found;
    }
    match path {
        "" => respond::plain_response(call, StatusCode::OK, JSON_MEDIA_TYPE, root_paths(call)),
        "/version" => respond::plain_response(call, StatusCode::OK, JSON_MEDIA_TYPE, version()),
        "/metrics" => respond::plain_response(call, StatusCode::OK, METRICS_MEDIA_TYPE, metrics(call)),
        "/.well-known/openid-configuration" => {
            issuer(call, JSON_MEDIA_TYPE, &call.core.access.tokens.openid_configuration())
        }
        "/openid/v1/jwks" => issuer(call, "application/jwk-set+json", &call.core.access.tokens.jwks()),
        _ => health(call, path).unwrap_or_else(|| not_found(call)),
    }
}

/// Discovery and OpenAPI documents of the current catalog.
fn discovery_or_openapi(call: &ApiRequest, span: &TraceSpan) -> Option<Response<Body>> {
    let header = |name| Some(call.header(name)).filter(|text| !text.is_empty());
    let path = call.info.path.as_str();
    let accept = header(header::ACCEPT);
    let discovered =
        discovery::lookup_document(&call.catalog, path, accept).map(|found| negotiate_discovery(call, found, accept));
    let discovered = match discovered {
        Some(Err(status)) => return Some(respond::router_error_response(call, &status, span, None)),
        Some(Ok(found)) => Some(found),
        None => None,
    };
    let found = discovered
        .inspect(|found| respond::record_discovery_span(call, span, found.body.len()))
        .or_else(|| openapi::lookup_document(&call.catalog, path, &call.query, accept))?
        .revalidated(header(header::IF_NONE_MATCH));
    let status = StatusCode::from_u16(found.status).unwrap_or(StatusCode::OK);
    let mut response = respond::plain_response(call, status, found.content_type, found.body);
    for (name, value) in found.headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(name, value);
        }
    }
    Some(response)
}

/// A discovery document in an accepted media type.
fn negotiate_discovery(
    call: &ApiRequest,
    found: DiscoveryDocument,
    accept: Option<&str>,
) -> Result<DiscoveryDocument, StatusError> {
    if found.content_type != JSON_MEDIA_TYPE {
        return Ok(found);
    }
    if is_routed(call) {
        accept::check_route_accepts(accept, accept::ResponseKind::Object, &[])?;
    }
    let chosen = accept::negotiate_plain(accept, None, &QueryParameters::parse(&call.query));
    match chosen.ok_or_else(|| accept::not_acceptable(accept::ResponseKind::Object))?.media {
        MediaType::Yaml => {
            let document: Value = serde_json::from_slice(&found.body).map_err(StatusError::internal)?;
            Ok(DiscoveryDocument {
                content_type: MediaType::Yaml.name(),
                body: yaml::encode(&document).into(),
                ..found
            })
        }
        MediaType::Protobuf => {
            let document: Value = serde_json::from_slice(&found.body).map_err(StatusError::internal)?;
            let encoded = protobuf::encode(&document);
            let body = encoded.ok_or_else(|| accept::not_acceptable(accept::ResponseKind::Object))?;
            Ok(DiscoveryDocument { content_type: MediaType::Protobuf.name(), body: body.into(), ..found })
        }
        MediaType::Json => Ok(found),
    }
}

/// Whether kube-apiserver's router serves a document, which it does for its own versions; lists of groups, and
/// the groups and versions of custom resources, are served beside it.
fn is_routed(call: &ApiRequest) -> bool {
    let segments: Vec<&str> = call.info.path.split('/').filter(|segment| !segment.is_empty()).collect();
    match segments.as_slice() {
        ["apis", group, version] => {
            let gv = GroupVersion::new(group, version);
            call.catalog.resources_of_version(&gv).any(|resource| resource.custom.is_none())
        }
        ["apis", ..] => false,
        _ => true,
    }
}

/// Documents for the verification of ServiceAccount tokens. They seldom change.
fn issuer(call: &ApiRequest, content_type: &str, document: &Value) -> Response<Body> {
    let mut response = respond::plain_response(call, StatusCode::OK, content_type, document.to_string().into());
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
    response
}

/// The response to a path outside of the API, which is plain text.
pub fn not_found(call: &ApiRequest) -> Response<Body> {
    respond::plain_response(call, StatusCode::NOT_FOUND, TEXT_MEDIA_TYPE, Bytes::from_static(b"404 page not found\n"))
}

fn health(call: &ApiRequest, path: &str) -> Option<Response<Body>> {
    let rest = ["/healthz", "/livez", "/readyz"].iter().find_map(|root| path.strip_prefix(root))?;
    let body = match rest {
        "" if call.query.split('&').any(|pair| pair.split('=').next() == Some("verbose")) => {
            let checks: String = HEALTH_CHECKS.iter().map(|check| format!("[+]{check} ok\n")).collect();
            format!("{checks}{} check passed\n", path.trim_start_matches('/'))
        }
        "" => "ok".to_owned(),
        rest => HEALTH_CHECKS.contains(&rest.strip_prefix('/')?).then(|| "ok".to_owned())?,
    };
    Some(respond::plain_response(call, StatusCode::OK, TEXT_MEDIA_TYPE, body.into()))
}

/// The Kubernetes version that this server emulates.
pub fn version() -> Bytes {
    let version = json!({
        "major": "1", "minor": "35", "emulationMajor": "1", "emulationMinor": "35", "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "34", "gitVersion": "v1.35.8", "gitCommit": "$Format:%H$", "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "go1.27.3", "compiler": "gc", "platform": "linux/amd64",
    });
    version.to_string().into()
}

fn root_paths(call: &ApiRequest) -> Bytes {
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

fn metrics(call: &ApiRequest) -> Bytes {
    let stats = call.core.store.stats();
    let spans = call.core.tracer.counts();
    let more = [
        ("apiserver_storage_objects", MetricKind::Gauge, "Stored objects.", stats.objects as u64),
        ("apiserver_storage_size_bytes", MetricKind::Gauge, "Memory that stored objects use.", stats.bytes as u64),
        (
            "kubewake_apiserver_history_bytes",
            MetricKind::Gauge,
            "Memory that only past revisions of objects use.",
            stats.history_bytes as u64,
        ),
        ("kubewake_apiserver_revision", MetricKind::Counter, "The newest resourceVersion.", stats.revision),
        ("apiserver_longrunning_requests", MetricKind::Gauge, "Open watches.", stats.watchers as u64),
        (
            "kubewake_apiserver_spans_exported",
            MetricKind::Counter,
            "Spans that the collector accepted.",
            spans.exported,
        ),
        (
            "kubewake_apiserver_spans_dropped",
            MetricKind::Counter,
            "Spans dropped because the queue was full or the export failed.",
            spans.dropped,
        ),
        (
            "kubewake_apiserver_span_exports_failed",
            MetricKind::Counter,
            "Batches of spans whose export failed.",
            spans.failed,
        ),
    ];
    call.core.metrics.text(&more).into()
}
