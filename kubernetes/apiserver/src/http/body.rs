//! Response bodies: chunks that exist already, or a stream.

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

use crate::handler::in_flight::{HeldPermit, InFlightPermit};

/// A response of this size fits into the connection's buffers.
const MAX_BUFFERED_BODY_BYTES: u64 = 64 << 10;

#[derive(Debug, Default)]
pub struct Body {
    kind: ResponseBodyKind,
    /// The permit of the request, which is released when the response is written.
    _place: Option<HeldPermit>,
}

#[derive(Debug)]
enum ResponseBodyKind {
    /// Chunks are written one after the other without being joined: a list is the bytes of its objects.
    Chunks { pieces: VecDeque<Bytes>, left: u64 },
    /// Chunks are produced when they are due, so that a large response is never in memory as a whole.
    Lazy(LazyChunks),
    /// The stream ends when its sender is dropped.
    Stream(mpsc::Receiver<Bytes>),
}

struct LazyChunks {
    pieces: ChunkIterator,
    left: Option<u64>,
}

pub type ChunkIterator = Box<dyn Iterator<Item = Bytes> + Send>;

impl fmt::Debug for LazyChunks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} bytes to be made", self.left)
    }
}

impl Default for ResponseBodyKind {
    fn default() -> Self {
        ResponseBodyKind::Chunks { pieces: VecDeque::new(), left: 0 }
    }
}

impl Body {
    /// A body of several chunks.
    pub fn from_chunks(pieces: impl IntoIterator<Item = Bytes>) -> Self {
        let pieces: VecDeque<Bytes> = pieces.into_iter().filter(|piece| !piece.is_empty()).collect();
        let left = pieces.iter().map(|piece| piece.len() as u64).sum();
        ResponseBodyKind::Chunks { pieces, left }.into()
    }

    /// Chunks that are produced when they are due, with a known total length.
    pub fn lazy_with_length(length: u64, pieces: impl Iterator<Item = Bytes> + Send + 'static) -> Self {
        ResponseBodyKind::Lazy(LazyChunks { pieces: Box::new(pieces), left: Some(length) }).into()
    }

    /// Chunks that are produced when they are due.
    pub fn lazy(pieces: impl Iterator<Item = Bytes> + Send + 'static) -> Self {
        ResponseBodyKind::Lazy(LazyChunks { pieces: Box::new(pieces), left: None }).into()
    }

    /// Keeps the request's permit until the body is written. A short body in memory counts as written.
    #[must_use]
    pub fn holding_permit(self, place: InFlightPermit) -> Self {
        match &self.kind {
            ResponseBodyKind::Chunks { left, .. } if *left <= MAX_BUFFERED_BODY_BYTES => self,
            _ => Self { _place: place.hold_while_writing(), ..self },
        }
    }

    /// A stream of whatever is sent.
    pub fn from_receiver(receiver: mpsc::Receiver<Bytes>) -> Self {
        ResponseBodyKind::Stream(receiver).into()
    }

    /// The length, if it is known.
    pub fn len(&self) -> Option<u64> {
        match &self.kind {
            ResponseBodyKind::Chunks { left, .. } => Some(*left),
            ResponseBodyKind::Lazy(LazyChunks { left, .. }) => *left,
            ResponseBodyKind::Stream(_) => None,
        }
    }

    /// Whether the body is known to be empty.
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }

    /// The chunks, unless the body is a stream.
    pub fn into_chunks(self) -> Result<ChunkIterator, Self> {
        match self.kind {
            ResponseBodyKind::Chunks { pieces, .. } => Ok(Box::new(pieces.into_iter())),
            ResponseBodyKind::Lazy(made) => Ok(made.pieces),
            stream @ ResponseBodyKind::Stream(_) => Err(stream.into()),
        }
    }
}

impl From<ResponseBodyKind> for Body {
    fn from(kind: ResponseBodyKind) -> Self {
        Self { kind, _place: None }
    }
}

impl<T: Into<Bytes>> From<T> for Body {
    fn from(bytes: T) -> Self {
        Self::from_chunks([bytes.into()])
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = match &mut self.get_mut().kind {
            ResponseBodyKind::Chunks { pieces, left } => {
                let piece = pieces.pop_front();
                *left -= piece.as_ref().map_or(0, Bytes::len) as u64;
                piece
            }
            ResponseBodyKind::Lazy(LazyChunks { pieces, left }) => {
                let piece = pieces.next();
                let length = piece.as_ref().map_or(0, Bytes::len) as u64;
                *left = left.map(|left| left.saturating_sub(length));
                piece
            }
            ResponseBodyKind::Stream(receiver) => match receiver.poll_recv(cx) {
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
