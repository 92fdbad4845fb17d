//! Errors of `scan`.

use crate::wire::WireError;

/// Why bytes are not a valid request, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at byte {offset}: {kind}")]
pub struct ScanError {
    pub kind: ScanErrorKind,
    /// The offset of the invalid field in the scanned bytes.
    pub offset: usize,
}

/// Errors in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScanErrorKind {
    /// The bytes are not protobuf.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A known field has the wrong wire type.
    #[error("field {number} has wire type {wire}, which is not the type of this field")]
    FieldType {
        number: u32,
        /// The wire type of the field.
        wire: u8,
    },
    /// A trace id that is neither empty nor 16 bytes long.
    #[error("a trace id has {0} bytes, not 16")]
    TraceId(usize),
    /// A metric with more than one data message, which protobuf readers treat differently.
    #[error("a metric has more than one data message (gauge, sum, histogram, exponential histogram or summary)")]
    RepeatedData,
    /// A span id or parent span id that is neither empty nor 8 bytes long.
    #[error("a span id has {0} bytes, not 8")]
    SpanId(usize),
}

/// An error whose position is an address, so that the path without errors carries no offsets.
#[derive(Debug)]
pub(super) struct ScanFault {
    kind: ScanErrorKind,
    address: usize,
}

impl ScanFault {
    /// `at` starts with the invalid field.
    #[cold]
    pub(super) fn new(kind: impl Into<ScanErrorKind>, at: &[u8]) -> Self {
        Self { kind: kind.into(), address: at.as_ptr().addr() }
    }

    /// Converts to an error with an offset in `bytes`, the scanned bytes.
    #[cold]
    pub(super) fn within(self, bytes: &[u8]) -> ScanError {
        ScanError { kind: self.kind, offset: self.address.saturating_sub(bytes.as_ptr().addr()) }
    }
}
