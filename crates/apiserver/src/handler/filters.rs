//! The way of a request through the filters: who asks, in which trace, as whom, and whether they may.

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
    body,
    call::{Call, On, Warnings},
    dispatch, heavy, in_flight, other, respond, spans,
};
use crate::{
    api::{Status, go, identity},
    auth::{Attributes, Credentials, User, attributes::selected_name, authenticate::Secret, impersonation},
    codec::query::Query,
    core::Core,
    http::{Body, Peer, RequestInfo, Service},
    trace::{Begin, Context, Kind, Origin, Scope, Span, outgoing},
};

/// Callers in these groups are believed: their trace goes on here.
pub const TRUSTED: [&str; 2] = ["system:masters", "system:monitoring"];
/// kube-apiserver takes no longer ids from callers.
const MAX_AUDIT_ID: usize = 64;

/// Takes requests from connections.
#[derive(Debug)]
pub struct Front {
    core: Arc<Core>,
}

impl Front {
    /// The front of a server.
    pub fn new(core: Arc<Core>) -> Arc<Self> {
        Arc::new(Self { core })
    }
}

impl Service for Front {
    async fn call(self: Arc<Self>, request: Request<Incoming>, peer: Arc<Peer>) -> Response<Body> {
        let started = Instant::now();
        let in_flight = self.core.metrics.request();
        let response = serve(&self.core, request, peer).await;
        in_flight.done(started.elapsed(), response.status());
        response
    }
}

async fn serve(core: &Arc<Core>, request: Request<Incoming>, peer: Arc<Peer>) -> Response<Body> {
    let received = SystemTime::now();
    let (head, body) = request.into_parts();
    let mut call = new_call(core, head, peer);
    let limit = match time_limit(&call) {
        Ok(limit) => limit,
        Err(status) => return respond::refused(&call, &status, &Span::default()),
    };
    let context = if core.tracer.is_off() { None } else { Context::extract(&call.headers) };
    let first = authentication_span(&call, context.as_ref(), received);
    let user = outgoing::within(&first, authenticate(&call)).await;
    let user = match user {
        Ok(user) => user,
        // Whose trace it is cannot be known of somebody whom nobody knows.
        Err(status) => return respond::refused(&call, &status, &Span::default()),
    };
    let span = server_span(&call, context.as_ref(), &user, &first);
    call.user = user;
    let response = match limit {
        Some(limit) => timeout(limit, filtered(&mut call, body, &span)).await,
        None => Ok(filtered(&mut call, body, &span).await),
    };
    let response = response.unwrap_or_else(|_| respond::refused(&call, &Status::timeout(), &span));
    finish(&span, &response);
    drop(first);
    response
}

fn new_call(core: &Arc<Core>, head: http::request::Parts, peer: Arc<Peer>) -> Call {
    let query = head.uri.query().unwrap_or_default().to_owned();
    Call {
        core: Arc::clone(core),
        catalog: core.registry.catalog(),
        info: RequestInfo::new(&head.method, head.uri.path(), &query),
        user: User::anonymous(),
        audit_id: audit_id(&head.headers),
        protocol: if head.version == http::Version::HTTP_2 { "HTTP/2.0" } else { "HTTP/1.1" },
        method: head.method,
        query,
        headers: head.headers,
        peer,
        warnings: Warnings::default(),
    }
}

/// How long a request may take: as long as its caller is ready to wait, and a minute at most. Watches and the like take no notice of it.
fn time_limit(call: &Call) -> Result<Option<Duration>, Status> {
    if in_flight::is_long_running(call) {
        return Ok(None);
    }
    let query = Query::parse(&call.query);
    let given = query.get("timeout").filter(|text| !text.is_empty()).map(go::parse_duration).transpose();
    let given =
        given.map_err(|why| Status::bad_request(format!("invalid timeout specified in the request URL - {why}")))?;
    let limit = given.flatten().filter(|given| *given < in_flight::REQUEST_TIMEOUT);
    Ok(Some(limit.unwrap_or(in_flight::REQUEST_TIMEOUT)))
}

fn audit_id(headers: &HeaderMap) -> String {
    let given = headers.get("audit-id").and_then(|id| id.to_str().ok());
    given.filter(|id| !id.is_empty() && id.len() <= MAX_AUDIT_ID).map_or_else(identity::uid, str::to_owned)
}

async fn authenticate(call: &Call) -> Result<User, Status> {
    let authorization = Some(call.header(header::AUTHORIZATION)).filter(|text| !text.is_empty()).map(Secret);
    let credentials = Credentials { certificate: call.peer.user.as_ref(), authorization, path: &call.info.path };
    call.core.access.authentication.user(&credentials).await
}

/// The span of authentication, which begins before the caller's trace can be believed: a root. Where nothing is recorded, what the
/// caller sent is passed on.
fn authentication_span(call: &Call, context: Option<&Context>, received: SystemTime) -> Span {
    let tracer = &call.core.tracer;
    if tracer.is_off() || (context.is_some() && tracer.joins_authentication()) {
        return Span::default();
    }
    let origin = context.filter(|_| !tracer.is_on()).map_or(Origin::Root, Origin::Parent);
    let begin = Begin { scope: Scope::Filter, kind: Kind::Internal, name: &"authentication", start: received };
    tracer.start(&origin, begin).with_baggage(&call.headers)
}

