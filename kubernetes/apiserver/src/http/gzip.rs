//! Compresses a response chunk by chunk, so that it is never in memory as a whole.

use std::io::Write as _;

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};

use super::body::ChunkIterator;

/// The size of compressed chunks.
const GZIP_CHUNK_BYTES: usize = 16 << 10;

pub struct GzipChunks {
    pieces: ChunkIterator,
    /// None once the end is written.
    encoder: Option<GzEncoder<Vec<u8>>>,
}

impl GzipChunks {
    /// Compresses chunks when they are due.
    pub fn new(pieces: ChunkIterator) -> Self {
        // The fastest level: the network is rarely slower than that.
        Self { pieces, encoder: Some(GzEncoder::new(Vec::new(), Compression::fast())) }
    }
}

impl Iterator for GzipChunks {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        loop {
            let encoder = self.encoder.as_mut()?;
            match self.pieces.next() {
                Some(piece) => {
                    // Writing to memory cannot fail.
                    encoder.write_all(&piece).ok()?;
                    if encoder.get_ref().len() >= GZIP_CHUNK_BYTES {
                        return Some(std::mem::take(encoder.get_mut()).into());
                    }
                }
                None => return self.encoder.take()?.finish().ok().map(Bytes::from),
            }
        }
    }
}
