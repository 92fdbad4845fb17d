//! Destinations that take everything, a part, or nothing, and keep nothing.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use http::HeaderMap;
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, body::Incoming, server, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kubewake_otlp::wire::put_bytes;
use tokio::net::TcpListener;

/// The HTTP/2 window: the most that it takes before it has read.
const WINDOW: u32 = 64 << 10;

/// Its message when it does not take everything.
const WORDS: [u8; 4 << 10] = [b'w'; 4 << 10];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    Takes,
    /// It reports that it did not take one record.
    TakesPart,
    /// It rejects the data as invalid.
    Refuses,
    /// It is busy at every other request.
    IsBusy,
}

/// A destination that runs until the end of the runtime.
pub struct Destination {
    pub address: SocketAddr,
    asked: Arc<AtomicUsize>,
}

impl Destination {
    /// Serves gRPC, or HTTP/1.1.
    pub async fn serve(is_grpc: bool, manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let io = TokioIo::new(stream);
                let count = count.clone();
                let manner = move || match count.fetch_add(1, Ordering::Relaxed) % 2 {
                    1 if manner == Manner::IsBusy => Manner::Takes,
                    _ => manner,
                };
                tokio::spawn(async move {
                    // A client that goes away is no failure here.
                    if is_grpc {
                        let mut server = server::conn::http2::Builder::new(TokioExecutor::new());
                        server.initial_stream_window_size(WINDOW).initial_connection_window_size(WINDOW);
                        let answer = service_fn(|request| answer_grpc(request, manner()));
                        let _ = server.serve_connection(io, answer).await;
                    } else {
                        let answer = service_fn(|request| answer_http(request, manner()));
                        let _ = server::conn::http1::Builder::new().serve_connection(io, answer).await;
                    }
                });
            }
        });
        Self { address, asked }
    }

    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

async fn discard(request: Request<Incoming>) {
    count_lines(request).await;
}

/// Discards a body, and counts its lines.
async fn count_lines(mut request: Request<Incoming>) -> usize {
    let mut lines = 0;
    while let Some(Ok(frame)) = request.body_mut().frame().await {
        lines += frame.data_ref().map_or(0, |data| data.iter().filter(|byte| **byte == b'\n').count());
    }
    lines
}

/// The answer to a bulk request. It has an item for each document, which is two lines.
async fn answer_bulk(request: Request<Incoming>, manner: Manner) -> (u16, Vec<u8>) {
    const STORED: &str = r#"{"create":{"status":201}}"#;
    let is_compressed = request.headers().contains_key("content-encoding");
    let documents = count_lines(request).await / 2;
    let item = |status: u16| {
        let reason = String::from_utf8_lossy(&WORDS);
        format!(r#"{{"create":{{"status":{status},"error":{{"type":"{reason}","reason":"{reason}"}}}}}}"#)
    };
    match manner {
        Manner::Refuses => (400, WORDS.to_vec()),
        Manner::TakesPart | Manner::IsBusy if documents > 0 && !is_compressed => {
            let first = item(if manner == Manner::TakesPart { 400 } else { 429 });
            let rest = vec![STORED; documents - 1].join(",");
            let separator = if rest.is_empty() { "" } else { "," };
            (200, format!(r#"{{"errors":true,"items":[{first}{separator}{rest}]}}"#).into_bytes())
        }
        _ => (200, br#"{"errors":false}"#.to_vec()),
    }
}

/// A response which reports that one record was not taken, and why.
fn partial_success() -> Vec<u8> {
    let mut partial = vec![0x08, 1];
    put_bytes(&mut partial, 2, &WORDS);
    let mut answer = Vec::new();
    put_bytes(&mut answer, 1, &partial);
    answer
}

async fn answer_grpc(
    request: Request<Incoming>,
    manner: Manner,
) -> Result<Response<impl http_body::Body<Data = Bytes, Error = Infallible>>, Infallible> {
    discard(request).await;
    let (status, message) = match manner {
        Manner::Takes => ("0", Vec::new()),
        Manner::TakesPart => ("0", partial_success()),
        Manner::Refuses => ("3", Vec::new()),
        Manner::IsBusy => ("14", Vec::new()),
    };
    let mut trailers = HeaderMap::from_iter([("grpc-status".parse().unwrap(), status.parse().unwrap())]);
    if status != "0" {
        trailers.insert("grpc-message", http::HeaderValue::from_bytes(&WORDS).unwrap());
    }
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    let body = Bytes::from([&[0], &length[..], &message].concat());
    let mut response = Response::new(Full::new(body).with_trailers(async { Some(Ok(trailers)) }));
    response.headers_mut().insert("content-type", "application/grpc".parse().unwrap());
    Ok(response)
}

async fn answer_http(request: Request<Incoming>, manner: Manner) -> Result<Response<Full<Bytes>>, Infallible> {
    let (status, body) = if request.uri().path().ends_with("/_bulk") {
        answer_bulk(request, manner).await
    } else {
        discard(request).await;
        match manner {
            Manner::Takes => (200, Vec::new()),
            Manner::TakesPart => (200, partial_success()),
            Manner::Refuses => (400, WORDS.to_vec()),
            Manner::IsBusy => (503, WORDS.to_vec()),
        }
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status.try_into().unwrap();
    response.headers_mut().insert("content-type", "application/x-protobuf".parse().unwrap());
    Ok(response)
}
