//! OTLP's JSON encoding, to and from the protobuf bytes that the rest of the collector carries.
//!
//! Both directions stream: they walk the bytes beside the table of the protocol's messages and build no message.
//!
//! [`decode`] accepts what an OpenTelemetry Collector accepts:
//!
//! - field names in lowerCamelCase and snake_case; unknown fields are skipped, `null` is absence;
//! - 64-bit and 32-bit integers as numbers or in strings, doubles likewise, with `"NaN"` and the infinities;
//! - enums as numbers (also unknown ones) or by name; ids in hexadecimal of either case, empty or of the right length;
//! - strings that are not UTF-8 pass as they are, a lone surrogate becomes U+FFFD;
//! - of the members of a `oneof` the last one wins, and what follows the first document is ignored.
//!
//! [`encode`] writes what the protocol asks for: ids in lower case hexadecimal, 64-bit integers in strings, enums as
//! numbers, nothing for what is not on the wire. Its output is always valid JSON, whatever the strings hold.
//!
//! Neither uses more stack than [`MAX_DEPTH`] messages need. The protobuf of a document is at most four times as long
//! as the document (a list of zeros, packed as doubles). JSON is longer than its protobuf by the names in it: two to
//! three times for usual telemetry, less than fifteen times at worst.

mod decode;
mod encode;
mod error;
mod out;
mod put;
mod reader;
mod text;
mod timestamp;

pub use error::{EncodeError, Error, Reason};

use crate::Signal;
use crate::memory::{Allowance, Meter};
use crate::schema::{self, Message};

/// How many messages may lie inside each other, the request included.
///
/// A list in an attribute takes two more, a map three: this is enough for values of 64 levels. Parsers of other
/// languages refuse protobuf beyond 100 messages, so that nobody can rely on more.
pub const MAX_DEPTH: usize = 200;

/// How many times as long as a document its protobuf may be: of a list of zeros, packed as doubles.
pub const MAX_PROTOBUF_PER_JSON: usize = 4;

/// A message that can be shown by itself, without the request around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Record {
    /// A `Resource`.
    Resource,
    /// An `InstrumentationScope`.
    Scope,
    /// A `Span`.
    Span,
    /// A `LogRecord`.
    LogRecord,
    /// A `Metric` with all its points.
    Metric,
}

/// The protobuf of an export request in JSON.
///
/// # Errors
///
/// If the bytes are no JSON or a field has a value that is not of its kind.
pub fn decode(signal: Signal, json: &[u8]) -> Result<Vec<u8>, Error> {
    decode::decode(request(signal), json, Meter::unlimited())
}

/// As [`decode`], with memory for the protobuf that is asked for before it is allocated. Strings with escapes take up to three times the length of the
/// document beside that.
///
/// # Errors
///
/// As for [`decode`], and [`Reason::NoMemory`] if the allowance does not grant what the protobuf takes.
pub fn decode_within(signal: Signal, json: &[u8], allowance: &mut dyn Allowance) -> Result<Vec<u8>, Error> {
    decode::decode(request(signal), json, Meter::new(allowance))
}

/// Appends the JSON of an export request in protobuf to `out`.
///
/// # Errors
///
/// If the bytes are no such message; `out` is then as it was.
pub fn encode(signal: Signal, protobuf: &[u8], out: &mut Vec<u8>) -> Result<(), EncodeError> {
    encode::encode(request(signal), protobuf, out, Meter::unlimited())
}

/// As [`encode`], with memory that is asked for before it is allocated.
///
/// # Errors
///
/// As for [`encode`], and [`EncodeError::NoMemory`] if the allowance does not grant what the text takes.
pub fn encode_within(
    signal: Signal,
    protobuf: &[u8],
    out: &mut Vec<u8>,
    allowance: &mut dyn Allowance,
) -> Result<(), EncodeError> {
    encode::encode(request(signal), protobuf, out, Meter::new(allowance))
}

/// Appends the JSON of one record in protobuf to `out`, as one object without line breaks.
///
/// # Errors
///
/// If the bytes are no such message; `out` is then as it was.
pub fn encode_record(record: Record, protobuf: &[u8], out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let message = match record {
        Record::Resource => &schema::RESOURCE,
        Record::Scope => &schema::SCOPE,
        Record::Span => &schema::SPAN,
        Record::LogRecord => &schema::LOG_RECORD,
        Record::Metric => &schema::METRIC,
    };
    encode::encode(message, protobuf, out, Meter::unlimited())
}

/// The protobuf of the first of several export requests of OpenCensus, one behind the other, and how many bytes of JSON it takes.
/// None if there is no more.
pub(crate) fn decode_opencensus(json: &[u8]) -> Result<Option<(Vec<u8>, usize)>, Error> {
    match json.trim_ascii_start() {
        [] => Ok(None),
        _ => decode::decode_first(&schema::OPENCENSUS_REQUEST, json, Meter::unlimited()).map(Some),
    }
}

fn request(signal: Signal) -> &'static Message {
    match signal {
        Signal::Traces => &schema::TRACES_REQUEST,
        Signal::Metrics => &schema::METRICS_REQUEST,
        Signal::Logs => &schema::LOGS_REQUEST,
    }
}
