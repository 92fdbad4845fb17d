//! Accepts unary calls, which are answered as soon as their bytes have arrived.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::{Buf, Bytes};
use http::{HeaderMap, HeaderValue, Request, Response, header};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use hyper::{body::Incoming, server::conn::http2, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};

use crate::{gzip, message_joiner::MessageJoiner, settings};

/// The frames of one message, without the prefix.
pub(crate) type MessageFrames = Vec<Bytes>;

/// Serves connections until it is dropped.
pub(crate) async fn accept(listener: TcpListener, joiner: Arc<MessageJoiner>, inflate: bool) {
    loop {
        if let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, Arc::clone(&joiner), inflate));
        }
    }
}

async fn serve(stream: TcpStream, joiner: Arc<MessageJoiner>, inflate: bool) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| handle_export(request, Arc::clone(&joiner), inflate));
    let _ = http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(settings::STREAM_WINDOW_BYTES)
        .initial_connection_window_size(settings::CONNECTION_WINDOW_BYTES)
        .max_frame_size(settings::MAX_FRAME_BYTES)
        .auto_date_header(false)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn handle_export(
    request: Request<Incoming>,
    joiner: Arc<MessageJoiner>,
    inflate: bool,
) -> Result<Response<EmptyResponse>, Infallible> {
    let taken = match read(request.into_body(), inflate).await {
        Some(message) => {
            joiner.add(message).await;
            true
        }
        None => false,
    };
    let status = if taken { "0" } else { "13" };
    let mut response = Response::new(EmptyResponse::new(HeaderValue::from_static(status)));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    Ok(response)
}

/// Reads the message's frames as they arrived, without a copy.
async fn read(mut body: Incoming, inflate: bool) -> Option<MessageFrames> {
    let mut frames = Vec::with_capacity(8);
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.ok()?.into_data() {
            frames.push(data);
        }
    }
    cut_prefix(&mut frames);
    if inflate { gzip::inflate(frames).ok().map(|inflated| vec![inflated]) } else { Some(frames) }
}

/// Removes the first 5 bytes, which may be spread over frames.
fn cut_prefix(frames: &mut MessageFrames) {
    let mut left = 5;
    for frame in frames {
        let here = left.min(frame.len());
        frame.advance(here);
        left -= here;
        if left == 0 {
            return;
        }
    }
}

/// An empty message, followed by the status.
pub(crate) struct EmptyResponse {
    message: Option<Bytes>,
    status: Option<HeaderValue>,
}

impl EmptyResponse {
    fn new(status: HeaderValue) -> Self {
        Self { message: Some(Bytes::from_static(&[0; 5])), status: Some(status) }
    }
}

impl Body for EmptyResponse {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(message) = self.message.take() {
            return Poll::Ready(Some(Ok(Frame::data(message))));
        }
        Poll::Ready(self.status.take().map(|status| {
            let mut trailers = HeaderMap::with_capacity(1);
            trailers.insert("grpc-status", status);
            Ok(Frame::trailers(trailers))
        }))
    }
}
