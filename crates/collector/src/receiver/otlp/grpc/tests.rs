//! Connections on a paused clock: their lifetime, and the cleanup of cancelled calls.

mod early;

use std::{
    convert::Infallible,
    pin::Pin,
    sync::atomic::{AtomicBool, Ordering},
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderMap, Response, header::CONTENT_TYPE};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use hyper::client::conn::http2::{self as client, SendRequest};
use hyper_util::rt::TokioExecutor;
use kubewake_config::{ComponentId, PipelineId, model::ServerKeepalive};
use kubewake_otlp::Signal;
use tokio::{sync::mpsc, task::JoinHandle};

use super::*;
use crate::{
    core::{
        Allowance, Batch, Budget, Charge, ConsumeOutcome, Consumer, DropReason, OverflowPolicy, PART_OVERHEAD_BYTES,
        PartialSuccess, Pipeline, PipelineSet, StatsRegistry, Transport, testing::part,
    },
    receiver::submitter::RequestPayload,
};

const EXPORT: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
const WATCH: &str = "/grpc.health.v1.Health/Watch";
const SECOND: Duration = Duration::from_secs(1);

/// The end of a pipeline.
#[derive(Clone, Copy)]
enum Target {
    Takes,
    TakesAllButOne,
    /// It never answers.
    Hangs,
    /// It panics over the first request, and takes those that follow.
    PanicsOnce(&'static AtomicBool),
}

impl Consumer for Target {
    fn consume(self: Arc<Self>, batch: Batch, _: OverflowPolicy) -> ConsumeOutcome {
        match *self {
            Target::PanicsOnce(before) if !before.swap(true, Ordering::Relaxed) => panic!("of a pipeline"),
            Target::Takes | Target::PanicsOnce(_) => ConsumeOutcome::Now(Ok(())),
            Target::TakesAllButOne => {
                ConsumeOutcome::Partial(Box::new(PartialSuccess { items: 1, message: "odd".to_owned() }))
            }
            Target::Hangs => ConsumeOutcome::later(async move {
                let _held = batch;
                std::future::pending().await
            }),
        }
    }

    fn count_refused(&self, _: &Batch) {}

    fn count_lost(&self, _: &Batch, _: DropReason) {}
}

/// The state that a receiver serves its connections with, and the pipeline behind it.
struct Fixture {
    live: Arc<ArcSwap<ActiveSettings<GrpcServer>>>,
    intake: Arc<PipelineSet>,
    budget: Arc<Budget>,
}

fn fixture(keepalive: ServerKeepalive, target: Target) -> Fixture {
    let budget = Budget::new(1 << 20, 0);
    let id = PipelineId { signal: Signal::Traces, name: None };
    let pipeline = Pipeline::new(id, Allowance { member: budget.join(), limiter: None }, Arc::default());
    pipeline.head().set_targets(vec![Arc::new(target)]);
    let intake = Arc::new(PipelineSet::default());
    intake.set_pipelines(Signal::Traces, vec![pipeline]);
    let settings = GrpcServer { keepalive, ..GrpcServer::default() };
    let live = ActiveSettings { settings, tls: None, auth: None };
    Fixture { live: Arc::new(ArcSwap::from_pointee(live)), intake, budget }
}

impl Fixture {
    /// A connection in memory: on a paused clock nothing may wait for the kernel.
    async fn connect(&self) -> Client {
        let ((ours, mut near), (mut far, theirs)) = (tokio::io::duplex(64 << 10), tokio::io::duplex(64 << 10));
        let wire = tokio::spawn(async move { drop(tokio::io::copy_bidirectional(&mut near, &mut far).await) });
        let stats = StatsRegistry::default().receiver(&ComponentId::new("otlp"), Transport::Grpc);
        let taker = Arc::new(RequestSubmitter::new(self.intake.clone(), stats));
        let (close, closing) = ShutdownSignal::with_trigger();
        let peer = taker.sender_peer(([127, 0, 0, 1], 1).into());
        let server = tokio::spawn(serve_http2(theirs, peer, self.live.clone(), taker, closing));
        let (calls, connection) = client::handshake(TokioExecutor::new(), TokioIo::new(ours)).await.unwrap();
        let connection = tokio::spawn(async move { drop(connection.await) });
        Client { calls, connection, server, wire, close: Box::new(close) }
    }

