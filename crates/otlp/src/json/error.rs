//! Errors of the JSON codec. They contain nothing of the payload, which may hold secrets.

use std::fmt;

use thiserror::Error;

use super::MAX_MESSAGE_DEPTH;
use crate::wire::WireError;

/// Why a JSON document is not an OTLP request, and where.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct JsonError {
    pub(super) reason: JsonErrorKind,
    pub(super) field: Option<&'static str>,
    pub(super) offset: usize,
    pub(super) line: usize,
}

/// Errors in a JSON document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum JsonErrorKind {
    /// The document ends before it is complete.
    #[error("the document ends early")]
    End,
    #[error("expected {0}")]
    Expected(&'static str),
    /// A control character in a string that must be escaped.
    #[error("a string holds a control character")]
    Control,
    /// An escape that JSON does not have.
    #[error("a string holds an invalid escape")]
    Escape,
    /// No integer, or one that does not fit.
    #[error("expected an integer in the range of the field")]
    Integer,
    /// No number, or one that does not fit.
    #[error("expected a number in the range of a double")]
    Double,
    /// Not the hexadecimal digits of an id.
    #[error("expected an id of {} hexadecimal digits", .bytes * 2)]
    Id {
        /// The length of the id.
        bytes: usize,
    },
    /// Not base64.
    #[error("expected base64")]
    Base64,
    /// Not a point in time.
    #[error("expected a time in the format of RFC 3339")]
    Timestamp,
    /// A name that the enum does not have.
    #[error("expected a number or a name of the enum")]
    EnumName,
    /// Too many messages inside each other.
    #[error("messages are nested deeper than {MAX_MESSAGE_DEPTH} levels")]
    Depth,
    /// There is no memory for the text.
    #[error("not enough memory for the text")]
    NoMemory,
}

impl JsonError {
    pub fn reason(&self) -> JsonErrorKind {
        self.reason
    }

    /// The JSON name of the field with the wrong value, if there is one.
    pub fn field(&self) -> Option<&'static str> {
        self.field
    }

    /// The position, in bytes from the start.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The position, in lines from 1.
    pub fn line(&self) -> usize {
        self.line
    }
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(field) = self.field {
            write!(f, "{field}: ")?;
        }
        write!(f, "{} at byte {} (line {})", self.reason, self.offset, self.line)
    }
}

/// Why bytes are not the expected protobuf message.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// Bytes that are no field.
    #[error("{message} is not a protobuf message")]
    Wire {
        /// The name of the message.
        message: &'static str,
        /// The error in the bytes.
        source: WireError,
    },
    /// A known field in a form that is not its own.
    #[error("{message}.{field}: wrong wire type")]
    WireType {
        /// The name of the message.
        message: &'static str,
        /// The JSON name of the field.
        field: &'static str,
    },
    /// Too many messages inside each other.
    #[error("messages are nested deeper than {MAX_MESSAGE_DEPTH} levels")]
    Depth,
    /// There is no memory for the text.
    #[error("not enough memory for the text")]
    NoMemory,
}
