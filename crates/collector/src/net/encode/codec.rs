//! The compression formats behind one face.

use std::io::{self, Write};

use flate2::{Compress, FlushCompress, Status};
use kubewake_config::model::Compression;
use zstd::stream::raw::{self, InBuffer, Operation, OutBuffer};

/// An encoder gets at least this much room for output at a time.
const STEP: usize = 32 << 10;
/// The window of gzip, the largest that there is and everyone's default.
const WINDOW_BITS: u8 = 15;
/// Telemetry shrinks to about a tenth; a body that shrinks less makes the buffer grow.
const USUAL_RATIO: usize = 8;

/// A compression format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    Gzip,
    Zlib,
    Zstd,
    SnappyBlock,
    SnappyFrames,
    Lz4,
}

impl Codec {
    /// What the Collector means by a name on HTTP: `snappy` is the block format there.
    pub(super) fn http(compression: Compression) -> Option<Self> {
        match compression {
            Compression::None => None,
            Compression::Gzip => Some(Codec::Gzip),
            Compression::Zlib => Some(Codec::Zlib),
            Compression::Zstd => Some(Codec::Zstd),
            Compression::Snappy => Some(Codec::SnappyBlock),
            Compression::Lz4 => Some(Codec::Lz4),
        }
    }

    /// What it means on gRPC, where `snappy` is the framed format.
    pub(super) fn grpc(compression: Compression) -> Option<Self> {
        match compression {
            Compression::Gzip => Some(Codec::Gzip),
            Compression::Zstd => Some(Codec::Zstd),
            Compression::Snappy => Some(Codec::SnappyFrames),
            Compression::None | Compression::Zlib | Compression::Lz4 => None,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Codec::Gzip => "gzip",
            // The name that HTTP itself knows for the zlib format.
            Codec::Zlib => "deflate",
            Codec::Zstd => "zstd",
            Codec::SnappyBlock | Codec::SnappyFrames => "snappy",
            Codec::Lz4 => "lz4",
        }
    }

    /// Begins a body of `total` bytes, with the encoder of an earlier one where there is one.
    pub(super) fn start(self, kept: Option<Kept>, total: usize, room: usize) -> io::Result<Running> {
        let mut out = Vec::with_capacity(room + STEP.max(total / USUAL_RATIO));
        out.resize(room, 0);
        Ok(match self {
            Codec::Gzip | Codec::Zlib => Running::Deflate(self.deflate(kept), out),
            Codec::Zstd => Running::Zstd(zstd(kept, total)?, out),
            Codec::SnappyBlock => Running::SnappyBlock(Vec::with_capacity(total), out),
            Codec::SnappyFrames => Running::SnappyFrames(Box::new(snap::write::FrameEncoder::new(out))),
            Codec::Lz4 => Running::Lz4(Box::new(lz4_flex::frame::FrameEncoder::new(out))),
        })
    }

    fn deflate(self, kept: Option<Kept>) -> Compress {
        match kept {
            Some(Kept::Deflate(mut state)) => {
                state.reset();
                state
            }
            _ if self == Codec::Gzip => Compress::new_gzip(flate2::Compression::default(), WINDOW_BITS),
            _ => Compress::new(flate2::Compression::default(), true),
        }
    }
}

fn zstd(kept: Option<Kept>, total: usize) -> io::Result<raw::Encoder<'static>> {
    let mut state = match kept {
        Some(Kept::Zstd(mut state)) => {
            state.reinit()?;
            state
        }
        _ => raw::Encoder::new(zstd::DEFAULT_COMPRESSION_LEVEL)?,
    };
    // The size goes into the frame, so that the other end can refuse or allocate before it unpacks.
    state.set_pledged_src_size(u64::try_from(total).ok())?;
    Ok(state)
}

/// An encoder between two bodies.
pub(super) enum Kept {
    Deflate(Compress),
    Zstd(raw::Encoder<'static>),
}

/// A body that is being compressed.
pub(super) enum Running {
    Deflate(Compress, Vec<u8>),
    Zstd(raw::Encoder<'static>, Vec<u8>),
    SnappyBlock(Vec<u8>, Vec<u8>),
    SnappyFrames(Box<snap::write::FrameEncoder<Vec<u8>>>),
    Lz4(Box<lz4_flex::frame::FrameEncoder<Vec<u8>>>),
}

impl Running {
    pub(super) fn write(&mut self, input: &[u8]) -> io::Result<()> {
        match self {
            Running::Deflate(state, out) => deflate(state, input, out, FlushCompress::None),
            Running::Zstd(state, out) => zstd_write(state, input, out),
            Running::SnappyBlock(plain, _) => {
                plain.extend_from_slice(input);
                Ok(())
            }
            Running::SnappyFrames(encoder) => encoder.write_all(input),
            Running::Lz4(encoder) => encoder.write_all(input),
        }
    }

    /// The body, and the encoder if it can be used again.
    pub(super) fn finish(self) -> io::Result<(Vec<u8>, Option<Kept>)> {
        match self {
            Running::Deflate(mut state, mut out) => {
                deflate(&mut state, &[], &mut out, FlushCompress::Finish)?;
                Ok((out, Some(Kept::Deflate(state))))
            }
            Running::Zstd(mut state, mut out) => {
                zstd_finish(&mut state, &mut out)?;
                Ok((out, Some(Kept::Zstd(state))))
            }
            Running::SnappyBlock(plain, out) => Ok((snappy_block(&plain, out)?, None)),
            Running::SnappyFrames(encoder) => {
                Ok((encoder.into_inner().map_err(|error| io::Error::other(error.to_string()))?, None))
            }
            Running::Lz4(encoder) => Ok((encoder.finish().map_err(io::Error::other)?, None)),
        }
    }
}

fn deflate(state: &mut Compress, mut input: &[u8], out: &mut Vec<u8>, flush: FlushCompress) -> io::Result<()> {
    let finishing = matches!(flush, FlushCompress::Finish);
    while finishing || !input.is_empty() {
        out.reserve(STEP);
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
        out.reserve(STEP);
        let filled = out.len();
        state.run(&mut input_left, &mut OutBuffer::around_pos(out, filled))?;
    }
    Ok(())
}

fn zstd_finish(state: &mut raw::Encoder<'static>, out: &mut Vec<u8>) -> io::Result<()> {
    loop {
        out.reserve(STEP);
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
