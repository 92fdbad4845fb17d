//! A request's body.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// A body of pieces that leave as they are, one after another. Nothing is copied.
#[derive(Debug, Default)]
pub(crate) struct Payload {
    pieces: std::vec::IntoIter<Bytes>,
    left: u64,
}

impl Payload {
    /// A body of these pieces.
    pub(crate) fn new(pieces: Vec<Bytes>) -> Self {
        let left = pieces.iter().map(|piece| piece.len() as u64).sum();
        Self { pieces: pieces.into_iter(), left }
    }
}

impl From<Bytes> for Payload {
    fn from(whole: Bytes) -> Self {
        Self::new(vec![whole])
    }
}

impl Body for Payload {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.pieces.by_ref().find(|piece| !piece.is_empty());
        self.left -= piece.as_ref().map_or(0, |piece| piece.len() as u64);
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
