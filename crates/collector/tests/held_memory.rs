//! The memory that an HTTP/2 frame keeps alive.
//!
//! The gRPC receiver keeps messages that arrived in one frame of 32 KiB or more where they were read, and
//! charges twice their length for it. That is right only as long as hyper and h2 read a frame into a buffer of
//! its own size or of 64 KiB. This test measures it.

#![allow(clippy::unwrap_used, missing_docs)]

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, body::Incoming, client, server, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kubewake_allocation_meter::{CountingAllocator, live_bytes};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const MAX_FRAME: u32 = 128 << 10;

#[tokio::test]
async fn a_large_frame_holds_on_to_at_most_twice_its_length() {
    for size in [32 << 10, 46_000, 64 << 10, 100_000] {
        let frames = receive(size, 200).await;
        let whole: Vec<_> = frames.iter().filter(|frame| frame.len() >= 32 << 10).collect();
        assert!(whole.len() >= 190, "{size}: most messages are one frame, {} were", whole.len());
        let held: usize = whole.iter().map(|frame| frame.len()).sum();
        let with = live_bytes();
        drop(frames);
        let freed = with - live_bytes();
        assert!(freed <= 2 * held, "{size}: {held} bytes held on to {freed}");
    }
}

/// The frames in which `count` requests of `size` bytes arrive, all of them kept. Small ones are dropped.
async fn receive(size: usize, count: usize) -> Vec<Bytes> {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let (near, far) = tokio::io::duplex(1 << 20);
    let keep = kept.clone();
    let service = service_fn(move |mut request: Request<Incoming>| {
        let keep = keep.clone();
        async move {
            while let Some(Ok(frame)) = request.body_mut().frame().await {
                let data = frame.into_data().unwrap_or_default();
                if data.len() >= 32 << 10 {
                    keep.lock().unwrap().push(data);
                }
            }
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::new())))
        }
    });
    let serving = server::conn::http2::Builder::new(TokioExecutor::new())
        .max_frame_size(MAX_FRAME)
        .initial_stream_window_size(1 << 20)
        .initial_connection_window_size(2 << 20)
        .serve_connection(TokioIo::new(far), service);
    let server = tokio::spawn(serving);
    let (mut sender, connection) =
        client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(near)).await.unwrap();
    let client = tokio::spawn(connection);
    for _ in 0..count {
        let request = Request::post("http://localhost/").body(Full::new(Bytes::from(vec![7; size]))).unwrap();
        let response = sender.send_request(request).await.unwrap();
        response.into_body().collect().await.unwrap();
    }
    drop(sender);
    client.await.unwrap().unwrap();
    server.await.unwrap().unwrap();
    Arc::into_inner(kept).unwrap().into_inner().unwrap()
}
