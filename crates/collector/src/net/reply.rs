//! The bodies that our servers answer with.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

/// A small answer: nothing, some bytes, or some bytes and trailers.
#[derive(Debug, Default)]
pub struct Reply {
    data: Option<Bytes>,
    trailers: Option<HeaderMap>,
    /// Stays open after the data until the connection ends, as a stream of events does.
    open: bool,
}

impl Reply {
    /// No body.
    pub fn empty() -> Self {
        Self::default()
    }

    /// A whole body.
    pub fn full(data: impl Into<Bytes>) -> Self {
        Self { data: Some(data.into()).filter(|d| !d.is_empty()), ..Self::default() }
    }

    /// A body with trailers.
    pub fn with_trailers(data: Bytes, trailers: HeaderMap) -> Self {
        Self { data: Some(data), trailers: Some(trailers), open: false }
    }

    /// A stream of which nothing more comes after the first bytes.
    pub fn held_open(data: Bytes) -> Self {
        Self { data: Some(data), trailers: None, open: true }
    }
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        if let Some(data) = self.data.take() {
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        if self.open {
            return Poll::Pending;
        }
        Poll::Ready(self.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        self.data.is_none() && self.trailers.is_none() && !self.open
    }

    fn size_hint(&self) -> SizeHint {
        // With a known size HTTP would announce a length, and there are clients that then stop before the trailers.
        let unknown = self.open || self.trailers.is_some();
        if unknown { SizeHint::new() } else { SizeHint::with_exact(self.data.as_ref().map_or(0, Bytes::len) as u64) }
    }
}
