//! An HTTP request body of several pieces.

use std::{
    collections::VecDeque,
    convert::Infallible,
    io::IoSlice,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};

/// A body of pieces that are sent one after another without copies.
///
/// All pieces are one frame to HTTP/2, so that a batch of a hundred requests is sent in a few large writes
/// instead of a hundred.
#[derive(Debug, Default)]
pub(crate) struct RequestBody(Rope);

impl RequestBody {
    pub(crate) fn new(pieces: Vec<Bytes>) -> Self {
        let left = pieces.iter().map(Bytes::len).sum();
        let mut pieces = VecDeque::from(pieces);
        // `chunk` must not be empty while there is more.
        pieces.retain(|piece| !piece.is_empty());
        Self(Rope { pieces, left })
    }
}

impl From<Bytes> for RequestBody {
    fn from(whole: Bytes) -> Self {
        Self::new(vec![whole])
    }
}

impl Body for RequestBody {
    type Data = Rope;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Rope>, Infallible>>> {
        let rope = std::mem::take(&mut self.0);
        Poll::Ready(rope.has_remaining().then(|| Ok(Frame::data(rope))))
    }

    fn is_end_stream(&self) -> bool {
        !self.0.has_remaining()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.left as u64)
    }
}

/// Pieces that are written as if they were one.
#[derive(Debug, Default)]
pub(crate) struct Rope {
    pieces: VecDeque<Bytes>,
    left: usize,
}

impl Buf for Rope {
    fn remaining(&self) -> usize {
        self.left
    }

    fn chunk(&self) -> &[u8] {
        self.pieces.front().map_or(&[], |piece| piece)
    }

    fn chunks_vectored<'a>(&'a self, out: &mut [IoSlice<'a>]) -> usize {
        let filled = out.iter_mut().zip(&self.pieces).map(|(slot, piece)| *slot = IoSlice::new(piece));
        filled.count()
    }

    fn advance(&mut self, mut by: usize) {
        self.left = self.left.saturating_sub(by);
        while let Some(front) = self.pieces.front_mut() {
            if by < front.len() {
                front.advance(by);
                return;
            }
            by -= front.len();
            self.pieces.pop_front();
        }
    }
}
