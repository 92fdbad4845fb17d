//! Decompresses every encoding that exporters use.

use std::io::{Error, ErrorKind, Read, Result};

use bytes::Bytes;

/// The start of a framed snappy stream.
const SNAPPY_FRAMED: &[u8] = b"\xff\x06\x00\x00sNaPpY";

/// Decompresses a body by the name of its encoding in `content-encoding` or `grpc-encoding`.
pub(super) fn decompress(encoding: &str, bytes: Bytes) -> Result<Bytes> {
    match encoding {
        "" | "identity" => Ok(bytes),
        "gzip" => read(flate2::read::MultiGzDecoder::new(&*bytes)),
        "deflate" | "zlib" => read(flate2::read::ZlibDecoder::new(&*bytes)),
        "zstd" => zstd::stream::decode_all(&*bytes).map(Bytes::from),
        "lz4" => read(lz4_flex::frame::FrameDecoder::new(&*bytes)),
        "snappy" | "x-snappy-framed" if bytes.starts_with(SNAPPY_FRAMED) => {
            read(snap::read::FrameDecoder::new(&*bytes))
        }
        "snappy" => Ok(snap::raw::Decoder::new().decompress_vec(&bytes)?.into()),
        _ => Err(Error::new(ErrorKind::Unsupported, format!("unknown encoding {encoding:?}"))),
    }
}

fn read(mut decoder: impl Read) -> Result<Bytes> {
    let mut decoded = Vec::new();
    decoder.read_to_end(&mut decoded)?;
    Ok(decoded.into())
}
