//! The body of an answer: pieces that are there already, or a stream that goes on.

use std::{
    collections::VecDeque,
    convert::Infallible,
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::sync::mpsc;

use crate::handler::in_flight::{HeldPlace, Place};

/// An answer of this size is taken by the connection's buffers.
const SHORT: u64 = 64 << 10;

/// An answer's body.
#[derive(Debug, Default)]
pub struct Body {
    kind: Kind,
    /// The place of the request, which is given back when the answer is written.
    _place: Option<HeldPlace>,
}

#[derive(Debug)]
enum Kind {
    /// Written one after the other, without being joined: a list is the bytes of its objects.
    Pieces { pieces: VecDeque<Bytes>, left: u64 },
    /// Made when it is their turn, so that a large answer is never in memory as a whole.
    Made(Made),
    /// Ends when its sender is dropped.
    Stream(mpsc::Receiver<Bytes>),
}

struct Made {
    pieces: PieceIterator,
    /// None if nobody knows.
    left: Option<u64>,
}

/// Pieces of an answer.
pub type PieceIterator = Box<dyn Iterator<Item = Bytes> + Send>;

impl fmt::Debug for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} bytes to be made", self.left)
    }
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
        Kind::Pieces { pieces, left }.into()
    }

    /// Pieces that are made one after the other, together so long.
    pub fn made(length: u64, pieces: impl Iterator<Item = Bytes> + Send + 'static) -> Self {
        Kind::Made(Made { pieces: Box::new(pieces), left: Some(length) }).into()
    }

    /// Pieces that are made one after the other.
    pub fn made_of_any_length(pieces: impl Iterator<Item = Bytes> + Send + 'static) -> Self {
        Kind::Made(Made { pieces: Box::new(pieces), left: None }).into()
    }

    /// Keeps the place of its request until it is written. One that is there already, and short, is as good as written.
    #[must_use]
    pub fn held_by(self, place: Place) -> Self {
        match &self.kind {
            Kind::Pieces { left, .. } if *left <= SHORT => self,
            _ => Self { _place: place.hold(), ..self },
        }
    }

    /// Whatever is sent, as it is sent.
    pub fn stream(receiver: mpsc::Receiver<Bytes>) -> Self {
        Kind::Stream(receiver).into()
    }

    /// How long it is, if that is known.
    pub fn len(&self) -> Option<u64> {
        match &self.kind {
            Kind::Pieces { left, .. } => Some(*left),
            Kind::Made(Made { left, .. }) => *left,
            Kind::Stream(_) => None,
        }
    }

    /// Whether it is known to be empty.
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }

    /// The pieces, if it is no stream.
    pub fn into_pieces(self) -> Result<PieceIterator, Self> {
        match self.kind {
            Kind::Pieces { pieces, .. } => Ok(Box::new(pieces.into_iter())),
            Kind::Made(made) => Ok(made.pieces),
            stream @ Kind::Stream(_) => Err(stream.into()),
        }
    }
}

impl From<Kind> for Body {
    fn from(kind: Kind) -> Self {
        Self { kind, _place: None }
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
        let piece = match &mut self.get_mut().kind {
            Kind::Pieces { pieces, left } => {
                let piece = pieces.pop_front();
                *left -= piece.as_ref().map_or(0, Bytes::len) as u64;
                piece
            }
            Kind::Made(Made { pieces, left }) => {
                let piece = pieces.next();
                let length = piece.as_ref().map_or(0, Bytes::len) as u64;
                *left = left.map(|left| left.saturating_sub(length));
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
