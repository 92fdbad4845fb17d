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

/// An answer's body.
#[derive(Debug, Default)]
pub struct Body(Kind);

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
    pieces: Box<dyn Iterator<Item = Bytes> + Send>,
    left: u64,
}

impl fmt::Debug for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes to be made", self.left)
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
        Self(Kind::Pieces { pieces, left })
    }

    /// Pieces that are made one after the other, together so long.
    pub fn made(length: u64, pieces: impl Iterator<Item = Bytes> + Send + 'static) -> Self {
        Self(Kind::Made(Made { pieces: Box::new(pieces), left: length }))
    }

    /// Whatever is sent, as it is sent.
    pub fn stream(receiver: mpsc::Receiver<Bytes>) -> Self {
        Self(Kind::Stream(receiver))
    }

    /// How long it is, if that is known.
    pub fn len(&self) -> Option<u64> {
        match &self.0 {
            Kind::Pieces { left, .. } | Kind::Made(Made { left, .. }) => Some(*left),
            Kind::Stream(_) => None,
        }
    }

    /// Whether it is known to be empty.
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }

    /// All of it in one, unless it is a stream.
    pub fn into_bytes(self) -> Bytes {
        let mut pieces = self.into_pieces().unwrap_or_default();
        match pieces.len() {
            0 | 1 => pieces.pop_front().unwrap_or_default(),
            _ => pieces.iter().flatten().copied().collect(),
        }
    }

    /// The pieces, if it is no stream.
    pub fn into_pieces(self) -> Result<VecDeque<Bytes>, Self> {
        match self.0 {
            Kind::Pieces { pieces, .. } => Ok(pieces),
            Kind::Made(made) => Ok(made.pieces.collect()),
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
            Kind::Made(Made { pieces, left }) => {
                let piece = pieces.next();
                *left = left.saturating_sub(piece.as_ref().map_or(0, Bytes::len) as u64);
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