    /// Waits until this much memory is in use.
    async fn uses(&self, memory: impl Fn(u64) -> bool) {
        for _ in 0..1000 {
            if memory(self.budget.used()) {
                return;
            }
            tokio::task::yield_now().await;
        }
        panic!("{} bytes are in use", self.budget.used());
    }

    /// Whether any state of a connection is left.
    fn is_clean(&self) {
        assert_eq!(self.budget.used(), 0);
        assert_eq!(Arc::strong_count(&self.intake), 1, "no call is left");
    }
}

struct Client {
    calls: SendRequest<Pieces>,
    connection: JoinHandle<()>,
    server: JoinHandle<()>,
    /// The task that carries bytes between client and server.
    wire: JoinHandle<()>,
    close: Box<dyn FnOnce()>,
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

type Pending = JoinHandle<hyper::Result<Response<Incoming>>>;

impl Client {
    /// Begins a call, which continues until the sender of its pieces is dropped.
    async fn begin(&mut self, path: &str) -> (mpsc::UnboundedSender<Bytes>, Pending) {
        let (pieces, body) = mpsc::unbounded_channel();
        self.calls.ready().await.unwrap();
        let uri = format!("http://test{path}");
        let request = Request::post(uri).header(CONTENT_TYPE, "application/grpc").body(Pieces(body)).unwrap();
        let answer = tokio::spawn(self.calls.send_request(request));
        (pieces, answer)
    }

    async fn call(&mut self, path: &str, message: &Bytes) -> Response<Incoming> {
        let (pieces, answer) = self.begin(path).await;
        pieces.send(message.clone()).unwrap();
        drop(pieces);
        answer.await.unwrap().unwrap()
    }

