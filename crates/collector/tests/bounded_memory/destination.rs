//! A destination that takes everything, and keeps nothing of it.

use std::{convert::Infallible, net::SocketAddr};

use bytes::Bytes;
use http::HeaderMap;
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, body::Incoming, server, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;

/// What it takes before it has read it, at most.
const WINDOW: u32 = 64 << 10;

/// Serves gRPC, or HTTP/1.1, until the runtime ends.
pub async fn serve(grpc: bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let io = TokioIo::new(stream);
            tokio::spawn(async move {
                // A client that goes away is no failure here.
                if grpc {
                    let mut server = server::conn::http2::Builder::new(TokioExecutor::new());
                    server.initial_stream_window_size(WINDOW).initial_connection_window_size(WINDOW);
                    let _ = server.serve_connection(io, service_fn(answer_grpc)).await;
                } else {
                    let _ = server::conn::http1::Builder::new().serve_connection(io, service_fn(answer_http)).await;
                }
            });
        }
    });
    address
}

async fn discard(mut request: Request<Incoming>) {
    while let Some(Ok(_)) = request.body_mut().frame().await {}
}

async fn answer_grpc(
    request: Request<Incoming>,
) -> Result<Response<impl http_body::Body<Data = Bytes, Error = Infallible>>, Infallible> {
    discard(request).await;
    let trailers = async { Some(Ok(HeaderMap::from_iter([("grpc-status".parse().unwrap(), "0".parse().unwrap())]))) };
    let mut response = Response::new(Full::new(Bytes::from_static(&[0; 5])).with_trailers(trailers));
    response.headers_mut().insert("content-type", "application/grpc".parse().unwrap());
    Ok(response)
}

async fn answer_http(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    discard(request).await;
    Ok(Response::new(Full::default()))
}
