//! Reads JSON from the bytes of a line, in one pass and without a tree.
//!
//! *Guarantees*: what is accepted is JSON as RFC 8259 defines it, nested at most [`MAX_DEPTH`] deep. Nothing panics and
//! nothing recurses deeper, whatever the bytes.

mod number;
mod object_keys;
mod string;
mod token;
mod value_writer;

pub(crate) use number::{JsonNumber, read_number};
pub(crate) use string::{JsonString, unescape};
pub(crate) use token::{skip_blanks, skip_value};
pub(crate) use value_writer::{JsonScratch, close, close_with_room, open};

/// Objects and lists around a value. Real lines have a handful.
pub(crate) const MAX_DEPTH: usize = 32;
