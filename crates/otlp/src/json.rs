//! OTLP's JSON encoding, to and from the protobuf bytes that the rest of the collector carries.
//!
//! Both directions stream: they walk the bytes beside the table of the protocol's messages and build no
//! message.
//!
//! [`decode`] accepts what an OpenTelemetry Collector accepts:
//!
//! - field names in lowerCamelCase and snake_case; unknown fields are skipped, `null` is absence;
//! - 64-bit and 32-bit integers as numbers or in strings, doubles likewise, with `"NaN"` and the infinities;
//! - enums as numbers (also unknown ones) or by name; ids in hexadecimal of either case, empty or of the right
//!   length;
//! - strings that are not UTF-8 pass as they are, a lone surrogate becomes U+FFFD;
//! - of the members of a `oneof` the last one wins, and what follows the first document is ignored.
//!
//! [`encode`] writes what the protocol asks for: ids in lower case hexadecimal, 64-bit integers in strings,
//! enums as numbers, nothing for what is not on the wire. Its output is always valid JSON, whatever the strings
//! hold.
//!
//! Neither uses more stack than [`MAX_MESSAGE_DEPTH`] messages need. The protobuf of a document is at most four
//! times as long as the document (a list of zeros, packed as doubles). JSON is longer than its protobuf by the
//! names in it: two to three times for usual telemetry, less than fifteen times at worst.

mod decode;
mod encode;
mod error;
mod protobuf_output;
mod reader;
mod text;
mod timestamp;
mod wire_scalar;

pub use error::{EncodeError, JsonError, JsonErrorKind};

use crate::Signal;
use crate::memory::{Allowance, MemoryMeter};
use crate::schema::{self, MessageSchema};

/// Limit of nested messages, the request included.
///
/// A list in an attribute takes two more levels, a map three: this is enough for values of 64 levels. Protobuf
/// parsers of other languages refuse more than 100 levels, so that nobody can rely on more.
pub const MAX_MESSAGE_DEPTH: usize = 200;

/// Limit of the protobuf's length, as a multiple of the document's: for a list of zeros, packed as doubles.
pub const MAX_PROTOBUF_PER_JSON: usize = 4;

/// Record types that can be encoded without the request around them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordKind {
    Resource,
    Scope,
    Span,
    LogRecord,
    /// A `Metric` with all its points.
    Metric,
}

/// Decodes an export request from JSON to protobuf.
///
/// # Errors
///
/// If the bytes are not JSON, or the value of a field has the wrong type.
pub fn decode(signal: Signal, json: &[u8]) -> Result<Vec<u8>, JsonError> {
    decode::decode(request(signal), json, MemoryMeter::unlimited())
}

/// As [`decode`], but reserves the memory for the protobuf before it allocates. Strings with escapes take up to
/// three times the length of the document beside that.
///
/// # Errors
///
/// As for [`decode`], and [`JsonErrorKind::NoMemory`] if the allowance refuses the memory.
pub fn decode_within(signal: Signal, json: &[u8], allowance: &mut dyn Allowance) -> Result<Vec<u8>, JsonError> {
    decode::decode(request(signal), json, MemoryMeter::new(allowance))
}

/// Appends the JSON of an export request in protobuf to `out`.
///
/// # Errors
///
/// If the bytes are not such a message; `out` is unchanged then.
pub fn encode(signal: Signal, protobuf: &[u8], out: &mut Vec<u8>) -> Result<(), EncodeError> {
    encode::encode(request(signal), protobuf, out, MemoryMeter::unlimited())
}

/// As [`encode`], but reserves memory before it allocates.
///
/// # Errors
///
/// As for [`encode`], and [`EncodeError::NoMemory`] if the allowance refuses the memory.
pub fn encode_within(
    signal: Signal,
    protobuf: &[u8],
    out: &mut Vec<u8>,
    allowance: &mut dyn Allowance,
) -> Result<(), EncodeError> {
    encode::encode(request(signal), protobuf, out, MemoryMeter::new(allowance))
}

/// Appends the JSON of one record in protobuf to `out`, as one object without line breaks.
///
/// # Errors
///
/// If the bytes are not such a message; `out` is unchanged then.
pub fn encode_record(record: RecordKind, protobuf: &[u8], out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let message = match record {
        RecordKind::Resource => &schema::RESOURCE,
        RecordKind::Scope => &schema::SCOPE,
        RecordKind::Span => &schema::SPAN,
        RecordKind::LogRecord => &schema::LOG_RECORD,
        RecordKind::Metric => &schema::METRIC,
    };
    encode::encode(message, protobuf, out, MemoryMeter::unlimited())
}

/// Decodes the first of several concatenated OpenCensus export requests; returns its protobuf and the number of
/// JSON bytes read. `None` if there is no more.
pub(crate) fn decode_opencensus(json: &[u8]) -> Result<Option<(Vec<u8>, usize)>, JsonError> {
    match json.trim_ascii_start() {
        [] => Ok(None),
        _ => decode::decode_first(&schema::OPENCENSUS_REQUEST, json, MemoryMeter::unlimited()).map(Some),
    }
}

fn request(signal: Signal) -> &'static MessageSchema {
    match signal {
        Signal::Traces => &schema::TRACES_REQUEST,
        Signal::Metrics => &schema::METRICS_REQUEST,
        Signal::Logs => &schema::LOGS_REQUEST,
    }
}
