//! Calls of the client: their spans, the headers that they send, and pooled connections that must hold no span.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use std::{
    convert::Infallible,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Config, runtime::controller::Action};
use kubewake_trail::{DeferredSpanProcessor, FollowLinks, Options, Run, Trail, context, tracing_layer};
use opentelemetry::{
    context::FutureExt as _,
    trace::{SpanBuilder, SpanKind, TraceContextExt as _, TracerProvider as _},
};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SimpleSpanProcessor, SpanData};
use tokio::net::TcpListener;
use tracing_subscriber::layer::SubscriberExt as _;

/// A server that answers every request with the same ConfigMap, on keep-alive connections.
struct Server {
    config: Config,
    connections: Arc<AtomicUsize>,
    received: Arc<Mutex<Vec<HeaderMap>>>,
}

impl Server {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::<AtomicUsize>::default();
        let received = Arc::<Mutex<Vec<HeaderMap>>>::default();
        let count = Arc::clone(&connections);
        let into = Arc::clone(&received);
        tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                count.fetch_add(1, Ordering::SeqCst);
                let into = Arc::clone(&into);
                let answer = service_fn(move |request: Request<Incoming>| {
                    into.lock().unwrap().push(request.headers().clone());
                    let body =
                        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","resourceVersion":"1"}}"#;
                    async { Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(body.as_bytes())))) }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(socket), answer));
            }
        });
        Self { config: Config::new(format!("http://{address}").parse().unwrap()), connections, received }
    }

    fn api(&self, trail: &Trail) -> Api<ConfigMap> {
        Api::namespaced(trail.client(self.config.clone()).unwrap(), "shop")
    }

    fn last(&self) -> HeaderMap {
        self.received.lock().unwrap().last().unwrap().clone()
    }
}

fn trail() -> (Trail, SdkTracerProvider, InMemorySpanExporter) {
    let exporter = InMemorySpanExporter::default();
    let hold = DeferredSpanProcessor::new(SimpleSpanProcessor::new(exporter.clone()));
    let sampler = FollowLinks::with_ratio(1.0);
    let provider = SdkTracerProvider::builder().with_sampler(sampler).with_span_processor(hold.clone()).build();
    (Trail::new(&provider, hold, Options::default()), provider, exporter)
}

fn named(exporter: &InMemorySpanExporter, name: &str) -> SpanData {
    let spans = exporter.get_finished_spans().unwrap();
    let names: Vec<_> = spans.iter().map(|span| span.name.clone()).collect();
    spans.into_iter().find(|span| span.name == name).unwrap_or_else(|| panic!("no {name} in {names:?}"))
}

const GET: &str = "GET /api/v1/namespaces/{:namespace}/configmaps/{:name}";

#[tokio::test]
async fn a_call_is_a_span_and_carries_its_context() {
    let (server, (trail, _provider, exporter)) = (Server::start().await, trail());
    let api = server.api(&trail);
    let work = trail.start(SpanBuilder::from_name("work"), &opentelemetry::Context::new());
    api.get("a").with_context(work.clone()).await.unwrap();
    let call = named(&exporter, GET);
    assert_eq!((call.parent_span_id, call.span_kind.clone()), (work.span().span_context().span_id(), SpanKind::Client));
    let sent = context::extract(&server.last()).unwrap();
    assert_eq!((sent.span_id(), sent.trace_id()), (call.span_context.span_id(), call.span_context.trace_id()));
    assert!(sent.is_sampled());
    let attribute = |key: &str| {
        let found = call.attributes.iter().find(|it| it.key.as_str() == key);
        found.map(|it| it.value.to_string()).unwrap_or_default()
    };
    for (key, value) in [
        ("http.request.method", "GET"),
        ("http.response.status_code", "200"),
        ("url.path", "/api/v1/namespaces/shop/configmaps/a"),
        ("server.address", "127.0.0.1"),
    ] {
        assert_eq!(attribute(key), value, "{key}");
    }
}

#[tokio::test]
async fn outside_of_any_span_and_without_tracing_a_request_is_as_it_was() {
    let (server, (trail, _provider, exporter)) = (Server::start().await, trail());
    server.api(&trail).get("a").await.unwrap();
    assert!(!server.last().contains_key("traceparent"));
    let work = trail.start(SpanBuilder::from_name("work"), &opentelemetry::Context::new());
    server.api(&Trail::disabled()).get("a").with_context(work).await.unwrap();
    assert!(!server.last().contains_key("traceparent"));
    let spans = exporter.get_finished_spans().unwrap();
    assert_eq!(spans.iter().map(|span| &*span.name).collect::<Vec<_>>(), ["work"]);
}

#[tracing::instrument(skip_all)]
async fn ask(api: &Api<ConfigMap>) {
    api.get("a").await.unwrap();
}

#[tokio::test]
async fn a_connection_that_stays_open_holds_no_span() {
    let (server, (trail, provider, exporter)) = (Server::start().await, trail());
    let subscriber = tracing_subscriber::registry().with(tracing_layer(provider.tracer("tests")));
    let _default = tracing::subscriber::set_default(subscriber);
    let api = server.api(&trail);
    let reconcile = {
        let api = api.clone();
        move |_: Arc<ConfigMap>, _: Arc<()>| {
            let api = api.clone();
            async move {
                ask(&api).await;
                Run::current().unwrap().note_change();
                Ok::<_, Infallible>(Action::await_change())
            }
        }
    };
    let mut reconcile = trail.reconcile(reconcile);
    for _ in 0..2 {
        exporter.reset();
        reconcile(Arc::default(), Arc::new(())).await.unwrap();
        // All spans have ended, including the one in which the connection was opened.
        let (run, asked, call) =
            (named(&exporter, "reconcile ConfigMap"), named(&exporter, "ask"), named(&exporter, GET));
        assert_eq!(asked.parent_span_id, run.span_context.span_id());
        assert_eq!(call.parent_span_id, asked.span_context.span_id());
    }
    assert_eq!(server.connections.load(Ordering::SeqCst), 1, "it is the same connection, and open");
    drop(api);
}
