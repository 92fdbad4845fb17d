//! Compression: the cost of joining compressed requests.

use std::io::{self, Read, Write};

use bytes::{Buf, Bytes};
use flate2::{Compression, read::GzDecoder, write::GzEncoder};

/// Usual ratio of inflated to compressed telemetry.
const USUAL_RATIO: usize = 10;

/// Inflates a compressed message that arrived in frames.
pub(crate) fn inflate(frames: Vec<Bytes>) -> io::Result<Bytes> {
    let length: usize = frames.iter().map(Bytes::len).sum();
    let mut inflated = Vec::with_capacity(length * USUAL_RATIO);
    GzDecoder::new(FrameReader(frames.into_iter().collect())).read_to_end(&mut inflated)?;
    Ok(inflated.into())
}

/// Compresses all frames as one message.
pub(crate) fn deflate(frames: &[Bytes]) -> io::Result<Bytes> {
    let length: usize = frames.iter().map(Bytes::len).sum();
    let mut encoder = GzEncoder::new(Vec::with_capacity(length / USUAL_RATIO), Compression::default());
    frames.iter().try_for_each(|frame| encoder.write_all(frame))?;
    encoder.finish().map(Bytes::from)
}

struct FrameReader(std::collections::VecDeque<Bytes>);

impl Read for FrameReader {
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
