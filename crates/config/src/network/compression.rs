//! `compression` of clients and servers.

use std::collections::HashSet;

use crate::{
    decode::{Cursor, DecodeReport, FieldReader, scalar},
    encode,
};

/// How a body is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CompressionType {
    None,
    Gzip,
    Zstd,
    /// Snappy: framed on HTTP, and on gRPC as grpc-go's users register it.
    Snappy,
    /// zlib (`zlib` and `deflate` name the same bytes in the Collector).
    Zlib,
    /// LZ4 frames.
    Lz4,
}

/// The names of compression types, in both of the Collector's spellings.
const COMPRESSION_NAMES: [(&str, CompressionType); 9] = [
    ("gzip", CompressionType::Gzip),
    ("zstd", CompressionType::Zstd),
    ("snappy", CompressionType::Snappy),
    ("x-snappy-framed", CompressionType::Snappy),
    ("zlib", CompressionType::Zlib),
    ("deflate", CompressionType::Zlib),
    ("lz4", CompressionType::Lz4),
    ("none", CompressionType::None),
    ("", CompressionType::None),
];

impl CompressionType {
    /// Its name in documents.
    pub(crate) fn name(self) -> &'static str {
        encode::keyword(&COMPRESSION_NAMES, &self)
    }
}

/// `compression` of an HTTP client.
pub(crate) fn compression(at: &Cursor<'_>, report: &DecodeReport) -> Option<CompressionType> {
    scalar::keyword(at, report, &COMPRESSION_NAMES)
}

/// `compression` of a gRPC client, which supports fewer types.
pub(crate) fn grpc_compression(at: &Cursor<'_>, report: &DecodeReport) -> Option<CompressionType> {
    let value = compression(at, report)?;
    if matches!(value, CompressionType::Zlib | CompressionType::Lz4) {
        let help = "gRPC supports gzip, snappy, zstd and none".to_owned();
        report.error(
            at,
            format!("the compression {} cannot be used with gRPC", at.quote(&scalar::text(at, report)?)),
            help,
        );
        return None;
    }
    Some(value)
}

/// `compression_algorithms` of an HTTP server, without duplicates.
pub(crate) fn compression_algorithms(at: &Cursor<'_>, report: &DecodeReport) -> Option<Vec<CompressionType>> {
    let Some(items) = at.items() else {
        return scalar::wrong_type(at, report, "a list", None);
    };
    let mut seen = HashSet::new();
    Some(items.filter_map(|item| compression(&item, report)).filter(|algorithm| seen.insert(*algorithm)).collect())
}

/// `compression_params`, whose level has no effect.
pub(crate) fn compression_params(fields: &mut FieldReader<'_, '_>) {
    let Some(at) = fields.find("compression_params") else { return };
    let mut params = FieldReader::new(&at, fields.report);
    params.warn_ineffective("level", "the compression level is fixed", scalar::integer);
    params.finish();
}
