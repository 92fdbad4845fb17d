//! Connections in memory, on a paused clock: responses to streams and requests, and the fate of spans.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Mutex,
    task::{Context, Poll},
    time::Duration,
};

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode, header::CONTENT_TYPE};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full};
use hyper::{
    body::Incoming,
    client::conn::{http1, http2},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kubewake_config::{ComponentId, PipelineId, model::GrpcServer};
use kubewake_otlp::{Signal, view, wire::put_bytes};
use tokio::{io::DuplexStream, sync::mpsc, task::JoinHandle};

use super::{connection::OpenCensusConnection, *};
use crate::{
    core::{
        Allowance, Batch, Budget, ConsumeOutcome, Consumer, DropReason, OverflowPolicy, PART_OVERHEAD_BYTES, Pipeline,
        PipelineSet, Refusal, StatsRegistry,
    },
    net::listener::ShutdownSignal,
};

const EXPORT: &str = "/opencensus.proto.agent.trace.v1.TraceService/Export";
const EXPORT_ONE: &str = "/opencensus.proto.agent.trace.v1.TraceService/ExportOne";

/// A consumer that has no room for the first batches, and then accepts everything.
#[derive(Default)]
struct Target {
    full: Mutex<usize>,
    /// The service and the name of each span.
    taken: Mutex<Vec<(String, String)>>,
}

impl Consumer for Target {
    fn consume(self: Arc<Self>, batch: Batch, _: OverflowPolicy) -> ConsumeOutcome {
        let mut full = self.full.lock().unwrap();
        if *full > 0 {
            *full -= 1;
            return ConsumeOutcome::Now(Err(Refusal::queue_full()));
        }
        let text = |bytes: &[u8]| view::lossy(bytes).into_owned();
        for entry in batch.parts().iter().flat_map(|part| view::resources(&part.bytes)) {
            let service = text(entry.resource().attributes().text("service.name").unwrap_or_default());
            let spans = entry.scopes().flat_map(|scope| scope.spans());
            self.taken.lock().unwrap().extend(spans.map(|span| (service.clone(), text(span.name()))));
        }
        ConsumeOutcome::Now(Ok(()))
    }

    fn count_refused(&self, _: &Batch) {}

    fn count_lost(&self, _: &Batch, _: DropReason) {}
}

struct Fixture {
    target: Arc<Target>,
    budget: Arc<Budget>,
    registry: StatsRegistry,
    server: JoinHandle<()>,
    close: Box<dyn FnOnce()>,
}

/// A connection with this much memory in its pipeline, which is full this many times.
fn connect(memory: u64, full: usize) -> (Fixture, DuplexStream) {
    let target = Arc::new(Target { full: Mutex::new(full), ..Target::default() });
    let budget = Budget::new(memory, 0);
    let id = PipelineId { signal: Signal::Traces, name: None };
    let pipeline = Pipeline::new(id, Allowance { member: budget.join(), limiter: None }, Arc::default());
    pipeline.head().set_targets(vec![target.clone()]);
    let intake = Arc::new(PipelineSet::default());
    intake.set_pipelines(Signal::Traces, vec![pipeline]);
    let server = GrpcServer { max_message_bytes: 64 << 10, ..GrpcServer::default() };
    let live = ActiveSettings { settings: OpenCensusReceiver { server, cors: None }, tls: None, auth: None };
    let registry = StatsRegistry::default();
    let taker =
        Arc::new(RequestSubmitter::new(intake, registry.receiver(&ComponentId::new("opencensus"), Transport::Grpc)));
    let peer = taker.sender_peer(([127, 0, 0, 1], 1).into());
    let served = OpenCensusConnection {
        peer,
        active: Arc::new(ArcSwap::from_pointee(live)),
        submitter: taker,
        paused_streams: Default::default(),
    };
    let (ours, theirs) = tokio::io::duplex(256 << 10);
    let (close, closing) = ShutdownSignal::with_trigger();
    let server = tokio::spawn(connection::serve_http(theirs, served, closing));
    (Fixture { target, budget, registry, server, close: Box::new(close) }, ours)
}

impl Fixture {
    fn taken(&self) -> Vec<(String, String)> {
        self.target.taken.lock().unwrap().clone()
    }

    /// Spans that were accepted, refused and failed.
    fn counts(&self) -> [u64; 3] {
        let stats = self.registry.receiver(&ComponentId::new("opencensus"), Transport::Grpc);
        [stats.accepted(), stats.refused(), stats.failed()].map(|counter| counter.get(Signal::Traces))
    }
}

/// A body that is sent piece by piece.
struct Pieces(mpsc::UnboundedReceiver<Bytes>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

/// Begins a call, which continues until the sender of its pieces is dropped.
async fn call(ours: DuplexStream, path: &str) -> (mpsc::UnboundedSender<Bytes>, JoinHandle<Response<Incoming>>) {
    let (mut calls, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(ours)).await.unwrap();
    tokio::spawn(async move { drop(connection.await) });
    let (pieces, body) = mpsc::unbounded_channel();
    let uri = format!("http://test{path}");
    let request = Request::post(uri).header(CONTENT_TYPE, "application/grpc").body(Pieces(body)).unwrap();
    calls.ready().await.unwrap();
    let answer = tokio::spawn(async move { calls.send_request(request).await.unwrap() });
    (pieces, answer)
}

/// The status of a call and its message, from headers or trailers.
async fn ended(answer: JoinHandle<Response<Incoming>>) -> (String, Bytes) {
    let (head, body) = answer.await.unwrap().into_parts();
    let body = body.collect().await.unwrap();
    let status = |headers: &HeaderMap| headers.get("grpc-status").map(|value| value.to_str().unwrap().to_owned());
    (status(&head.headers).or(body.trailers().and_then(status)).unwrap(), body.to_bytes())
}

fn framed(message: &[u8]) -> Bytes {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[0], &length[..], message].concat().into()
}

fn nested(number: u32, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_bytes(&mut out, number, content);
    out
}

/// A request with a node, if a service is named, and these spans.
fn request(service: Option<&str>, spans: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    if let Some(service) = service {
        put_bytes(&mut out, 1, &nested(3, &nested(1, service.as_bytes())));
    }
    for name in spans {
        put_bytes(&mut out, 2, &nested(4, &nested(1, name.as_bytes())));
    }
    out
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(service, name)| ((*service).to_owned(), (*name).to_owned())).collect()
}

