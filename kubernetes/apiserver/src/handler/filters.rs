//! The filters that a request passes: authentication, tracing, impersonation and authorization.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, header};
use hyper::body::Incoming;
use tokio::time::timeout;

use super::{
    call::{ApiRequest, ResourceRequest, WarningRecorder},
    dispatch, heavy_work, in_flight, non_resource, request_body, respond, spans,
};
use crate::{
    api::{StatusError, go_format, identity},
    auth::{
        AuthorizationAttributes, RequestCredentials, UserInfo, attributes::selected_name, authenticate::RedactedText,
        impersonation,
    },
    codec::query::QueryParameters,
    http::{Body, ClientPeer, HttpService, RequestInfo},
    server_state::ServerState,
    trace::{InstrumentationScope, SpanContext, SpanOrigin, SpanStart, TraceSpan, TraceSpanKind, outgoing},
};

/// Groups whose members are trusted with trace context by default: their trace is continued.
pub const DEFAULT_TRUSTED_GROUPS: [&str; 2] = ["system:masters", "system:monitoring"];
/// The longest audit id that a caller may set, as in kube-apiserver.
const MAX_AUDIT_ID: usize = 64;

#[derive(Debug)]
pub struct ApiService {
    core: Arc<ServerState>,
}

impl ApiService {
    pub fn new(core: Arc<ServerState>) -> Arc<Self> {
        Arc::new(Self { core })
    }
}

impl HttpService for ApiService {
    async fn call(self: Arc<Self>, request: Request<Incoming>, peer: Arc<ClientPeer>) -> Response<Body> {
        let started = Instant::now();
        let in_flight = self.core.metrics.request();
        let response = serve(&self.core, request, peer).await;
        in_flight.finish(started.elapsed(), response.status());
        response
    }
}

async fn serve(core: &Arc<ServerState>, request: Request<Incoming>, peer: Arc<ClientPeer>) -> Response<Body> {
    let received = SystemTime::now();
    let (head, body) = request.into_parts();
    let mut call = new_call(core, head, peer);
    let limit = match time_limit(&call) {
        Ok(limit) => limit,
        Err(status) => return respond::refused(&call, &status, &TraceSpan::default()),
    };
    let context = if core.tracer.is_off() { None } else { SpanContext::extract(&call.headers) };
    let first = authentication_span(&call, context.as_ref(), received);
    let user = outgoing::run_in_span(&first, authenticate(&call)).await;
    let user = match user {
        Ok(user) => user,
        // The caller is not authenticated, so its trace context is not trusted.
        Err(status) => return respond::refused(&call, &status, &TraceSpan::default()),
    };
    let span = server_span(&call, context.as_ref(), &user, &first);
    call.user = user;
    let response = match limit {
        Some(limit) => timeout(limit, run_filters(&mut call, body, &span)).await,
        None => Ok(run_filters(&mut call, body, &span).await),
    };
    let response = response.unwrap_or_else(|_| respond::refused(&call, &StatusError::timeout(), &span));
    end_server_span(&span, &response);
    drop(first);
    response
}

fn new_call(core: &Arc<ServerState>, head: http::request::Parts, peer: Arc<ClientPeer>) -> ApiRequest {
    let query = head.uri.query().unwrap_or_default().to_owned();
    ApiRequest {
        core: Arc::clone(core),
        catalog: core.registry.catalog(),
        info: RequestInfo::new(&head.method, head.uri.path(), &query),
        user: UserInfo::anonymous(),
        audit_id: audit_id(&head.headers),
        protocol: if head.version == http::Version::HTTP_2 { "HTTP/2.0" } else { "HTTP/1.1" },
        method: head.method,
        query,
        headers: head.headers,
        peer,
        warnings: WarningRecorder::default(),
    }
}

/// The time limit of a request: the caller's `timeout`, and a minute at most. Long-running requests ignore it.
fn time_limit(call: &ApiRequest) -> Result<Option<Duration>, StatusError> {
    if in_flight::is_long_running(call) {
        return Ok(None);
    }
    let query = QueryParameters::parse(&call.query);
    let given = query.get("timeout").filter(|text| !text.is_empty()).map(go_format::parse_duration).transpose();
    let given = given
        .map_err(|why| StatusError::bad_request(format!("invalid timeout specified in the request URL - {why}")))?;
    let limit = given.flatten().filter(|given| *given < in_flight::REQUEST_TIMEOUT);
    Ok(Some(limit.unwrap_or(in_flight::REQUEST_TIMEOUT)))
}