/// The span of the request. Without a caller's trace it is part of the one that authentication began; with one, that span is over.
fn server_span(call: &Call, context: Option<&Context>, user: &User, first: &Span) -> Span {
    let tracer = &call.core.tracer;
    if tracer.is_off() {
        return Span::default();
    }
    let (scope, kind, name) = (Scope::Http, Kind::Server, SpanName(call));
    let span = match context {
        None if first.is_recording() => first.child(scope, kind, &name.to_string()),
        None => first.clone(),
        Some(context) => {
            first.end();
            let trusted = tracer.trusts(|group| user.is_in(group));
            let origin = if trusted { Origin::Parent(context) } else { Origin::Link(context) };
            let begin = Begin { scope, kind, name: &name, start: SystemTime::now() };
            tracer.start(&origin, begin).with_baggage(&call.headers)
        }
    };
    if span.is_recording() {
        describe(call, &span);
    }
    span
}

/// `GET /api/v1/namespaces/{:namespace}/pods/{:name}`; without the path where it is not about objects.
struct SpanName<'a>(&'a Call);

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

fn describe(call: &Call, span: &Span) {
    let (peer, path) = (call.peer.address, call.info.path.as_str());
    let address = peer.ip().to_string();
    let target = match call.query.is_empty() {
        true => path.to_owned(),
        false => format!("{path}?{}", call.query),
    };
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
        span.set(key, value);
    }
    let host = call.header(header::HOST);
    let (name, port) = host.rsplit_once(':').unwrap_or((host, ""));
    span.set("server.address", if name.is_empty() { "127.0.0.1" } else { name });
    span.set("server.port", port.parse::<i64>().unwrap_or_else(|_| i64::from(call.core.port())));
    span.set("network.peer.port", i64::from(peer.port()));
}

/// What is between knowing who asks and answering them.
async fn filtered(call: &mut Call, body: Incoming, server: &Span) -> Response<Body> {
    let audit = server.child(Scope::Filter, Kind::Internal, "audit");
    let impersonation = audit.child(Scope::Filter, Kind::Internal, "impersonation");
    let user = match outgoing::within(&impersonation, impersonate(call)).await {
        Ok(user) => user,
        Err(status) => return respond::refused(call, &status, &impersonation),
    };
    call.user = user;
    let fairness = impersonation.child(Scope::Filter, Kind::Internal, "priorityandfairness");
    let Some(place) = call.core.in_flight.admit(call) else { return respond::too_many(call) };
    let authorization = fairness.child(Scope::Filter, Kind::Internal, "authorization");
    if let Err(status) = outgoing::within(&authorization, authorize(call)).await {
        return respond::refused(call, &status, &authorization);
    }
    handle(call, body, &authorization, server).await.map(|body| body.held_by(place))
}

async fn impersonate(call: &Call) -> Result<User, Status> {
    let user = impersonation::user(&call.user, &call.headers, &call.core.access.authorizers).await?;
    Ok(user.unwrap_or_else(|| call.user.clone()))
}

async fn authorize(call: &Call) -> Result<(), Status> {
    let verb = call.info.verb;
    let query = Query::parse(&call.query);
    // A list or watch of the one object of a name is about that object. For all other verbs the selector is no part of what is
    // asked for: a `create` that is limited by resourceNames stays so.
    let selects = matches!(verb, "list" | "watch");
    let selected = || query.get("fieldSelector").filter(|_| selects).and_then(selected_name).unwrap_or_default();
    let attributes = match &call.info.resource {
        Some(path) => Attributes {
            version: &path.gv.version,
            ..Attributes::resource(&call.user, verb, &path.gv.group, &path.resource)
                .namespace(&path.namespace)
                .name(if path.name.is_empty() { selected() } else { &path.name })
                .subresource(&path.subresource)
        },
        None => Attributes::path(&call.user, verb, &call.info.path),
    };
    call.core.access.authorizers.check(&attributes).await
}

async fn handle(call: &Call, body: Incoming, span: &Span, server: &Span) -> Response<Body> {
    let body = match read(call, body).await {
        Ok(body) => body,
        Err(status) => return respond::refused(call, &status, span),
    };
    if server.is_recording() && !body.is_empty() {
        server.set("http.request.body.size", body.len());
    }
    let Some(path) = &call.info.resource else { return other::answer(call, span) };
    if dispatch::is_no_page(call, path) {
        return other::not_found(call);
    }
    let resource = match dispatch::prepare(call, path) {
        Ok(resource) => resource,
        Err(status) => {
            let gv = dispatch::refusing_version(call, path);
            return respond::refused_by_router(call, &status, span, gv);
        }
    };
    let stored = dispatch::stored(call, &resource);
    let view = stored.as_ref().map(|_| &resource);
    let on = On { call, resource: stored.as_ref().unwrap_or(&resource), view, path, span };
    if let Err(status) = dispatch::check(on) {
        return respond::refused_by_handler(on, &status, span);
    }
    let span = spans::handler(call, &resource, path, span);
    let on = On { span: &span, ..on };
    let answer = async { respond::answered(on, dispatch::answer(on, &body).await?).await };
    let answer = match heavy::is_heavy_write(on, &body) {
        true => call.core.heavy.run(answer).await,
        false => answer.await,
    };
    answer.unwrap_or_else(|status| respond::refused_by_handler(on, &status, &span))
}

async fn read(call: &Call, body: Incoming) -> Result<Bytes, Status> {
    match call.info.verb {
        "get" | "list" | "watch" => Ok(Bytes::new()),
        _ => body::read(body, call.core.body_limit).await,
    }
}

fn finish(span: &Span, response: &Response<Body>) {
    if !span.is_recording() {
        return;
    }
    let status = response.status();
    span.set("http.response.status_code", i64::from(status.as_u16()));
    if let Some(length) = response.body().len().filter(|length| *length > 0) {
        span.set("http.response.body.size", i64::try_from(length).unwrap_or(i64::MAX));
    }
    if status.is_server_error() {
        span.fail("");
    }
}
