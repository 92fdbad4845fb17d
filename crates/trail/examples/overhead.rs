//! Measures the cost of a traced reconcile when nothing is recorded: time, memory and requests, compared with
//! the same reconcile without tracing. Prints JSON.
//!
//! `cargo run --release -p kubewake-trail --example overhead`; `cargo xtask bench trail` runs it and checks the
//! documented limits.
#![allow(clippy::unwrap_used, missing_docs)]
#![allow(unsafe_code, reason = "an allocator that counts is unsafe to write, and is in this program alone")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    collections::BTreeMap,
    convert::Infallible,
    hint::black_box,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{Request, Response};
use http_body_util::Full;
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api, Client,
    api::ObjectMeta,
    client::{Body, ClientBuilder},
    runtime::controller::Action,
};
use kubewake_trail::{DeferredSpanProcessor, FollowLinks, Options, Trail};
use opentelemetry_sdk::trace::{InMemorySpanExporter, Sampler, SdkTracerProvider, SimpleSpanProcessor};
use serde_json::json;

struct Counting;

thread_local! {
    static BYTES: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: all calls are forwarded to the system's allocator; the counter is a plain integer.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.set(BYTES.get() + layout.size() as u64);
        // SAFETY: the caller upholds the contract of `GlobalAlloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract of `GlobalAlloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        BYTES.set(BYTES.get() + size as u64);
        // SAFETY: the caller upholds the contract of `GlobalAlloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Long enough to average out scheduling noise; the best of several measurements counts.
const RUNS: u32 = 200_000;
const ROUNDS: usize = 5;
const UNSAMPLED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";

type Result<T, E = Infallible> = std::result::Result<T, E>;

async fn nothing(object: Arc<Deployment>, _: Arc<()>) -> Result<Action> {
    black_box(&object.metadata.name);
    Ok(Action::await_change())
}

/// Time and allocated bytes per run.
fn measure<F>(mut reconcile: impl FnMut(Arc<Deployment>, Arc<()>) -> F, object: &Arc<Deployment>) -> (Duration, u64)
where
    F: Future<Output = Result<Action>>,
{
    let context = Arc::new(());
    let round = |_| {
        let bytes = BYTES.get();
        let start = Instant::now();
        for _ in 0..RUNS {
            let _ = black_box(reconcile(Arc::clone(object), Arc::clone(&context)).now_or_never());
        }
        (start.elapsed() / RUNS, (BYTES.get() - bytes) / u64::from(RUNS))
    };
    (0..ROUNDS).map(round).min().unwrap()
}

fn object(context: Option<&str>) -> Arc<Deployment> {
    let mut annotations: BTreeMap<_, _> =
        (0..10).map(|number| (format!("example.com/annotation-{number}"), "something".to_owned())).collect();
    annotations.extend(context.map(|context| ("tracing.k8s.io/traceparent".to_owned(), context.to_owned())));
    let metadata = ObjectMeta {
        name: Some("name".to_owned()),
        namespace: Some("namespace".to_owned()),
        uid: Some("0d1e2f3a-0000-0000-0000-000000000000".to_owned()),
        generation: Some(1),
        resource_version: Some("1".to_owned()),
        annotations: Some(annotations),
        ..ObjectMeta::default()
    };
    Arc::new(Deployment { metadata, ..Deployment::default() })
}

fn trail() -> Trail {
    let hold = DeferredSpanProcessor::new(SimpleSpanProcessor::new(InMemorySpanExporter::default()));
    let sampler = FollowLinks::new(Sampler::AlwaysOff);
    let provider = SdkTracerProvider::builder().with_sampler(sampler).with_span_processor(hold.clone()).build();
    Trail::new(&provider, hold, Options::default())
}

/// A client of a server that answers every request with the same object and counts requests.
fn client(trail: &Trail, requests: &Arc<AtomicU64>) -> Client {
    let requests = Arc::clone(requests);
    let service = tower::service_fn(move |_: Request<Body>| {
        requests.fetch_add(1, Ordering::Relaxed);
        let body = serde_json::to_vec(&*object(None)).unwrap();
        async { Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(body)))) }
    });
    ClientBuilder::new(service, "default").with_layer(&trail.layer()).build()
}

/// The number of requests of a reconcile that makes one.
async fn requests(trail: &Trail) -> u64 {
    let count = Arc::new(AtomicU64::new(0));
    let api = Api::<Deployment>::namespaced(client(trail, &count), "namespace");
    let reconcile = move |_: Arc<Deployment>, _: Arc<()>| {
        let api = api.clone();
        async move { api.get("name").await.map(|_| Action::await_change()) }
    };
    let mut traced = trail.reconcile(reconcile);
    for _ in 0..100 {
        traced(object(None), Arc::new(())).await.unwrap();
    }
    count.load(Ordering::Relaxed)
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let trail = trail();
    let mut rows = Vec::new();
    for (name, object) in [("no context", object(None)), ("a context that is not sampled", object(Some(UNSAMPLED)))] {
        let (plain, plain_bytes) = measure(|object, context| nothing(object, context).boxed(), &object);
        let (traced, traced_bytes) = measure(trail.reconcile(nothing), &object);
        rows.push(json!({
            "object": name,
            "plain_ns": plain.as_nanos() as u64,
            "traced_ns": traced.as_nanos() as u64,
            "more_bytes": traced_bytes.saturating_sub(plain_bytes),
        }));
    }
    let plain = requests(&Trail::disabled()).await;
    println!("{}", json!({"rows": rows, "requests": {"plain": plain, "traced": requests(&trail).await}}));
}
