//! Decompression of untrusted bodies.
//!
//! *Guarantees.* Never more than `max` bytes come out, and every byte was reserved before it was allocated. A
//! body that would be larger is an error as soon as that shows; one whose header already says so costs nothing.

use std::io::{self, Read};

use kubewake_config::model::CompressionType;

use crate::core::Refusal;

/// Why a body could not be decompressed.
#[derive(Debug, thiserror::Error)]
pub enum DecompressError {
    /// The body is larger than allowed.
    #[error("the body is larger than {0} bytes after decompression")]
    TooLarge(usize),
    /// The body is not valid in its algorithm.
    #[error("the body is not valid {algorithm}: {source}")]
    Corrupt {
        /// The algorithm of the request's encoding header.
        algorithm: &'static str,
        source: io::Error,
    },
    /// There is no memory for it now.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// Windows of Zstandard larger than 8 MiB are refused: the decoder must hold a window however little comes out
/// of it.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

/// Deflate cannot compress by more than this factor, so a larger size in a gzip trailer is wrong.
const DEFLATE_MAX_RATIO: usize = 1032;

/// The first bytes of Snappy's framed format. A body without them is a single block: both are named `snappy`.
const SNAPPY_FRAME_HEADER: &[u8] = b"\xff\x06\x00\x00sNaPpY";

/// The algorithm of a `content-encoding` or `grpc-encoding`. Names in upper case are unknown, as in the
/// Collector, although HTTP ignores case: both collectors must refuse the same requests.
pub fn parse_encoding(name: &str) -> Option<CompressionType> {
    Some(match name {
        "" => CompressionType::None,
        "gzip" => CompressionType::Gzip,
        "zstd" => CompressionType::Zstd,
        "zlib" | "deflate" => CompressionType::Zlib,
        "snappy" | "x-snappy-framed" => CompressionType::Snappy,
        "lz4" => CompressionType::Lz4,
        _ => return None,
    })
}

/// Decompresses `input` into at most `max` bytes. `reserve` is called before each allocation.
pub fn decompress(
    algorithm: CompressionType,
    input: &[u8],
    max: usize,
    reserve: &mut dyn FnMut(usize) -> Result<(), Refusal>,
) -> Result<Vec<u8>, DecompressError> {
    let corrupt = |algorithm| move |source| DecompressError::Corrupt { algorithm, source };
    let first = input.len().saturating_mul(4);
    match algorithm {
        CompressionType::None => read_bounded(input, input.len(), max, reserve, "identity"),
        CompressionType::Gzip => {
            let promised = gzip_size(input);
            if promised > max && promised <= input.len().saturating_mul(DEFLATE_MAX_RATIO) {
                return Err(DecompressError::TooLarge(max));
            }
            let first = if promised <= max { promised } else { first };
            read_bounded(flate2::bufread::MultiGzDecoder::new(input), first, max, reserve, "gzip")
        }
        CompressionType::Zlib => read_bounded(flate2::bufread::ZlibDecoder::new(input), first, max, reserve, "zlib"),
        CompressionType::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(input).map_err(corrupt("zstd"))?;
            decoder.window_log_max(ZSTD_WINDOW_LOG_MAX).map_err(corrupt("zstd"))?;
            read_bounded(decoder, first, max, reserve, "zstd")
        }
        // An empty input is an empty body.
        CompressionType::Snappy if input.is_empty() || input.starts_with(SNAPPY_FRAME_HEADER) => {
            read_bounded(snap::read::FrameDecoder::new(input), first, max, reserve, "snappy")
        }
        CompressionType::Snappy => snappy_block(input, max, reserve),
        CompressionType::Lz4 => {
            reserve(lz4_buffers(input))?;
            read_bounded(lz4_flex::frame::FrameDecoder::new(input), first, max, reserve, "lz4")
        }
    }
}

/// The memory that the decoder of LZ4 frames allocates beside its output: a block before and after
/// decompression, with the window before it. The frame header sets the block size, however small the body is.
fn lz4_buffers(input: &[u8]) -> usize {
    const WINDOW: usize = 64 << 10;
    const LEGACY_MAGIC: [u8; 4] = 0x184C_2102_u32.to_le_bytes();
    let block = match input {
        [a, b, c, d, ..] if [*a, *b, *c, *d] == LEGACY_MAGIC => 8 << 20,
        [_, _, _, _, _, descriptor, ..] => match descriptor >> 4 & 7 {
            4 => 64 << 10,
            5 => 256 << 10,
            6 => 1 << 20,
            7 => 4 << 20,
            // The decoder refuses it.
            _ => 0,
        },
        _ => 0,
    };
    2 * block + WINDOW
}

/// Decompresses a block, which begins with its size.
fn snappy_block(
    input: &[u8],
    max: usize,
    reserve: &mut dyn FnMut(usize) -> Result<(), Refusal>,
) -> Result<Vec<u8>, DecompressError> {
    let corrupt = |error: snap::Error| DecompressError::Corrupt { algorithm: "snappy", source: error.into() };
    let size = snap::raw::decompress_len(input).map_err(corrupt)?;
    if size > max {
        return Err(DecompressError::TooLarge(max));
    }
    reserve(size)?;
    snap::raw::Decoder::new().decompress_vec(input).map_err(corrupt)
}

/// The size in the trailer of a gzip body with one member.
fn gzip_size(input: &[u8]) -> usize {
    input.last_chunk::<4>().map_or(0, |trailer| u32::from_le_bytes(*trailer) as usize)
}

fn read_bounded(
    mut from: impl Read,
    first: usize,
    max: usize,
    reserve: &mut dyn FnMut(usize) -> Result<(), Refusal>,
    algorithm: &'static str,
) -> Result<Vec<u8>, DecompressError> {
    let corrupt = |source| DecompressError::Corrupt { algorithm, source };
    let first = first.min(max);
    reserve(first)?;
    let mut out = Vec::with_capacity(first);
    loop {
        let room = (out.capacity() - out.len()) as u64;
        from.by_ref().take(room).read_to_end(&mut out).map_err(corrupt)?;
        if out.len() < out.capacity() {
            return Ok(out);
        }
        // Exactly full: check for the end.
        let mut next = [0u8; 1];
        if from.read(&mut next).map_err(corrupt)? == 0 {
            return Ok(out);
        }
        if out.len() >= max {
            return Err(DecompressError::TooLarge(max));
        }
        // Doubles the capacity, by at least 1 KiB if `max` allows it.
        let more = out.capacity().max(1024).min(max - out.len());
        reserve(more)?;
        out.reserve_exact(more);
        out.extend_from_slice(&next);
    }
}

#[cfg(test)]
mod tests;
