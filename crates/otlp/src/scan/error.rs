//! What `scan` refuses.

use crate::wire::WireError;

/// Why bytes are not a request, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at byte {offset}: {kind}")]
pub struct ScanError {
    /// What is wrong.
    pub kind: ScanErrorKind,
    /// The offset, in the bytes that were scanned, of the field that is wrong.
    pub offset: usize,
}

/// What can be wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScanErrorKind {
    /// The bytes are not protobuf.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A field that OTLP defines comes with a wire type that it does not have.
    #[error("field {number} has wire type {wire}, which is not the type of this field")]
    FieldType {
        /// The field number.
        number: u32,
        /// The wire type that it came with.
        wire: u8,
    },
    /// A trace id that is neither empty nor 16 bytes long.
    #[error("a trace id has {0} bytes, not 16")]
    TraceId(usize),
    /// A metric with more than one data message, which readers of protobuf understand differently.
    #[error("a metric has more than one data message (gauge, sum, histogram, exponential histogram or summary)")]
    RepeatedData,
    /// A span id or parent span id that is neither empty nor 8 bytes long.
    #[error("a span id has {0} bytes, not 8")]
    SpanId(usize),
}

/// A finding that still knows its place by address, so that the path without errors carries no offsets.
#[derive(Debug)]
pub(super) struct Fault {
    kind: ScanErrorKind,
    address: usize,
}

impl Fault {
    /// `at` starts with the field that is wrong.
    #[cold]
    pub(super) fn new(kind: impl Into<ScanErrorKind>, at: &[u8]) -> Self {
        Self { kind: kind.into(), address: at.as_ptr().addr() }
    }

    /// The error, with its offset in `bytes`, which the scan was of.
    #[cold]
    pub(super) fn within(self, bytes: &[u8]) -> ScanError {
        ScanError { kind: self.kind, offset: self.address.saturating_sub(bytes.as_ptr().addr()) }
    }
}