#[tokio::test(start_paused = true)]
async fn a_stream_says_once_who_sends_and_ends_when_its_client_has_said_all() {
    let (fixture, ours) = connect(1 << 20, 0);
    let (pieces, answer) = call(ours, EXPORT).await;
    let messages = [
        framed(&request(Some("shop"), &["a", "b"])),
        framed(&request(None, &["c"])),
        framed(&request(Some("cart"), &[])),
        framed(&request(None, &["d"])),
    ];
    // In pieces that end anywhere.
    for piece in messages.concat().chunks(7) {
        pieces.send(Bytes::copy_from_slice(piece)).unwrap();
    }
    drop(pieces);
    assert_eq!(ended(answer).await, ("0".into(), Bytes::new()));
    assert_eq!(fixture.taken(), pairs(&[("shop", "a"), ("shop", "b"), ("shop", "c"), ("cart", "d")]));
    assert_eq!(fixture.counts(), [4, 0, 0]);
    assert_eq!(fixture.budget.used(), 0);
}

#[tokio::test(start_paused = true)]
async fn one_request_gets_one_answer() {
    let (fixture, ours) = connect(1 << 20, 0);
    let (pieces, answer) = call(ours, EXPORT_ONE).await;
    pieces.send(framed(&request(Some("shop"), &["a"]))).unwrap();
    drop(pieces);
    assert_eq!(ended(answer).await, ("0".into(), Bytes::from_static(&[0; 5])));
    assert_eq!(fixture.taken(), pairs(&[("shop", "a")]));
}

#[tokio::test(start_paused = true)]
async fn a_stream_waits_while_there_is_no_room() {
    let (fixture, ours) = connect(1 << 20, 5);
    let (pieces, answer) = call(ours, EXPORT).await;
    pieces.send([framed(&request(Some("shop"), &["a"])), framed(&request(None, &["b"]))].concat().into()).unwrap();
    drop(pieces);
    assert_eq!(ended(answer).await.0, "0");
    assert_eq!(fixture.taken(), pairs(&[("shop", "a"), ("shop", "b")]));
    assert_eq!(fixture.counts(), [2, 0, 0], "nothing was lost, and nothing counted as lost");
    assert_eq!(fixture.budget.used(), 0);
}

