//! Numbers in protobuf's wire format.

use crate::wire::put_varint;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WireScalar {
    Varint(u64),
    Fixed32(u32),
    Fixed64(u64),
}

impl WireScalar {
    /// Whether it is the default value, which is not written.
    pub(super) fn is_default(self) -> bool {
        matches!(self, WireScalar::Varint(0) | WireScalar::Fixed32(0) | WireScalar::Fixed64(0))
    }

    pub(super) fn put(self, out: &mut Vec<u8>) {
        match self {
            WireScalar::Varint(value) => put_varint(out, value),
            WireScalar::Fixed32(value) => out.extend_from_slice(&value.to_le_bytes()),
            WireScalar::Fixed64(value) => out.extend_from_slice(&value.to_le_bytes()),
        }
    }
}
