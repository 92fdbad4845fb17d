//! Requests in memory, on a paused clock, that are answered before they have arrived completely.

use std::{
    pin::Pin,
    task::{Context as TaskContext, Poll},
};

use bytes::Bytes;
use http::{Response, header::CONTENT_TYPE};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use hyper::client::conn as client;
use kubewake_config::{ComponentId, PipelineId};
use kubewake_otlp::Signal;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream},
    sync::mpsc,
    time::Instant,
};

use super::*;
use crate::core::{Allowance, Budget, Pipeline, PipelineSet, StatsRegistry, Transport};

/// Size limit of a body here.
const MAX: usize = 1 << 20;

/// A connection to a receiver, with the guards that keep its listener open.
fn connect(is_http2: bool) -> (DuplexStream, impl FnOnce()) {
    let id = PipelineId { signal: Signal::Traces, name: None };
    let allowance = Allowance { member: Budget::new(8 << 20, 0).join(), limiter: None };
    let intake = Arc::new(PipelineSet::default());
    intake.set_pipelines(Signal::Traces, vec![Pipeline::new(id, allowance, Arc::default())]);
    let stats = StatsRegistry::default().receiver(&ComponentId::new("otlp"), Transport::Http);
    let taker = Arc::new(RequestSubmitter::new(intake, stats));
    let settings = HttpServer { max_body_bytes: MAX as u64, ..HttpServer::default() };
    let live = Arc::new(ArcSwap::from_pointee(ActiveSettings { settings, tls: None, auth: None }));
    let peer = taker.sender_peer(([127, 0, 0, 1], 1).into());
    let context = HttpConnection { peer, active: live, submitter: taker, timers: TimerPool::default() };
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let (close, closing) = ShutdownSignal::with_trigger();
    if is_http2 {
        tokio::spawn(serve_http2(theirs, context, closing))
    } else {
        tokio::spawn(serve_http1(theirs, context, closing))
    };
    (ours, close)
}

/// Reads the next HTTP/1.1 response of a connection; it has a `content-length`.
async fn read_answer(stream: &mut DuplexStream) -> String {
    let mut answer = String::new();
    loop {
        let mut byte = [0];
        stream.read_exact(&mut byte).await.unwrap();
        answer.push(char::from(byte[0]));
        if let Some((head, body)) = answer.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
            if body.chars().count() == length.parse::<usize>().unwrap() {
                return answer;
            }
        }
    }
}

fn head(path: &str, length: usize, more: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n{more}\r\n"
    )
}

#[tokio::test(start_paused = true)]
async fn request_that_can_be_refused_by_its_head_is_refused_before_anything_follows() {
    for (path, length, status) in [("/v1/traces", MAX + 1, "413"), ("/v1/nothing", MAX, "404")] {
        let (mut stream, _close) = connect(false);
        let began = Instant::now();
        stream.write_all(head(path, length, "").as_bytes()).await.unwrap();
        let answer = read_answer(&mut stream).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
        assert!(status != "413" || answer.contains("larger than 1048576 bytes"), "{answer}");
        assert_eq!(began.elapsed(), Duration::ZERO, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn refused_request_that_is_finished_leaves_its_connection_in_use() {
    let (mut stream, _close) = connect(false);
    for (path, length, status) in [("/v1/nothing", MAX, "404"), ("/v1/traces", 2, "200")] {
        stream.write_all(head(path, length, "").as_bytes()).await.unwrap();
        let body = if status == "200" { b"{}".to_vec() } else { vec![b' '; length] };
        stream.write_all(&body).await.unwrap();
        let answer = read_answer(&mut stream).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn client_that_asks_before_it_sends_is_not_asked_for_a_body_that_is_too_large() {
    let (mut stream, _close) = connect(false);
    stream.write_all(head("/v1/traces", MAX + 1, "expect: 100-continue\r\n").as_bytes()).await.unwrap();
    let answer = read_answer(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn client_that_stops_after_the_answer_is_cut() {
    let (mut stream, _close) = connect(false);
    stream.write_all(head("/v1/traces", MAX + 1, "").as_bytes()).await.unwrap();
    read_answer(&mut stream).await;
    let began = Instant::now();
    assert_eq!(stream.read(&mut [0]).await.unwrap(), 0, "the connection is closed");
    assert!((1..10).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
}

/// A body that is sent piece by piece.
struct Pieces(mpsc::UnboundedReceiver<Bytes>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut TaskContext<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

#[tokio::test(start_paused = true)]
async fn stream_of_http2_that_is_too_large_is_answered_and_its_client_may_finish() {
    let (stream, _close) = connect(true);
    let (mut requests, connection) =
        client::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(async move { drop(connection.await) });
    let (pieces, body) = mpsc::unbounded_channel();
    let request =
        Request::post("http://test/v1/traces").header(CONTENT_TYPE, "application/x-protobuf").body(Pieces(body));
    let answer = tokio::spawn(requests.send_request(request.unwrap()));
    for _ in 0..5 {
        pieces.send(vec![0; MAX / 4].into()).unwrap();
    }
    let began = Instant::now();
    let answer: Response<Incoming> = answer.await.unwrap().unwrap();
    assert_eq!((answer.status().as_u16(), began.elapsed()), (413, Duration::ZERO));
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
    pieces.send(vec![0; MAX / 4].into()).expect("the stream was not reset under the client");
    drop(pieces);
    let words = answer.into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&words).contains("larger than 1048576 bytes"), "{words:?}");
}