    /// Waits until both sides have ended.
    async fn ended(self) {
        drop(self.calls);
        for side in [self.connection, self.server] {
            tokio::time::timeout(50 * SECOND, side).await.expect("it ends").unwrap();
        }
    }
}

/// A message in its frame.
fn framed(message: &[u8]) -> Bytes {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[0], &length[..], message].concat().into()
}

fn export() -> Bytes {
    framed(&part(0..3, Charge::exempt()).bytes)
}

/// Sends part of an export over half a minute; returns the rest of the message.
async fn send_slowly(pieces: &mpsc::UnboundedSender<Bytes>) -> Bytes {
    let mut rest = export();
    pieces.send(rest.split_to(9)).unwrap();
    for _ in 0..10 {
        tokio::time::sleep(3 * SECOND).await;
        // Nobody reads the body when the call was aborted.
        let _ = pieces.send(rest.split_to(2));
    }
    rest
}

async fn trailers(answer: Response<Incoming>) -> HeaderMap {
    answer.into_body().collect().await.unwrap().trailers().cloned().unwrap()
}

async fn assert_taken(answer: Response<Incoming>) {
    assert_eq!(trailers(answer).await["grpc-status"], "0");
}

/// The next message of a stream.
async fn next(answer: &mut Response<Incoming>) -> Bytes {
    answer.body_mut().frame().await.unwrap().unwrap().into_data().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_sender_is_told_what_was_not_taken() {
    let f = fixture(ServerKeepalive::default(), Target::TakesAllButOne);
    let answer = f.connect().await.call(EXPORT, &export()).await;
    let body = answer.into_body().collect().await.unwrap();
    assert_eq!(body.trailers().unwrap()["grpc-status"], "0");
    // `partial_success`: the first field is the number of rejected items and the second the reason.
    assert_eq!(body.to_bytes(), framed(&[0x0a, 7, 0x08, 1, 0x12, 3, b'o', b'd', b'd']));
}

#[tokio::test(start_paused = true)]
async fn what_was_not_taken_is_counted_alike_whether_the_sender_can_be_told_or_not() {
    let f = fixture(ServerKeepalive::default(), Target::TakesAllButOne);
    let stats = StatsRegistry::default().receiver(&ComponentId::new("otlp"), Transport::Grpc);
    let taker = RequestSubmitter::new(f.intake.clone(), stats.clone());
    let peer = taker.sender_peer(([127, 0, 0, 1], 1).into());
    let bytes = part(0..3, Charge::exempt()).bytes;
    let payload = || RequestPayload { held_bytes: bytes.len(), bytes: bytes.clone() };
    let admission = || taker.reserve(Signal::Traces, bytes.len()).unwrap();
    let counted = || (stats.accepted().get(Signal::Traces), stats.refused().get(Signal::Traces));
    let told = taker.submit(Signal::Traces, payload(), admission(), Arc::default(), &peer).await.unwrap();
    assert_eq!((told.unwrap().items, counted()), (1, (2, 1)));
    let mut never = std::future::pending::<()>();
    taker.submit_waiting(Signal::Traces, payload(), admission(), Arc::default(), &peer, &mut never).await.unwrap();
    assert_eq!(counted(), (4, 2));
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_too_old_lets_its_calls_end_and_closes() {
    let f = fixture(ServerKeepalive { max_connection_age: Some(20 * SECOND), ..Default::default() }, Target::Takes);
    let mut client = f.connect().await;
    assert_taken(client.call(EXPORT, &export()).await).await;
    let (pieces, answer) = client.begin(EXPORT).await;
    let rest = send_slowly(&pieces).await;
    let (_pieces, late) = client.begin(EXPORT).await;
    assert!(late.await.unwrap().is_err(), "no new call may begin");
    pieces.send(rest).unwrap();
    drop(pieces);
    assert_taken(answer.await.unwrap().unwrap()).await;
    client.ended().await;
    f.is_clean();
}

#[tokio::test(start_paused = true)]
async fn calls_that_outlive_the_grace_are_cut() {
    let keepalive = ServerKeepalive {
        max_connection_age: Some(10 * SECOND),
        max_connection_age_grace: Some(5 * SECOND),
        ..Default::default()
    };
    let f = fixture(keepalive, Target::Takes);
    let mut client = f.connect().await;
    let (pieces, answer) = client.begin(EXPORT).await;
    let sending = tokio::spawn(async move { send_slowly(&pieces).await });
    f.uses(|bytes| bytes > 0).await;
    assert!(answer.await.unwrap().is_err());
    sending.abort();
    client.ended().await;
    f.is_clean();
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_idle_when_no_call_is_under_way() {
    let f = fixture(ServerKeepalive { max_connection_idle: Some(10 * SECOND), ..Default::default() }, Target::Takes);
    let mut client = f.connect().await;
    let (pieces, answer) = client.begin(EXPORT).await;
    let rest = send_slowly(&pieces).await;
    pieces.send(rest).unwrap();
    drop(pieces);
    assert_taken(answer.await.unwrap().unwrap()).await;
    client.ended().await;
    f.is_clean();
}

#[tokio::test(start_paused = true)]
async fn who_watches_is_not_idle() {
    let f = fixture(ServerKeepalive { max_connection_idle: Some(10 * SECOND), ..Default::default() }, Target::Takes);
    let mut client = f.connect().await;
    let mut watching = client.call(WATCH, &framed(b"")).await;
    assert_eq!(next(&mut watching).await, framed(&[8, 1]));
    tokio::time::sleep(30 * SECOND).await;
    assert_taken(client.call(EXPORT, &export()).await).await;
    drop(watching);
    client.ended().await;
    f.is_clean();
}

#[tokio::test(start_paused = true)]
async fn watch_calls_of_a_connection_are_few_and_leave_their_place_to_others() {
    let f = fixture(ServerKeepalive::default(), Target::Takes);
    let mut client = f.connect().await;
    let mut watching = Vec::new();
    for _ in 0..MAX_WATCHES_PER_CONNECTION {
        let mut answer = client.call(WATCH, &framed(b"")).await;
        assert_eq!(next(&mut answer).await, framed(&[8, 1]));
        watching.push(answer);
    }
    let refused = client.call(WATCH, &framed(b"")).await;
    assert_eq!(refused.headers()["grpc-status"], "8");
    assert_taken(client.call(EXPORT, &export()).await).await;
    drop((refused, watching.pop()));
    loop {
        let mut answer = client.call(WATCH, &framed(b"")).await;
        if !answer.headers().contains_key("grpc-status") {
            assert_eq!(next(&mut answer).await, framed(&[8, 1]));
            break;
        }
    }
    drop(watching);
    client.ended().await;
    f.is_clean();
}

#[tokio::test(start_paused = true)]
async fn who_watches_hears_that_the_receiver_closes_and_does_not_hold_it_up() {
    let f = fixture(ServerKeepalive::default(), Target::Takes);
    let mut client = f.connect().await;
    let mut watching = client.call(WATCH, &framed(b"")).await;
    assert_eq!(next(&mut watching).await, framed(&[8, 1]));
    std::mem::replace(&mut client.close, Box::new(|| ()))();
    assert_eq!(next(&mut watching).await, framed(&[8, 2]));
    assert_eq!(trailers(watching).await["grpc-status"], "14");
    client.ended().await;
    f.is_clean();
}

#[tokio::test(start_paused = true)]
async fn who_watches_an_old_connection_is_sent_to_a_new_one() {
    let f = fixture(ServerKeepalive { max_connection_age: Some(20 * SECOND), ..Default::default() }, Target::Takes);
    let mut client = f.connect().await;
    let mut watching = client.call(WATCH, &framed(b"\x0a\x03who")).await;
    assert_eq!(next(&mut watching).await, framed(&[8, 3]), "a service that nobody knows");
    let end = trailers(watching).await;
    assert_eq!(end["grpc-status"], "14", "it says nothing of the service");
    client.ended().await;
    f.is_clean();
}

#[tokio::test(start_paused = true)]
async fn a_call_that_needs_more_memory_than_there_is_is_not_told_to_come_again() {
    let f = fixture(ServerKeepalive::default(), Target::Takes);
    let mut client = f.connect().await;
    let one = PART_OVERHEAD_BYTES as u64;
    f.budget.resize(one - 1, 0);
    let answer = client.call(EXPORT, &export()).await;
    assert_eq!(answer.headers()["grpc-status"], "8");
    assert!(!answer.headers().contains_key("grpc-status-details-bin"), "there is no hint when");
    drop(answer);
    f.budget.resize(one, 0);
    assert_taken(client.call(EXPORT, &export()).await).await;
    client.ended().await;
    f.is_clean();
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_cancelled_midway_gives_its_memory_back() {
    let f = fixture(ServerKeepalive::default(), Target::Takes);
    let mut client = f.connect().await;
    let (pieces, answer) = client.begin(EXPORT).await;
    pieces.send(export().slice(..9)).unwrap();
    f.uses(|bytes| bytes > 0).await;
    answer.abort();
    f.uses(|bytes| bytes == 0).await;
    assert_taken(client.call(EXPORT, &export()).await).await;
    client.ended().await;
    f.is_clean();
}

/// The prefix of a message, and nothing more.
fn announced(length: u32) -> Bytes {
    [&[0], &length.to_be_bytes()[..]].concat().into()
}

#[tokio::test(start_paused = true)]
async fn announced_messages_hold_no_memory_and_end_when_nothing_follows() {
    let f = fixture(ServerKeepalive::default(), Target::Takes);
    let mut client = f.connect().await;
    let mut announcing = Vec::new();
    for length in [1 << 20, 512 << 10, 64 << 10, 256] {
        let (pieces, answer) = client.begin(EXPORT).await;
        pieces.send(announced(length)).unwrap();
        announcing.push((pieces, answer));
    }
    assert_taken(client.call(EXPORT, &export()).await).await;
    assert_eq!(f.budget.used(), 0);
    for (_pieces, answer) in announcing {
        let answer = tokio::time::timeout(20 * SECOND, answer).await.expect("it ends").unwrap().unwrap();
        assert_eq!(answer.headers()["grpc-status"], "4");
    }
    client.ended().await;
    f.is_clean();
}

#[tokio::test(start_paused = true)]
async fn message_is_charged_as_it_arrives_and_never_for_more_than_it_has() {
    let f = fixture(ServerKeepalive::default(), Target::Hangs);
    let mut client = f.connect().await;
    let spans = part(0..10_000, Charge::exempt()).bytes;
    let (pieces, answer) = client.begin(EXPORT).await;
    let mut message = framed(&spans);
    pieces.send(message.split_to(5 + 1000)).unwrap();
    f.uses(|bytes| bytes == 16_000).await;
    pieces.send(message.split_to(19_000)).unwrap();
    f.uses(|bytes| bytes == 32_000).await;
    pieces.send(message).unwrap();
    drop(pieces);
    f.uses(|bytes| bytes == spans.len() as u64).await;
    answer.abort();
    f.uses(|bytes| bytes == 0).await;
    client.ended().await;
    f.is_clean();
}

#[tokio::test(start_paused = true)]
async fn unfinished_messages_of_one_sender_leave_room_for_whole_ones() {
    let f = fixture(ServerKeepalive::default(), Target::Takes);
    let mut client = f.connect().await;
    let mut unfinished = Vec::new();
    let half = Bytes::from(vec![0; 32 << 10]);
    for _ in 0..40 {
        let (pieces, answer) = client.begin(EXPORT).await;
        pieces.send(announced(64 << 10)).unwrap();
        pieces.send(half.clone()).unwrap();
        unfinished.push((pieces, answer));
    }
    let message = framed(&part(0..10_000, Charge::exempt()).bytes);
    assert_taken(client.call(EXPORT, &message).await).await;
    let limit = f.budget.limit();
    assert!((limit / 4..=limit / 2).contains(&f.budget.used()), "{} of {limit}", f.budget.used());
    drop(unfinished);
    client.ended().await;
    f.is_clean();
}

#[tokio::test(start_paused = true)]
async fn announcement_that_is_larger_than_all_memory_is_refused_at_once_for_good() {
    let f = fixture(ServerKeepalive::default(), Target::Takes);
    let mut client = f.connect().await;
    let (pieces, answer) = client.begin(EXPORT).await;
    pieces.send(announced((1 << 20) + 1)).unwrap();
    let began = tokio::time::Instant::now();
    let answer = answer.await.unwrap().unwrap();
    assert_eq!((answer.headers()["grpc-status"].to_str().unwrap(), began.elapsed()), ("8", Duration::ZERO));
    assert!(!answer.headers().contains_key("grpc-status-details-bin"), "there is no hint when");
    drop((pieces, answer));
    client.ended().await;
    f.is_clean();
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_cancelled_while_it_waits_for_a_pipeline_gives_its_memory_back() {
    let f = fixture(ServerKeepalive::default(), Target::Hangs);
    let mut client = f.connect().await;
    let mut waiting = Vec::new();
    for _ in 0..3 {
        let (pieces, answer) = client.begin(EXPORT).await;
        pieces.send(export()).unwrap();
        waiting.push(answer);
    }
    let one = PART_OVERHEAD_BYTES as u64;
    f.uses(|bytes| bytes == 3 * one).await;
    waiting.remove(1).abort();
    f.uses(|bytes| bytes == 2 * one).await;
    // The connection closes, and all its calls with it.
    client.wire.abort();
    client.server.await.unwrap();
    f.is_clean();
}

#[tokio::test(start_paused = true)]
async fn a_call_that_panics_is_reset_and_the_others_of_its_connection_go_on() {
    static BEFORE: AtomicBool = AtomicBool::new(false);
    let f = fixture(ServerKeepalive::default(), Target::PanicsOnce(&BEFORE));
    let mut client = f.connect().await;
    let (pieces, other) = client.begin(EXPORT).await;
    pieces.send(export().slice(..9)).unwrap();
    f.uses(|bytes| bytes > 0).await;
    let (whole, panics) = client.begin(EXPORT).await;
    whole.send(export()).unwrap();
    drop(whole);
    assert!(panics.await.unwrap().is_err(), "it is not left waiting");
    pieces.send(export().slice(9..)).unwrap();
    drop(pieces);
    assert_taken(other.await.unwrap().unwrap()).await;
    client.ended().await;
    f.is_clean();
}
