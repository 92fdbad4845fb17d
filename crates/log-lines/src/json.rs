//! Reads JSON from the bytes of a line, in one pass and without a tree.
//!
//! *Guarantees*: what is accepted is JSON as RFC 8259 defines it, nested at most [`MAX_DEPTH`] deep. Nothing panics and
//! nothing recurses deeper, whatever the bytes.

mod number;
mod string;
mod token;

pub(crate) use number::read_number;
pub(crate) use string::{JsonString, unescape};
pub(crate) use token::{skip_blanks, skip_value};

/// Objects and lists around a value. Real lines have a handful.
pub(crate) const MAX_DEPTH: usize = 32;
