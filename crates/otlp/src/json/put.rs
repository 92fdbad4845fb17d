//! Writing protobuf whose lengths are not known beforehand.

use crate::schema::Field;
use crate::wire::{LEN, put_tag, put_varint};

/// A number as the wire has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    Varint(u64),
    Fixed32(u32),
    Fixed64(u64),
}

impl Scalar {
    /// Whether it is what a field has that is not there.
    pub(super) fn is_default(self) -> bool {
        matches!(self, Scalar::Varint(0) | Scalar::Fixed32(0) | Scalar::Fixed64(0))
    }

    pub(super) fn put(self, out: &mut Vec<u8>) {
        match self {
            Scalar::Varint(value) => put_varint(out, value),
            Scalar::Fixed32(value) => out.extend_from_slice(&value.to_le_bytes()),
            Scalar::Fixed64(value) => out.extend_from_slice(&value.to_le_bytes()),
        }
    }
}

/// Starts a field whose length is not known yet, and says where its content begins.
pub(super) fn open(field: &Field, out: &mut Vec<u8>) -> usize {
    put_tag(out, field.number, LEN);
    out.len()
}

/// Ends the field whose content began there.
///
/// The content moves up to make room for its length, so that a byte moves once for each message around it.
pub(super) fn close(start: usize, out: &mut Vec<u8>) {
    let end = out.len();
    put_varint(out, end.saturating_sub(start) as u64);
    let width = out.len() - end;
    if let Some(content_and_length) = out.get_mut(start..) {
        content_and_length.rotate_right(width);
    }
}
