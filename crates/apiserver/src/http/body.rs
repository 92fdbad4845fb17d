//! The body of an answer: pieces that are there already, or a stream that goes on.

use std::{
    collections::VecDeque,
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::sync::mpsc;

/// An answer's body.
#[derive(Debug, Default)]
pub struct Body(Kind);

#[derive(Debug)]
enum Kind {
    /// Written one after the other, without being joined: a list is the bytes of its objects.
    Pieces { pieces: VecDeque<Bytes>, left: u64 },
    /// Ends when its sender is dropped.
    Stream(mpsc::Receiver<Bytes>),
}

impl Default for Kind {
    fn default() -> Self {
        Kind::Pieces { pieces: VecDeque::new(), left: 0 }
    }
}

impl Body {
    /// Pieces one after the other.
    pub fn pieces(pieces: impl IntoIterator<Item = Bytes>) -> Self {
        let pieces: VecDeque<Bytes> = pieces.into_iter().filter(|piece| !piece.is_empty()).collect();
        let left = pieces.iter().map(|piece| piece.len() as u64).sum();
        Self(Kind::Pieces { pieces, left })
    }

    /// Whatever is sent, as it is sent.
    pub fn stream(receiver: mpsc::Receiver<Bytes>) -> Self {
        Self(Kind::Stream(receiver))
    }

    /// How long it is, if that is known.
    pub fn len(&self) -> Option<u64> {
        match &self.0 {
            Kind::Pieces { left, .. } => Some(*left),
            Kind::Stream(_) => None,
        }
    }

    /// Whether it is known to be empty.
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }

    /// The pieces, if it is no stream.
    pub fn into_pieces(self) -> Result<VecDeque<Bytes>, Self> {
        match self.0 {
            Kind::Pieces { pieces, .. } => Ok(pieces),
            stream @ Kind::Stream(_) => Err(Self(stream)),
        }
    }
}

impl<T: Into<Bytes>> From<T> for Body {
    fn from(bytes: T) -> Self {
        Self::pieces([bytes.into()])
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = match &mut self.get_mut().0 {
            Kind::Pieces { pieces, left } => {
                let piece = pieces.pop_front();
                *left -= piece.as_ref().map_or(0, Bytes::len) as u64;
                piece
            }
            Kind::Stream(receiver) => match receiver.poll_recv(cx) {
                Poll::Ready(piece) => piece,
                Poll::Pending => return Poll::Pending,
            },
        };
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        self.len().map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
