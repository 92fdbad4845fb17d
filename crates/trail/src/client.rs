//! A tower layer for kube's client: each call becomes a span, carries its context in the request headers, and
//! is checked for whether it changed an object.
//!
//! Only calls made while a span is current are traced; watches and Lease requests never are.
//!
//! kube's client hands a request to a task of its own, where the caller's context is not current. So nothing
//! happens until the caller awaits the response, in its own task. hyper opens connections in tasks that know
//! nothing of the current span, so a pooled connection holds no span open.
//!
//! *The `sampled` flag.* The API server continues a context whose `sampled` flag is set, and its spans would be
//! orphans if ours were dropped later. So the flag is set only on a request that will probably change something
//! (a POST, a DELETE, a body that differs from the last one sent to that path), and on requests that change no
//! object (reads, Events, reviews) in a run that has already changed something. A span whose context was sent
//! with the flag is kept. Requests that are refused repeatedly get the flag less and less often.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{self, Poll},
    time::Instant,
};

use bytes::Bytes;
use futures_util::{
    future::{BoxFuture, poll_fn},
    lock::Mutex,
};
use http::{HeaderMap, Method, Request, Response, Uri, header::CONTENT_TYPE, uri::Scheme};
use http_body::Body as HttpBody;
use http_body_util::{BodyExt as _, Full, combinators::UnsyncBoxBody};
use kube::client::{Body, ClientBuilder};
use opentelemetry::{
    Context, KeyValue,
    context::FutureExt as _,
    trace::{SpanContext, SpanKind, Status, TraceContextExt as _, Tracer as _},
};
use serde::Deserialize;
use tower::{BoxError, Layer, Service};
use xxhash_rust::xxh3::xxh3_64;

use self::{
    server::ApiServerEndpoint,
    target::RequestTarget,
    write_history::ApplierId,
    write_response::{WriteBaseline, WriteResponse},
};
use crate::{
    attributes, context,
    errors::error_chain,
    run::Run,
    trail::{Trail, TrailState},
};

pub(crate) mod refusals;
mod server;
mod target;
pub(crate) mod write_history;
mod write_response;

type ResponseBodyBox = UnsyncBoxBody<Bytes, BoxError>;

impl Trail {
    /// Creates a client whose calls are traced.
    ///
    /// # Errors
    /// Where kube cannot create a client from this configuration.
    pub fn client(&self, config: kube::Config) -> kube::Result<kube::Client> {
        let server = Some(Arc::new(ApiServerEndpoint {
            uri: config.cluster_url.clone(),
            is_unreachable: AtomicBool::new(false),
        }));
        Ok(ClientBuilder::try_from(config)?.with_layer(&TraceLayer { server, ..self.layer() }).build())
    }

    /// The layer alone, for a client that is built in another way. It belongs outside of kube's own layers.
    #[must_use]
    pub fn layer(&self) -> TraceLayer {
        if let Some(shared) = self.shared() {
            shared.tracks_writes.store(true, Ordering::Relaxed);
        }
        TraceLayer { trail: self.clone(), server: None }
    }
}

/// The tower layer that traces the calls of a client.
#[derive(Clone, Debug)]
pub struct TraceLayer {
    trail: Trail,
    server: Option<Arc<ApiServerEndpoint>>,
}

impl<S> Layer<S> for TraceLayer {
    type Service = TraceService<S>;

    fn layer(&self, inner: S) -> TraceService<S> {
        let inner = Arc::new(Mutex::new(inner));
        TraceService { trail: self.trail.clone(), server: self.server.clone(), inner }
    }
}

/// The tower service that traces the calls of a client.
#[derive(Debug)]
pub struct TraceService<S> {
    trail: Trail,
    server: Option<Arc<ApiServerEndpoint>>,
    /// Called only when the response is awaited, so the future has to share it.
    inner: Arc<Mutex<S>>,
}

impl<S, B> Service<Request<Body>> for TraceService<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<ResponseBodyBox>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<ResponseBodyBox>, BoxError>>;

    fn poll_ready(&mut self, _: &mut task::Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let trail = self.trail.clone();
        let server = self.server.clone();
        let inner = Arc::clone(&self.inner);
        Box::pin(async move {
            let current = Context::current();
            let uri = server.as_ref().map(|server| &server.uri);
            let call = trail.shared().and_then(|shared| TracedCall::from_request(shared, &request, &current, uri));
            let answer = match call {
                Some(call) => call.send_traced(request, &inner).await,
                None => send_when_ready(&inner, request).await.map(|response| response.map(boxed_body)),
            };
            match server {
                Some(server) => server.log_reachability(answer),
                None => answer,
            }
        })
    }
}

struct TracedCall {
    shared: Arc<TrailState>,
    run: Option<Run>,
    context: Context,
    method: Method,
    uri: Uri,
    is_write: bool,
    /// Whether the call may change an object: a write that is neither an Event nor a review.
    changes_object: bool,
}

