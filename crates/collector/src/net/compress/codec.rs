//! A common interface of the compression formats.

use std::io::{self, Write};

use flate2::{Compress, FlushCompress, Status};
use kubewake_config::model::CompressionType;
use zstd::stream::raw::{self, InBuffer, Operation, OutBuffer};

/// The least free output space of an encoder.
const MIN_OUTPUT_BYTES: usize = 32 << 10;
/// The window of gzip: the largest possible, and the usual default.
const GZIP_WINDOW_BITS: u8 = 15;
/// Telemetry shrinks to about a tenth; a body that shrinks less makes the buffer grow.
const EXPECTED_RATIO: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CompressionCodec {
    Gzip,
    Zlib,
    Zstd,
    SnappyBlock,
    SnappyFrames,
    Lz4,
}

impl CompressionCodec {
    /// The Collector's algorithms on HTTP, where `snappy` is the block format.
    pub(super) fn http(compression: CompressionType) -> Option<Self> {
        match compression {
            CompressionType::None => None,
            CompressionType::Gzip => Some(CompressionCodec::Gzip),
            CompressionType::Zlib => Some(CompressionCodec::Zlib),
            CompressionType::Zstd => Some(CompressionCodec::Zstd),
            CompressionType::Snappy => Some(CompressionCodec::SnappyBlock),
            CompressionType::Lz4 => Some(CompressionCodec::Lz4),
        }
    }

    /// The Collector's algorithms on gRPC, where `snappy` is the framed format.
    pub(super) fn grpc(compression: CompressionType) -> Option<Self> {
        match compression {
            CompressionType::Gzip => Some(CompressionCodec::Gzip),
            CompressionType::Zstd => Some(CompressionCodec::Zstd),
            CompressionType::Snappy => Some(CompressionCodec::SnappyFrames),
            CompressionType::None | CompressionType::Zlib | CompressionType::Lz4 => None,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            CompressionCodec::Gzip => "gzip",
            // HTTP's name of the zlib format.
            CompressionCodec::Zlib => "deflate",
            CompressionCodec::Zstd => "zstd",
            CompressionCodec::SnappyBlock | CompressionCodec::SnappyFrames => "snappy",
            CompressionCodec::Lz4 => "lz4",
        }
    }

    /// Begins a body of `total` bytes, with a reused encoder if there is one.
    pub(super) fn start(self, kept: Option<ReusableEncoder>, total: usize, room: usize) -> io::Result<ActiveEncoder> {
        let mut out = Vec::with_capacity(room + MIN_OUTPUT_BYTES.max(total / EXPECTED_RATIO));
        out.resize(room, 0);
        Ok(match self {
            CompressionCodec::Gzip | CompressionCodec::Zlib => ActiveEncoder::Deflate(self.deflate(kept), out),
            CompressionCodec::Zstd => ActiveEncoder::Zstd(zstd(kept, total)?, out),
            CompressionCodec::SnappyBlock => ActiveEncoder::SnappyBlock(Vec::with_capacity(total), out),
            CompressionCodec::SnappyFrames => {
                ActiveEncoder::SnappyFrames(Box::new(snap::write::FrameEncoder::new(out)))
            }
            CompressionCodec::Lz4 => ActiveEncoder::Lz4(Box::new(lz4_flex::frame::FrameEncoder::new(out))),
        })
    }

    fn deflate(self, kept: Option<ReusableEncoder>) -> Compress {
        match kept {
            Some(ReusableEncoder::Deflate(mut state)) => {
                state.reset();
                state
            }
            _ if self == CompressionCodec::Gzip => Compress::new_gzip(flate2::Compression::default(), GZIP_WINDOW_BITS),
            _ => Compress::new(flate2::Compression::default(), true),
        }
    }
}

fn zstd(kept: Option<ReusableEncoder>, total: usize) -> io::Result<raw::Encoder<'static>> {
    let mut state = match kept {
        Some(ReusableEncoder::Zstd(mut state)) => {
            state.reinit()?;
            state
        }
        _ => raw::Encoder::new(zstd::DEFAULT_COMPRESSION_LEVEL)?,
    };
    // The size goes into the frame, so that the receiver can refuse or allocate before it decompresses.
    state.set_pledged_src_size(u64::try_from(total).ok())?;
    Ok(state)
}

