//! One HTTP/2 connection to the backend.

use std::{
    collections::VecDeque,
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use anyhow::ensure;
use bytes::Bytes;
use http::{Method, Request, header};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{net::TcpStream, sync::Mutex};

use crate::{receive::MessageFrames, settings};

pub(crate) const TRACES_PATH: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
pub(crate) const LOGS_PATH: &str = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";

pub(crate) struct Upstream {
    address: String,
    compressed: bool,
    /// The method that is called.
    path: &'static str,
    sender: Mutex<Option<SendRequest<FramesBody>>>,
}

impl Upstream {
    /// Connects when it is first used.
    pub(crate) fn new(address: String, compressed: bool, path: &'static str) -> Self {
        Self { address, compressed, path, sender: Mutex::new(None) }
    }

    /// Sends the frames as one message.
    pub(crate) async fn send(&self, message: MessageFrames) -> anyhow::Result<()> {
        let request = Request::builder()
            .method(Method::POST)
            .uri(format!("http://{}{}", self.address, self.path))
            .header(header::CONTENT_TYPE, "application/grpc")
            .header(header::TE, "trailers");
        let request = if self.compressed { request.header("grpc-encoding", "gzip") } else { request };
        let request = request.body(FramesBody::new(message, self.compressed))?;
        let response = self.sender().await?.send_request(request).await?;
        let (head, body) = response.into_parts();
        let body = body.collect().await?;
        let status = body.trailers().unwrap_or(&head.headers).get("grpc-status");
        ensure!(status.is_some_and(|status| status == "0"), "the backend responded with {status:?}");
        Ok(())
    }

    async fn sender(&self) -> anyhow::Result<SendRequest<FramesBody>> {
        let mut kept = self.sender.lock().await;
        if let Some(sender) = kept.as_ref().filter(|sender| !sender.is_closed()) {
            return Ok(sender.clone());
        }
        let stream = TcpStream::connect(&self.address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(settings::STREAM_WINDOW_BYTES)
            .initial_connection_window_size(settings::CONNECTION_WINDOW_BYTES)
            .max_frame_size(settings::MAX_FRAME_BYTES)
            .handshake(TokioIo::new(stream))
            .await?;
        tokio::spawn(connection);
        *kept = Some(sender.clone());
        Ok(sender)
    }
}

/// A body of frames that are sent as they arrived.
pub(crate) struct FramesBody {
    frames: VecDeque<Bytes>,
    left: u64,
}

impl FramesBody {
    fn new(message: MessageFrames, compressed: bool) -> Self {
        let length: usize = message.iter().map(Bytes::len).sum();
        let mut prefix = vec![u8::from(compressed)];
        prefix.extend_from_slice(&(length as u32).to_be_bytes());
        let mut frames = VecDeque::with_capacity(message.len() + 1);
        frames.push_back(Bytes::from(prefix));
        frames.extend(message);
        Self { frames, left: length as u64 + 5 }
    }
}

impl Body for FramesBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let frame = self.frames.pop_front();
        self.left -= frame.as_ref().map_or(0, Bytes::len) as u64;
        Poll::Ready(frame.map(|frame| Ok(Frame::data(frame))))
    }

    fn is_end_stream(&self) -> bool {
        self.frames.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
