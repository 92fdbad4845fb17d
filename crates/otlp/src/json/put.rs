//! Numbers as protobuf has them.

use crate::wire::put_varint;

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