/// An encoder between two bodies.
pub(super) enum ReusableEncoder {
    Deflate(Compress),
    Zstd(raw::Encoder<'static>),
}

pub(super) enum ActiveEncoder {
    Deflate(Compress, Vec<u8>),
    Zstd(raw::Encoder<'static>, Vec<u8>),
    SnappyBlock(Vec<u8>, Vec<u8>),
    SnappyFrames(Box<snap::write::FrameEncoder<Vec<u8>>>),
    Lz4(Box<lz4_flex::frame::FrameEncoder<Vec<u8>>>),
}

impl ActiveEncoder {
    pub(super) fn write(&mut self, input: &[u8]) -> io::Result<()> {
        match self {
            ActiveEncoder::Deflate(state, out) => deflate(state, input, out, FlushCompress::None),
            ActiveEncoder::Zstd(state, out) => zstd_write(state, input, out),
            ActiveEncoder::SnappyBlock(plain, _) => {
                plain.extend_from_slice(input);
                Ok(())
            }
            ActiveEncoder::SnappyFrames(encoder) => encoder.write_all(input),
            ActiveEncoder::Lz4(encoder) => encoder.write_all(input),
        }
    }

    /// The compressed body, and the encoder if it can be reused.
    pub(super) fn finish(self) -> io::Result<(Vec<u8>, Option<ReusableEncoder>)> {
        match self {
            ActiveEncoder::Deflate(mut state, mut out) => {
                deflate(&mut state, &[], &mut out, FlushCompress::Finish)?;
                Ok((out, Some(ReusableEncoder::Deflate(state))))
            }
            ActiveEncoder::Zstd(mut state, mut out) => {
                zstd_finish(&mut state, &mut out)?;
                Ok((out, Some(ReusableEncoder::Zstd(state))))
            }
            ActiveEncoder::SnappyBlock(plain, out) => Ok((snappy_block(&plain, out)?, None)),
            ActiveEncoder::SnappyFrames(encoder) => {
                Ok((encoder.into_inner().map_err(|error| io::Error::other(error.to_string()))?, None))
            }
            ActiveEncoder::Lz4(encoder) => Ok((encoder.finish().map_err(io::Error::other)?, None)),
        }
    }
}

fn deflate(state: &mut Compress, mut input: &[u8], out: &mut Vec<u8>, flush: FlushCompress) -> io::Result<()> {
    let finishing = matches!(flush, FlushCompress::Finish);
    while finishing || !input.is_empty() {
        out.reserve(MIN_OUTPUT_BYTES);
        let before = state.total_in();
        let status = state.compress_vec(input, out, flush)?;
        let taken = usize::try_from(state.total_in() - before).unwrap_or(usize::MAX);
        input = input.get(taken..).unwrap_or_default();
        if status == Status::StreamEnd {
            return Ok(());
        }
    }
    Ok(())
}

fn zstd_write(state: &mut raw::Encoder<'static>, input: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    let mut input_left = InBuffer::around(input);
    while input_left.pos() < input.len() {
        out.reserve(MIN_OUTPUT_BYTES);
        let filled = out.len();
        state.run(&mut input_left, &mut OutBuffer::around_pos(out, filled))?;
    }
    Ok(())
}

fn zstd_finish(state: &mut raw::Encoder<'static>, out: &mut Vec<u8>) -> io::Result<()> {
    loop {
        out.reserve(MIN_OUTPUT_BYTES);
        let filled = out.len();
        if state.finish(&mut OutBuffer::around_pos(out, filled), true)? == 0 {
            return Ok(());
        }
    }
}

fn snappy_block(plain: &[u8], mut out: Vec<u8>) -> io::Result<Vec<u8>> {
    let room = out.len();
    out.resize(room + snap::raw::max_compress_len(plain.len()), 0);
    let target = out.get_mut(room..).unwrap_or_default();
    let length = snap::raw::Encoder::new().compress(plain, target)?;
    out.truncate(room + length);
    Ok(out)
}
