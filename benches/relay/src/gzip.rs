//! What joining costs when requests are compressed.

use std::io::{self, Read, Write};

use bytes::{Buf, Bytes};
use flate2::{Compression, read::GzDecoder, write::GzEncoder};

/// Inflated telemetry is about ten times as large.
const USUAL_RATIO: usize = 10;

/// The bytes of a compressed message that came in frames.
pub(crate) fn inflate(frames: Vec<Bytes>) -> io::Result<Bytes> {
    let length: usize = frames.iter().map(Bytes::len).sum();
    let mut inflated = Vec::with_capacity(length * USUAL_RATIO);
    GzDecoder::new(Frames(frames.into_iter().collect())).read_to_end(&mut inflated)?;
    Ok(inflated.into())
}

/// All frames as one compressed message.
pub(crate) fn deflate(frames: &[Bytes]) -> io::Result<Bytes> {
    let length: usize = frames.iter().map(Bytes::len).sum();
    let mut encoder = GzEncoder::new(Vec::with_capacity(length / USUAL_RATIO), Compression::default());
    frames.iter().try_for_each(|frame| encoder.write_all(frame))?;
    encoder.finish().map(Bytes::from)
}

struct Frames(std::collections::VecDeque<Bytes>);

impl Read for Frames {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(frame) = self.0.front_mut() {
            if frame.has_remaining() {
                let length = frame.len().min(buffer.len());
                frame.split_to(length).copy_to_slice(buffer.get_mut(..length).unwrap_or_default());
                return Ok(length);
            }
            self.0.pop_front();
        }
        Ok(0)
    }
}