impl TracedCall {
    fn from_request(
        shared: &Arc<TrailState>,
        request: &Request<Body>,
        current: &Context,
        server: Option<&Uri>,
    ) -> Option<Self> {
        if !current.span().span_context().is_valid() {
            return None;
        }
        let method = request.method().clone();
        let uri = request.uri().clone();
        let target = RequestTarget::parse(uri.path());
        let parameter = |wanted: &str| uri.query().is_some_and(|query| query.split('&').any(|part| part == wanted));
        if parameter("watch=true") || parameter("watch=1") || target.as_ref().is_some_and(RequestTarget::is_lease) {
            return None;
        }
        let reads = matches!(method, Method::GET | Method::HEAD | Method::OPTIONS);
        let is_write = !reads && target.is_some() && !parameter("dryRun=All");
        let is_aside = |target: &RequestTarget<'_>| target.is_event() || target.is_review();
        let is_change = is_write && !target.as_ref().is_some_and(is_aside);
        // Spans outside of a run are always kept.
        let run = current.get::<Run>().map(Run::inside);
        let pattern = target.map_or_else(|| uri.path().to_owned(), |target| target.path_template());
        let parent = run.clone().map_or_else(|| current.clone(), |run| current.with_value(run));
        let builder = shared.tracer.span_builder(format!("{method} {pattern}")).with_kind(SpanKind::Client);
        let context = parent.with_span(shared.tracer.build_with_context(builder, &parent));
        if context.span().is_recording() {
            context.span().set_attributes(request_attributes(&method, &uri, server));
        }
        Some(Self { shared: Arc::clone(shared), run, context, method, uri, is_write, changes_object: is_change })
    }

    async fn send_traced<S, B>(
        self,
        request: Request<Body>,
        inner: &Mutex<S>,
    ) -> Result<Response<ResponseBodyBox>, BoxError>
    where
        S: Service<Request<Body>, Response = Response<B>>,
        S::Error: Into<BoxError>,
        B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        let (mut parts, body) = request.into_parts();
        if !self.context.span().is_recording() {
            context::inject(self.context.span().span_context(), &mut parts.headers);
            let sent =
                send_when_ready(inner, Request::from_parts(parts, body)).with_context(self.context.clone()).await;
            return sent.map(|response| response.map(boxed_body));
        }
        // No extra copy: kube's request bodies are in memory already.
        let body = body.collect_bytes().await?;
        let identity = self.request_hash(&body);
        context::inject(&self.sent_context(identity, &body), &mut parts.headers);
        let mut before = self.write_baseline(&body, &parts.headers);
        let sent = Instant::now();
        let request = Request::from_parts(parts, Body::from(body.clone()));
        let answer = send_when_ready(inner, request).with_context(self.context.clone()).await;
        let answer = match answer {
            Ok(response) => {
                before.sent_at = write_response::server_send_time(response.headers(), sent.elapsed());
                self.inspect_response(response, &body, before).await
            }
            Err(error) => Err(error),
        };
        self.record_result(identity, &answer);
        answer
    }

    /// Identifies a request by run, method, path and name; the rest of its body does not count.
    fn request_hash(&self, body: &[u8]) -> u64 {
        let about = self.run.as_ref().map(Run::generation_hash).unwrap_or_default();
        // The path of a creation does not name the object.
        let named = (self.method == Method::POST).then(|| serde_json::from_slice::<CreatedObject>(body).ok()).flatten();
        let name = named.and_then(|named| named.metadata.name).unwrap_or_default();
        xxh3_64(format!("{about} {} {name}", self.path()).as_bytes())
    }

    /// The context to send, without the `sampled` flag unless the span will probably be kept.
    fn sent_context(&self, identity: u64, body: &[u8]) -> SpanContext {
        let span = self.context.span().span_context().clone();
        let Some(run) = &self.run else { return span };
        let news = match self.method {
            _ if !self.changes_object || !self.shared.refusals.is_due(identity) => run.will_be_kept(),
            Method::POST | Method::DELETE => true,
            _ => !run.is_quiet() && self.shared.write_history.repeated_exchange(&self.path(), body).is_none(),
        };
        if news {
            run.note_exposed();
            return span;
        }
        let flags = span.trace_flags().with_sampled(false);
        SpanContext::new(span.trace_id(), span.span_id(), flags, false, span.trace_state().clone())
    }

    fn write_baseline(&self, body: &[u8], headers: &HeaderMap) -> WriteBaseline {
        let Some(target) = RequestTarget::parse(self.uri.path()).filter(|_| self.is_write) else {
            return WriteBaseline::default();
        };
        let group = target.group;
        let resource = target.resource;
        let namespace = target.namespace;
        let known = &self.shared.write_history;
        let applier = self.applier(headers, target.subresource);
        let newest = known.newest_revision(group, resource);
        let last = known.repeated_exchange(&self.path(), body);
        let Some(name) = target.name else {
            return WriteBaseline { newest_revision: newest, last_exchange: last, applier, ..WriteBaseline::default() };
        };
        WriteBaseline {
            newest_revision: newest,
            last_exchange: last,
            applier,
            watched_revision: known.watched_revision(group, resource, namespace, name),
            fingerprint: known.fingerprint(group, resource, namespace, name),
            owned_fields: applier.and_then(|applier| known.owned_fields(group, resource, namespace, name, applier)),
            sent_at: None,
        }
    }

    /// The field manager of a server-side apply.
    fn applier(&self, headers: &HeaderMap, subresource: Option<&str>) -> Option<ApplierId> {
        let media = headers.get(CONTENT_TYPE)?.to_str().ok()?;
        let query = self.uri.query().filter(|_| media.starts_with("application/apply-patch"))?;
        // A percent-encoded name never matches `managedFields`; the other checks for unchanged writes still
        // apply.
        let manager = query.split('&').find_map(|part| part.strip_prefix("fieldManager="))?;
        Some(ApplierId::new(manager, subresource))
    }

    fn path(&self) -> String {
        format!("{} {}", self.method, self.uri)
    }

    /// Evaluates the response to a write. Buffering its body costs nothing extra: kube reads it as a whole
    /// anyway.
    async fn inspect_response<B>(
        &self,
        response: Response<B>,
        sent: &[u8],
        before: WriteBaseline,
    ) -> Result<Response<ResponseBodyBox>, BoxError>
    where
        B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        if !self.is_write {
            return Ok(response.map(boxed_body));
        }
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.map_err(Into::into)?.to_bytes();
        if let Some(target) = RequestTarget::parse(self.uri.path()) {
            let answer = WriteResponse::parse(&bytes);
            if let Some(run) = &self.run
                && answer.is_change(&self.method, &target, parts.status, before)
            {
                run.note_write();
            }
            if parts.status.is_success() {
                let known = &self.shared.write_history;
                known.record_revision(target.group, target.resource, answer.revision());
                if let Some(meta) = answer.meta() {
                    known.record_fingerprint(target.group, target.resource, &meta);
                }
                let revision = answer.revision().and_then(|text| text.parse().ok()).unwrap_or_default();
                known.record_exchange(&self.path(), sent, answer.content_hashes(&target), revision);
            }
        }
        Ok(Response::from_parts(parts, boxed_body(Full::new(bytes))))
    }

    fn record_result(&self, identity: u64, answer: &Result<Response<ResponseBodyBox>, BoxError>) {
        let span = self.context.span();
        let failed = match answer {
            Ok(response) => {
                let status = response.status();
                span.set_attribute(KeyValue::new(attributes::STATUS_CODE, i64::from(status.as_u16())));
                if status.is_client_error() || status.is_server_error() {
                    span.set_attribute(KeyValue::new(attributes::ERROR_TYPE, status.as_str().to_owned()));
                    span.set_status(Status::error(status.canonical_reason().unwrap_or_default()));
                }
                !status.is_success()
            }
            Err(error) => {
                span.set_attribute(KeyValue::new(attributes::ERROR_TYPE, "connection"));
                span.set_status(Status::error(error_chain(&**error)));
                true
            }
        };
        match (self.is_write, failed) {
            (false, _) => {}
            (true, true) => {
                self.shared.write_history.forget_exchange(&self.path());
                self.shared.refusals.record_refusal(identity);
            }
            (true, false) => self.shared.refusals.record_success(identity),
        }
        if let Some(run) = &self.run {
            if failed {
                run.note_refused(identity);
            }
            // A write that changed nothing is dropped; a read or an Event stays if its run is kept.
            let keep = !self.changes_object || failed || run.has_changed() || run.is_exposed();
            self.shared.processor.settle(run, keep);
        }
        span.end();
    }
}

