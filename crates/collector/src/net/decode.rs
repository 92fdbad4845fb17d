//! Decompression of what strangers send.
//!
//! *Guarantees.* Never more than `max` bytes come out, and every byte was reserved before it was allocated. A body
//! that would be larger is an error as soon as that shows; one whose header already says so costs nothing.

use std::io::{self, Read};

use kubewake_config::model::Compression;

use crate::core::Refusal;

/// Why a body could not be decompressed.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// It is larger than allowed.
    #[error("the body is larger than {0} bytes once it is decompressed")]
    TooLarge(usize),
    /// It is not what it says it is.
    #[error("the body is not valid {algorithm}: {source}")]
    Corrupt {
        /// What it says it is.
        algorithm: &'static str,
        /// What is wrong.
        source: io::Error,
    },
    /// There is no memory for it now.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// Windows of Zstandard larger than 8 MiB are refused: the decoder must hold a window whatever comes out of it.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

/// Deflate cannot shrink by more than this factor, so that a larger promise in a gzip trailer is a lie.
const DEFLATE_MAX_RATIO: usize = 1032;

/// How a body of Snappy frames begins. One without this is a single block: the name `snappy` is used for both.
const SNAPPY_FRAMES: &[u8] = b"\xff\x06\x00\x00sNaPpY";

/// The algorithm that a `content-encoding` or `grpc-encoding` names. Names in upper case are unknown, as in the Collector,
/// although HTTP makes no difference: what one receiver refuses must not depend on which of the two runs.
pub fn algorithm(name: &str) -> Option<Compression> {
    Some(match name {
        "" => Compression::None,
        "gzip" => Compression::Gzip,
        "zstd" => Compression::Zstd,
        "zlib" | "deflate" => Compression::Zlib,
        "snappy" | "x-snappy-framed" => Compression::Snappy,
        "lz4" => Compression::Lz4,
        _ => return None,
    })
}

/// Decompresses `input` into at most `max` bytes. `reserve` is asked for each allocation before it is made.
pub fn decompress(
    algorithm: Compression,
    input: &[u8],
    max: usize,
    reserve: &mut dyn FnMut(usize) -> Result<(), Refusal>,
) -> Result<Vec<u8>, DecodeError> {
    let corrupt = |algorithm| move |source| DecodeError::Corrupt { algorithm, source };
    let first = input.len().saturating_mul(4);
    match algorithm {
        Compression::None => fill(input, input.len(), max, reserve, "identity"),
        Compression::Gzip => {
            let promised = gzip_size(input);
            if promised > max && promised <= input.len().saturating_mul(DEFLATE_MAX_RATIO) {
                return Err(DecodeError::TooLarge(max));
            }
            let first = if promised <= max { promised } else { first };
            fill(flate2::bufread::MultiGzDecoder::new(input), first, max, reserve, "gzip")
        }
        Compression::Zlib => fill(flate2::bufread::ZlibDecoder::new(input), first, max, reserve, "zlib"),
        Compression::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(input).map_err(corrupt("zstd"))?;
            decoder.window_log_max(ZSTD_WINDOW_LOG_MAX).map_err(corrupt("zstd"))?;
            fill(decoder, first, max, reserve, "zstd")
        }
        // No frame at all is a body of nothing.
        Compression::Snappy if input.is_empty() || input.starts_with(SNAPPY_FRAMES) => {
            fill(snap::read::FrameDecoder::new(input), first, max, reserve, "snappy")
        }
        Compression::Snappy => snappy_block(input, max, reserve),
        Compression::Lz4 => fill(lz4_flex::frame::FrameDecoder::new(input), first, max, reserve, "lz4"),
    }
}

/// A block names its size at its beginning.
fn snappy_block(
    input: &[u8],
    max: usize,
    reserve: &mut dyn FnMut(usize) -> Result<(), Refusal>,
) -> Result<Vec<u8>, DecodeError> {
    let corrupt = |error: snap::Error| DecodeError::Corrupt { algorithm: "snappy", source: error.into() };
    let size = snap::raw::decompress_len(input).map_err(corrupt)?;
    if size > max {
        return Err(DecodeError::TooLarge(max));
    }
    reserve(size)?;
    snap::raw::Decoder::new().decompress_vec(input).map_err(corrupt)
}

/// The size that the trailer of a gzip body of one member names.
fn gzip_size(input: &[u8]) -> usize {
    input.last_chunk::<4>().map_or(0, |trailer| u32::from_le_bytes(*trailer) as usize)
}

fn fill(
    mut from: impl Read,
    first: usize,
    max: usize,
    reserve: &mut dyn FnMut(usize) -> Result<(), Refusal>,
    algorithm: &'static str,
) -> Result<Vec<u8>, DecodeError> {
    let corrupt = |source| DecodeError::Corrupt { algorithm, source };
    let first = first.min(max);
    reserve(first)?;
    let mut out = Vec::with_capacity(first);
    loop {
        let room = (out.capacity() - out.len()) as u64;
        from.by_ref().take(room).read_to_end(&mut out).map_err(corrupt)?;
        if out.len() < out.capacity() {
            return Ok(out);
        }
        // Exactly full: is that all?
        let mut next = [0u8; 1];
        if from.read(&mut next).map_err(corrupt)? == 0 {
            return Ok(out);
        }
        if out.len() >= max {
            return Err(DecodeError::TooLarge(max));
        }
        // As much again, but at least a little, and never beyond `max`, which may be less than a little away.
        let more = out.capacity().max(1024).min(max - out.len());
        reserve(more)?;
        out.reserve_exact(more);
        out.extend_from_slice(&next);
    }
}

#[cfg(test)]
mod tests;
