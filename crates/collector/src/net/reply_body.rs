//! Response bodies of the servers.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

/// A small response: empty, some bytes, or some bytes and trailers.
#[derive(Default)]
pub struct ReplyBody {
    data: Option<Bytes>,
    trailers: Option<HeaderMap>,
    /// Awaited after the data, for streams of events; may return more data at the end.
    last: Option<Pin<Box<dyn Future<Output = Option<Bytes>> + Send>>>,
}

impl ReplyBody {
    pub fn empty() -> Self {
        Self::default()
    }

    pub fn full(data: impl Into<Bytes>) -> Self {
        Self { data: Some(data.into()).filter(|d| !d.is_empty()), ..Self::default() }
    }

    pub fn with_trailers(data: Bytes, trailers: HeaderMap) -> Self {
        Self { data: Some(data), trailers: Some(trailers), last: None }
    }

    /// A stream that sends data now, and at the end.
    pub fn streaming(
        data: Bytes,
        last: impl Future<Output = Option<Bytes>> + Send + 'static,
        trailers: HeaderMap,
    ) -> Self {
        Self { data: Some(data), trailers: Some(trailers), last: Some(Box::pin(last)) }
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        if let Some(data) = self.data.take() {
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        if let Some(last) = &mut self.last {
            let data = ready!(last.as_mut().poll(cx));
            self.last = None;
            if let Some(data) = data {
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
        }
        Poll::Ready(self.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        self.data.is_none() && self.trailers.is_none() && self.last.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        // With a known size HTTP would announce a length, and some clients then stop before the trailers.
        let unknown = self.last.is_some() || self.trailers.is_some();
        if unknown { SizeHint::new() } else { SizeHint::with_exact(self.data.as_ref().map_or(0, Bytes::len) as u64) }
    }
}
