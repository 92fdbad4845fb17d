//! A layer for kube's client: a span for each call, with the context in its headers, and a note of what the call changed.
//!
//! Only calls made while a span is current are touched; watches and leases never are.
//!
//! kube's client hands a request to a task of its own, where the caller's context is not current. So nothing happens before the caller awaits
//! the answer, which it does in its own task. Connections are made by hyper in tasks that know nothing of us: no span stays open in a pool.
//!
//! *Who else records.* The API server continues a context whose `sampled` flag is set, and its spans would be orphans if ours were dropped later. So the flag is
//! set only on a request that will probably change something (a POST, a DELETE, a body that was not the last one sent to that path), and on what changes no object (reads, Events, reviews) in a run that
//! has changed something. What was sent with it is kept. A request that is refused again and again has it ever more seldom ([`refusals`]).

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
    answer::{Answer, Before},
    known::Applier,
    server::Server,
    target::Target,
};
use crate::{
    attributes, context,
    errors::in_words,
    run::Run,
    trail::{Shared, Trail},
};

mod answer;
pub(crate) mod known;
pub(crate) mod refusals;
mod server;
mod target;

/// The body of an answer.
type Answered = UnsyncBoxBody<Bytes, BoxError>;

impl Trail {
    /// A client whose calls are traced.
    ///
    /// # Errors
    /// Where kube cannot make a client from this configuration.
    pub fn client(&self, config: kube::Config) -> kube::Result<kube::Client> {
        let server = Some(Arc::new(Server { uri: config.cluster_url.clone(), is_away: AtomicBool::new(false) }));
        Ok(ClientBuilder::try_from(config)?.with_layer(&TraceLayer { server, ..self.layer() }).build())
    }

    /// The layer alone, for a client that is made in another way. It belongs outside of kube's own layers.
    #[must_use]
    pub fn layer(&self) -> TraceLayer {
        if let Some(shared) = self.shared() {
            shared.tracks_writes.store(true, Ordering::Relaxed);
        }
        TraceLayer { trail: self.clone(), server: None }
    }
}

/// Traces the calls of a client.
#[derive(Clone, Debug)]
pub struct TraceLayer {
    trail: Trail,
    server: Option<Arc<Server>>,
}

impl<S> Layer<S> for TraceLayer {
    type Service = TraceService<S>;

    fn layer(&self, inner: S) -> TraceService<S> {
        let inner = Arc::new(Mutex::new(inner));
        TraceService { trail: self.trail.clone(), server: self.server.clone(), inner }
    }
}

/// A client whose calls are traced.
#[derive(Debug)]
pub struct TraceService<S> {
    trail: Trail,
    server: Option<Arc<Server>>,
    /// Called when the answer is awaited, so it must be shared.
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
    type Response = Response<Answered>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Answered>, BoxError>>;

    fn poll_ready(&mut self, _: &mut task::Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (trail, server, inner) = (self.trail.clone(), self.server.clone(), Arc::clone(&self.inner));
        Box::pin(async move {
            let current = Context::current();
            let uri = server.as_ref().map(|server| &server.uri);
            let call = trail.shared().and_then(|shared| Call::of(shared, &request, &current, uri));
            let answer = match call {
                Some(call) => call.traced(request, &inner).await,
                None => send(&inner, request).await.map(|response| response.map(whole)),
            };
            match server {
                Some(server) => server.told(answer),
                None => answer,
            }
        })
    }
}

/// A call that is traced.
struct Call {
    shared: Arc<Shared>,
    run: Option<Run>,
    context: Context,
    method: Method,
    uri: Uri,
    is_write: bool,
    /// It is to change an object, and is no Event and no question.
    is_change: bool,
}

impl Call {
    fn of(shared: &Arc<Shared>, request: &Request<Body>, current: &Context, server: Option<&Uri>) -> Option<Self> {
        if !current.span().span_context().is_valid() {
            return None;
        }
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let target = Target::parse(uri.path());
        let parameter = |wanted: &str| uri.query().is_some_and(|query| query.split('&').any(|part| part == wanted));
        if parameter("watch=true") || parameter("watch=1") || target.as_ref().is_some_and(Target::is_lease) {
            return None;
        }
        let reads = matches!(method, Method::GET | Method::HEAD | Method::OPTIONS);
        let is_write = !reads && target.is_some() && !parameter("dryRun=All");
        let is_aside = |target: &Target<'_>| target.is_event() || target.is_question();
        let is_change = is_write && !target.as_ref().is_some_and(is_aside);
        // Outside of a run everything is kept.
        let run = current.get::<Run>().map(Run::inside);
        let pattern = target.map_or_else(|| uri.path().to_owned(), |target| target.pattern());
        let parent = run.clone().map_or_else(|| current.clone(), |run| current.with_value(run));
        let builder = shared.tracer.span_builder(format!("{method} {pattern}")).with_kind(SpanKind::Client);
        let context = parent.with_span(shared.tracer.build_with_context(builder, &parent));
        if context.span().is_recording() {
            context.span().set_attributes(describe(&method, &uri, server));
        }
        Some(Self { shared: Arc::clone(shared), run, context, method, uri, is_write, is_change })
    }

