//! Protobuf's wire format: reads fields out of a slice, and writes them.
//!
//! Guaranteed: reading never panics or allocates, whatever the bytes. A varint has at most ten bytes and fits
//! 64 bits, a tag fits 32 bits, field number 0 and the wire types 4, 6 and 7 are errors, and a length never
//! reaches past the slice that it was read from. Groups, which OTLP does not have, are skipped as a whole.

mod read;
mod write;

#[cfg(test)]
mod tests;

pub use read::{WireField, WireFields, read_tag, read_varint, skip_value};
pub use write::{
    close, len_field_size, open, put_bool, put_bytes, put_double, put_fixed32, put_fixed64, put_header, put_tag,
    put_uint, put_varint, tag_size, varint_size,
};

/// Wire type of a varint: int32, int64, uint32, uint64, sint32, sint64, bool and enums.
pub const VARINT: u8 = 0;
/// Wire type of eight bytes: fixed64, sfixed64 and double.
pub const I64: u8 = 1;
/// Wire type of a length and that many bytes: strings, bytes, messages and packed repeated fields.
pub const LEN: u8 = 2;
/// Wire type of four bytes: fixed32, sfixed32 and float.
pub const I32: u8 = 5;

/// Wire type of the start of a group.
const GROUP_START: u8 = 3;
/// Wire type of the end of a group.
const GROUP_END: u8 = 4;

/// The tag of a field whose number is below 16, and whose tag so is one byte.
pub(crate) const fn tag(number: u32, wire: u8) -> u8 {
    (number << 3) as u8 | wire
}

/// Errors in the bytes of a protobuf field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The bytes end inside a tag or a value.
    #[error("the message ends inside a field")]
    Truncated,
    /// A varint of more than ten bytes, or of more than 64 bits.
    #[error("a varint does not fit 64 bits")]
    VarintOverflow,
    /// A tag whose field number does not fit 29 bits.
    #[error("a field number does not fit 29 bits")]
    TagOverflow,
    /// Field number 0, which protobuf reserves.
    #[error("field number 0")]
    FieldZero,
    /// The end of a group that never began (4), or a wire type that does not exist (6, 7). Where fields are
    /// checked also a group (3).
    #[error("wire type {0} is not supported")]
    WireType(u8),
    /// A length that reaches past the end of the message around it.
    #[error("a length reaches past the end of its message")]
    Length,
}
