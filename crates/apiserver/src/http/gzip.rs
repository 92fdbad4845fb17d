//! Compression of an answer piece by piece, so that it is never in memory as a whole.

use std::io::Write as _;

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};

use super::body::PieceIterator;

/// What compressed data is passed on in.
const PIECE: usize = 16 << 10;

/// Pieces, compressed.
pub struct Gzip {
    pieces: PieceIterator,
    /// None once the end is written.
    encoder: Option<GzEncoder<Vec<u8>>>,
}

impl Gzip {
    /// Compresses pieces as they are asked for.
    pub fn new(pieces: PieceIterator) -> Self {
        // The fastest level: the network is rarely slower than that.
        Self { pieces, encoder: Some(GzEncoder::new(Vec::new(), Compression::fast())) }
    }
}

impl Iterator for Gzip {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        loop {
            let encoder = self.encoder.as_mut()?;
            match self.pieces.next() {
                Some(piece) => {
                    // Memory takes every write.
                    encoder.write_all(&piece).ok()?;
                    if encoder.get_ref().len() >= PIECE {
                        return Some(std::mem::take(encoder.get_mut()).into());
                    }
                }
                None => return self.encoder.take()?.finish().ok().map(Bytes::from),
            }
        }
    }
}