    async fn traced<S, B>(self, request: Request<Body>, inner: &Mutex<S>) -> Result<Response<Answered>, BoxError>
    where
        S: Service<Request<Body>, Response = Response<B>>,
        S::Error: Into<BoxError>,
        B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        let (mut parts, body) = request.into_parts();
        if !self.context.span().is_recording() {
            context::inject(self.context.span().span_context(), &mut parts.headers);
            let sent = send(inner, Request::from_parts(parts, body)).with_context(self.context.clone()).await;
            return sent.map(|response| response.map(whole));
        }
        // In memory already: kube's requests are.
        let body = body.collect_bytes().await?;
        let identity = self.identity(&body);
        context::inject(&self.sent_context(identity, &body), &mut parts.headers);
        let (mut before, sent) = (self.before(&body, &parts.headers), Instant::now());
        let request = Request::from_parts(parts, Body::from(body.clone()));
        let answer = send(inner, request).with_context(self.context.clone()).await;
        let answer = match answer {
            Ok(response) => {
                before.sent = answer::sent_at(response.headers(), sent.elapsed());
                self.read(response, &body, before).await
            }
            Err(error) => Err(error),
        };
        self.finish(identity, &answer);
        answer
    }

    /// Which request this is, whatever else is in its body.
    fn identity(&self, body: &[u8]) -> u64 {
        let about = self.run.as_ref().map(Run::about).unwrap_or_default();
        // What is created is not named by the path.
        let named = (self.method == Method::POST).then(|| serde_json::from_slice::<Named>(body).ok()).flatten();
        let name = named.and_then(|named| named.metadata.name).unwrap_or_default();
        xxh3_64(format!("{about} {} {name}", self.path()).as_bytes())
    }

    /// The context as the API server sees it.
    fn sent_context(&self, identity: u64, body: &[u8]) -> SpanContext {
        let span = self.context.span().span_context().clone();
        let Some(run) = &self.run else { return span };
        let news = match self.method {
            _ if !self.is_change || !self.shared.refusals.is_due(identity) => run.will_be_kept(),
            Method::POST | Method::DELETE => true,
            _ => !run.is_quiet() && self.shared.known.repeats(&self.path(), body).is_none(),
        };
        if news {
            run.note_exposed();
            return span;
        }
        let flags = span.trace_flags().with_sampled(false);
        SpanContext::new(span.trace_id(), span.span_id(), flags, false, span.trace_state().clone())
    }

    fn before(&self, body: &[u8], headers: &HeaderMap) -> Before {
        let Some(target) = Target::parse(self.uri.path()).filter(|_| self.is_write) else { return Before::default() };
        let (group, resource, namespace) = (target.group, target.resource, target.namespace);
        let (known, applier) = (&self.shared.known, self.applier(headers, target.subresource));
        let newest = known.newest(group, resource);
        let last = known.repeats(&self.path(), body);
        let Some(name) = target.name else { return Before { newest, last, applier, ..Before::default() } };
        Before {
            newest,
            last,
            applier,
            shown: known.shown(group, resource, namespace, name),
            shape: known.shape(group, resource, namespace, name),
            owned: applier.and_then(|applier| known.owned(group, resource, namespace, name, applier)),
            sent: None,
        }
    }

    /// Who makes a server-side apply.
    fn applier(&self, headers: &HeaderMap, subresource: Option<&str>) -> Option<Applier> {
        let media = headers.get(CONTENT_TYPE)?.to_str().ok()?;
        let query = self.uri.query().filter(|_| media.starts_with("application/apply-patch"))?;
        // Names that are written otherwise in a query are not found again, which is no harm.
        let manager = query.split('&').find_map(|part| part.strip_prefix("fieldManager="))?;
        Some(Applier::new(manager, subresource))
    }

    fn path(&self) -> String {
        format!("{} {}", self.method, self.uri)
    }

    /// Looks into the answer to a write. kube reads it as a whole anyway.
    async fn read<B>(&self, response: Response<B>, sent: &[u8], before: Before) -> Result<Response<Answered>, BoxError>
    where
        B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        if !self.is_write {
            return Ok(response.map(whole));
        }
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.map_err(Into::into)?.to_bytes();
        if let Some(target) = Target::parse(self.uri.path()) {
            let answer = Answer::read(&bytes);
            if let Some(run) = &self.run
                && answer.is_change(&self.method, &target, parts.status, before)
            {
                run.note_write();
            }
            if parts.status.is_success() {
                let known = &self.shared.known;
                known.saw(target.group, target.resource, answer.revision());
                if let Some(meta) = answer.meta() {
                    known.shaped(target.group, target.resource, &meta);
                }
                let revision = answer.revision().and_then(|text| text.parse().ok()).unwrap_or_default();
                known.answered(&self.path(), sent, answer.content(&target), revision);
            }
        }
        Ok(Response::from_parts(parts, whole(Full::new(bytes))))
    }

    fn finish(&self, identity: u64, answer: &Result<Response<Answered>, BoxError>) {
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
                span.set_status(Status::error(in_words(&**error)));
                true
            }
        };
        match (self.is_write, failed) {
            (false, _) => {}
            (true, true) => {
                self.shared.known.refused(&self.path());
                self.shared.refusals.refused(identity);
            }
            (true, false) => self.shared.refusals.taken(identity),
        }
        if let Some(run) = &self.run {
            if failed {
                run.note_refused(identity);
            }
            // A write that changed nothing is not worth a span; a read or an Event is, in a run that is.
            let keep = !self.is_change || failed || run.has_changed() || run.is_exposed();
            self.shared.hold.settle(run, keep);
        }
        span.end();
    }
}

/// All that is read of what is created.
#[derive(Deserialize)]
struct Named {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    name: Option<String>,
}

/// Calls the client once it is ready.
async fn send<S, B>(inner: &Mutex<S>, request: Request<Body>) -> Result<Response<B>, BoxError>
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

fn whole<B>(body: B) -> Answered
where
    B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    body.map_err(Into::into).boxed_unsync()
}

fn describe(method: &Method, uri: &Uri, server: Option<&Uri>) -> Vec<KeyValue> {
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