#[tokio::test(start_paused = true)]
async fn one_request_is_refused_and_may_come_again() {
    let (fixture, ours) = connect(1 << 20, 1);
    let (pieces, answer) = call(ours, EXPORT_ONE).await;
    pieces.send(framed(&request(Some("shop"), &["a"]))).unwrap();
    drop(pieces);
    assert_eq!(ended(answer).await.0, "14");
    assert_eq!(fixture.counts(), [0, 1, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_waits_for_memory_ends_when_the_receiver_closes() {
    let message = request(Some("shop"), &["a"]);
    let bytes = message.len().max(PART_OVERHEAD_BYTES) as u64;
    let (fixture, ours) = connect(3 * bytes, 0);
    // Another pipeline holds half of the memory, which leaves a quarter: too little.
    let held = fixture.budget.join().reserve(3 * bytes / 2).unwrap();
    let (pieces, answer) = call(ours, EXPORT).await;
    pieces.send(framed(&message)).unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(!answer.is_finished(), "it is not refused");
    (fixture.close)();
    assert_eq!(ended(answer).await.0, "14");
    drop((pieces, held));
    assert_eq!(fixture.budget.used(), 0);
    tokio::time::timeout(Duration::from_secs(60), fixture.server).await.expect("the connection ends").unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stream_does_not_wait_for_memory_that_there_never_is() {
    let message = request(Some("shop"), &["a"]);
    // Too little memory to read the message, and too little to translate it.
    for memory in [10, message.len() as u64] {
        let (fixture, ours) = connect(memory, 0);
        let (pieces, answer) = call(ours, EXPORT).await;
        pieces.send(framed(&message)).unwrap();
        assert_eq!(ended(answer).await.0, "8");
        drop(pieces);
        assert_eq!(fixture.budget.used(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_without_anything_to_say_ends_when_the_receiver_closes() {
    let (fixture, ours) = connect(1 << 20, 0);
    let (pieces, answer) = call(ours, EXPORT).await;
    pieces.send(framed(&request(Some("shop"), &["a"]))).unwrap();
    while fixture.taken().is_empty() {
        tokio::task::yield_now().await;
    }
    (fixture.close)();
    assert_eq!(ended(answer).await.0, "14");
    drop(pieces);
}

#[tokio::test(start_paused = true)]
async fn bad_streams_end_with_what_is_wrong_with_them() {
    let large = request(Some("shop"), &[&"x".repeat(70 << 10)]);
    for (path, message, code) in [
        (EXPORT, framed(&request(None, &["a"])), "3"),
        (EXPORT, framed(b"\xff\xff\xff"), "3"),
        (EXPORT, framed(&large), "8"),
        (EXPORT, framed(&request(Some("shop"), &["a"])).slice(..9), "13"),
        (EXPORT, Bytes::from_static(&[1, 0, 0, 0, 1, 7]), "13"),
        ("/opencensus.proto.agent.trace.v1.TraceService/Config", framed(b""), "12"),
        ("/opencensus.proto.agent.metrics.v1.MetricsService/Export", framed(b""), "12"),
        ("/else.Service/Export", framed(b""), "12"),
    ] {
        let (fixture, ours) = connect(1 << 20, 0);
        let (pieces, answer) = call(ours, path).await;
        pieces.send(message).unwrap();
        drop(pieces);
        assert_eq!(ended(answer).await.0, code, "{path}");
        assert_eq!(fixture.taken(), []);
        assert_eq!(fixture.budget.used(), 0);
    }
}

/// Status and body of a request over HTTP/1.1.
async fn post(ours: DuplexStream, path: &str, body: &str) -> (StatusCode, String) {
    let (mut requests, connection) = http1::handshake(TokioIo::new(ours)).await.unwrap();
    tokio::spawn(async move { drop(connection.await) });
    let request = Request::post(path).header("host", "test").header(CONTENT_TYPE, "application/json");
    let response = requests.send_request(request.body(Full::new(Bytes::copy_from_slice(body.as_bytes()))).unwrap());
    let (head, body) = response.await.unwrap().into_parts();
    (head.status, String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap())
}

#[tokio::test(start_paused = true)]
async fn json_comes_over_the_same_connection() {
    let (fixture, ours) = connect(1 << 20, 0);
    let body = r#"{"node": {"serviceInfo": {"name": "shop"}}, "spans": [{"name": {"value": "a"}}]}
        {"spans": [{"name": {"value": "b"}}]}"#;
    assert_eq!(post(ours, "/v1/trace", body).await, (StatusCode::OK, "{}".into()));
    assert_eq!(fixture.taken(), pairs(&[("shop", "a"), ("shop", "b")]));
    assert_eq!(fixture.budget.used(), 0);
}

#[tokio::test(start_paused = true)]
async fn bad_json_is_refused_with_a_reason() {
    let large = format!(r#"{{"node": {{}}, "spans": [{{"name": {{"value": "{}"}}}}]}}"#, "x".repeat(70 << 10));
    for (path, body, status, words) in [
        ("/v1/trace", "{", 400, "the document ends early"),
        ("/v1/trace", r#"{"spans": []}"#, 400, "first message must have a Node"),
        ("/v1/trace", r#"{"node": {}, "spans": [{"traceId": "!"}]}"#, 400, "traceId: expected base64"),
        ("/v1/trace", &large, 413, "larger than 65536 bytes"),
        ("/v1/other", "{}", 404, "404 page not found"),
    ] {
        let (fixture, ours) = connect(1 << 20, 0);
        let (found, text) = post(ours, path, body).await;
        assert_eq!(found.as_u16(), status, "{path}: {text}");
        assert!(text.contains(words), "{text}");
        assert_eq!(fixture.taken(), []);
    }
    let (fixture, ours) = connect(1 << 20, 1);
    let (status, text) = post(ours, "/v1/trace", r#"{"node": {}, "spans": [{}]}"#).await;
    assert_eq!((status.as_u16(), fixture.counts()), (503, [0, 1, 0]), "{text}");
}