fn audit_id(headers: &HeaderMap) -> String {
    let given = headers.get("audit-id").and_then(|id| id.to_str().ok());
    given.filter(|id| !id.is_empty() && id.len() <= MAX_AUDIT_ID).map_or_else(identity::uid, str::to_owned)
}

async fn authenticate(call: &ApiRequest) -> Result<UserInfo, StatusError> {
    let authorization = Some(call.header(header::AUTHORIZATION)).filter(|text| !text.is_empty()).map(RedactedText);
    let credentials = RequestCredentials { certificate: call.peer.user.as_ref(), authorization, path: &call.info.path };
    call.core.access.authentication.authenticate_request(&credentials).await
}

/// The span of authentication, which starts before the caller can be trusted: a root. Without a pipeline the
/// caller's context is passed on.
fn authentication_span(call: &ApiRequest, context: Option<&SpanContext>, received: SystemTime) -> TraceSpan {
    let tracer = &call.core.tracer;
    if tracer.is_off() || (context.is_some() && tracer.joins_authentication()) {
        return TraceSpan::default();
    }
    let origin = context.filter(|_| !tracer.is_on()).map_or(SpanOrigin::Root, SpanOrigin::Parent);
    let begin = SpanStart {
        scope: InstrumentationScope::Filter,
        kind: TraceSpanKind::Internal,
        name: &"authentication",
        start: received,
    };
    tracer.start(&origin, begin).with_baggage(&call.headers)
}

/// The server span of the request. Without a caller's trace it is part of the trace that authentication
/// started; with one, that trace is over.
fn server_span(call: &ApiRequest, context: Option<&SpanContext>, user: &UserInfo, first: &TraceSpan) -> TraceSpan {
    let tracer = &call.core.tracer;
    if tracer.is_off() {
        return TraceSpan::default();
    }
    let scope = InstrumentationScope::Http;
    let kind = TraceSpanKind::Server;
    let name = SpanName(call);
    let span = match context {
        None if first.is_recording() => first.child(scope, kind, &name.to_string()),
        None => first.clone(),
        Some(context) => {
            first.end();
            let trusted = tracer.trusts(|group| user.is_in(group));
            let origin = if trusted { SpanOrigin::Parent(context) } else { SpanOrigin::Link(context) };
            let begin = SpanStart { scope, kind, name: &name, start: SystemTime::now() };
            tracer.start(&origin, begin).with_baggage(&call.headers)
        }
    };
    if span.is_recording() {
        describe(call, &span);
    }
    span
}

/// `GET /api/v1/namespaces/{:namespace}/pods/{:name}`; the method alone for requests that are not about
/// objects.
struct SpanName<'a>(&'a ApiRequest);

impl fmt::Display for SpanName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(call) = self;
        match &call.info.resource {
            Some(path) if path.name.is_empty() && !call.object_name().is_empty() => {
                write!(f, "{} {}/{{:name}}", call.method, path.pattern())
            }
            Some(path) => write!(f, "{} {}", call.method, path.pattern()),
            None => write!(f, "{}", call.method),
        }
    }
}

fn describe(call: &ApiRequest, span: &TraceSpan) {
    let peer = call.peer.address;
    let path = call.info.path.as_str();
    let address = peer.ip().to_string();
    let target = if call.query.is_empty() { path.to_owned() } else { format!("{path}?{}", call.query) };
    for (key, value) in [
        ("http.request.method", call.method.as_str()),
        ("url.scheme", "https"),
        ("url.path", path),
        ("network.peer.address", &address),
        ("client.address", &address),
        ("user_agent.original", call.header(header::USER_AGENT)),
        ("network.protocol.version", if call.protocol == "HTTP/2.0" { "2" } else { "1.1" }),
        ("http.target", &target),
        ("audit-id", &call.audit_id),
    ] {
        span.set_attribute(key, value);
    }
    let host = call.header(header::HOST);
    let (name, port) = host.rsplit_once(':').unwrap_or((host, ""));
    span.set_attribute("server.address", if name.is_empty() { "127.0.0.1" } else { name });
    span.set_attribute("server.port", port.parse::<i64>().unwrap_or_else(|_| i64::from(call.core.port())));
    span.set_attribute("network.peer.port", i64::from(peer.port()));
}