/// The fields that are read of an object to be created.
#[derive(Deserialize)]
struct CreatedObject {
    metadata: CreatedMetadata,
}

#[derive(Deserialize)]
struct CreatedMetadata {
    name: Option<String>,
}

/// Calls the inner service once it is ready.
async fn send_when_ready<S, B>(inner: &Mutex<S>, request: Request<Body>) -> Result<Response<B>, BoxError>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Error: Into<BoxError>,
{
    let response = {
        let mut inner = inner.lock().await;
        poll_fn(|task| inner.poll_ready(task)).await.map_err(Into::into)?;
        inner.call(request)
    };
    response.await.map_err(Into::into)
}

fn boxed_body<B>(body: B) -> ResponseBodyBox
where
    B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    body.map_err(Into::into).boxed_unsync()
}

fn request_attributes(method: &Method, uri: &Uri, server: Option<&Uri>) -> Vec<KeyValue> {
    let mut attributes = vec![
        KeyValue::new(attributes::METHOD, method.as_str().to_owned()),
        KeyValue::new(attributes::URL_PATH, uri.path().to_owned()),
    ];
    let server = server.unwrap_or(uri);
    attributes.extend(server.host().map(|host| KeyValue::new(attributes::SERVER_ADDRESS, host.to_owned())));
    let default = if server.scheme() == Some(&Scheme::HTTP) { 80 } else { 443 };
    let port = server.host().map(|_| server.port_u16().unwrap_or(default));
    attributes.extend(port.map(|port| KeyValue::new(attributes::SERVER_PORT, i64::from(port))));
    attributes
}