/// The filters after authentication.
async fn run_filters(call: &mut ApiRequest, body: Incoming, server: &TraceSpan) -> Response<Body> {
    let audit = server.child(InstrumentationScope::Filter, TraceSpanKind::Internal, "audit");
    let impersonation = audit.child(InstrumentationScope::Filter, TraceSpanKind::Internal, "impersonation");
    let user = match outgoing::run_in_span(&impersonation, impersonate(call)).await {
        Ok(user) => user,
        Err(status) => return respond::refused(call, &status, &impersonation),
    };
    call.user = user;
    let fairness = impersonation.child(InstrumentationScope::Filter, TraceSpanKind::Internal, "priorityandfairness");
    let Some(place) = call.core.in_flight.admit(call) else { return respond::too_many_requests_response(call) };
    let authorization = fairness.child(InstrumentationScope::Filter, TraceSpanKind::Internal, "authorization");
    if let Err(status) = outgoing::run_in_span(&authorization, authorize(call)).await {
        return respond::refused(call, &status, &authorization);
    }
    handle(call, body, &authorization, server).await.map(|body| body.holding_permit(place))
}

async fn impersonate(call: &ApiRequest) -> Result<UserInfo, StatusError> {
    let user = impersonation::impersonate(&call.user, &call.headers, &call.core.access.authorizers).await?;
    Ok(user.unwrap_or_else(|| call.user.clone()))
}

async fn authorize(call: &ApiRequest) -> Result<(), StatusError> {
    let verb = call.info.verb;
    let query = QueryParameters::parse(&call.query);
    // A list or watch of one object by name is authorized as that object. For all other verbs the selector is
    // ignored: a `create` that is limited by resourceNames stays limited.
    let selects = matches!(verb, "list" | "watch");
    let selected = || query.get("fieldSelector").filter(|_| selects).and_then(selected_name).unwrap_or_default();
    let attributes = match &call.info.resource {
        Some(path) => AuthorizationAttributes {
            version: &path.gv.version,
            ..AuthorizationAttributes::for_resource(&call.user, verb, &path.gv.group, &path.resource)
                .namespace(&path.namespace)
                .name(if path.name.is_empty() { selected() } else { &path.name })
                .with_subresource(&path.subresource)
        },
        None => AuthorizationAttributes::for_path(&call.user, verb, &call.info.path),
    };
    call.core.access.authorizers.check(&attributes).await
}

async fn handle(call: &ApiRequest, body: Incoming, span: &TraceSpan, server: &TraceSpan) -> Response<Body> {
    let body = match read(call, body).await {
        Ok(body) => body,
        Err(status) => return respond::refused(call, &status, span),
    };
    if server.is_recording() && !body.is_empty() {
        server.set_attribute("http.request.body.size", body.len());
    }
    let Some(path) = &call.info.resource else { return non_resource::handle_non_resource(call, span) };
    if dispatch::is_unknown_path(call, path) {
        return non_resource::not_found(call);
    }
    let resource = match dispatch::find_resource(call, path) {
        Ok(resource) => resource,
        Err(status) => {
            let gv = dispatch::error_group_version(call, path);
            return respond::router_error_response(call, &status, span, gv);
        }
    };
    let stored = dispatch::storage_resource(call, &resource);
    let view = stored.as_ref().map(|_| &resource);
    let on = ResourceRequest { call, resource: stored.as_ref().unwrap_or(&resource), view, path, span };
    if let Err(status) = dispatch::check_list_request(on) {
        return respond::handler_error_response(on, &status, span);
    }
    let span = spans::start_handler_span(call, &resource, path, span);
    let on = ResourceRequest { span: &span, ..on };
    let answer = async { respond::respond(on, dispatch::handle_resource_request(on, &body).await?).await };
    let answer = if heavy_work::is_heavy_write(on, &body) { call.core.heavy.run(answer).await } else { answer.await };
    answer.unwrap_or_else(|status| respond::handler_error_response(on, &status, &span))
}

async fn read(call: &ApiRequest, body: Incoming) -> Result<Bytes, StatusError> {
    match call.info.verb {
        "get" | "list" | "watch" => Ok(Bytes::new()),
        _ => request_body::read_body(body, call.core.body_limit).await,
    }
}

fn end_server_span(span: &TraceSpan, response: &Response<Body>) {
    if !span.is_recording() {
        return;
    }
    let status = response.status();
    span.set_attribute("http.response.status_code", i64::from(status.as_u16()));
    if let Some(length) = response.body().len().filter(|length| *length > 0) {
        span.set_attribute("http.response.body.size", i64::try_from(length).unwrap_or(i64::MAX));
    }
    if status.is_server_error() {
        span.set_error("");
    }
}
