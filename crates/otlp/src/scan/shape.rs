//! The allowed wire types of each field of a message.

use crate::wire::{I32, I64, LEN, VARINT};

/// The wire types that each field number allows, a bit per wire type, and the kind of value behind a short tag.
///
/// One load validates a short tag: a known field with another wire type, field number 0, a group and an unknown
/// wire type are not allowed.
pub(super) struct MessageShape {
    allowed: [u8; 32],
    short: [ValueShape; 256],
}

/// The kind of value behind a tag of one byte.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueShape {
    /// A length and so many bytes.
    Len,
    /// Eight bytes.
    I64,
    Varint,
    /// A rarer wire type, a longer tag, or an invalid one.
    Other,
}

/// An unknown field may have any wire type but groups.
const UNKNOWN: u8 = 1 << VARINT | 1 << I64 | 1 << LEN | 1 << I32;

impl MessageShape {
    const fn new<const N: usize>(known: [(usize, u8); N]) -> Self {
        let mut allowed = [UNKNOWN; 32];
        let mut left: &[(usize, u8)] = &known;
        while let [(number, mask), tail @ ..] = left {
            set(&mut allowed, *number, *mask);
            left = tail;
        }
        set(&mut allowed, 0, 0);
        Self { allowed, short: short_tags(&allowed) }
    }

    #[inline(always)]
    pub(super) fn allows(&self, number: u32, wire: u8) -> bool {
        self.allowed.get(number as usize).copied().unwrap_or(UNKNOWN) >> wire & 1 == 1
    }

    /// The kind of value behind this first byte of a tag.
    #[inline(always)]
    pub(super) fn after(&self, byte: u8) -> ValueShape {
        self.short.get(usize::from(byte)).copied().unwrap_or(ValueShape::Other)
    }
}

#[allow(clippy::indexing_slicing, reason = "runs at compile time only, where a bad index does not compile")]
const fn set(allowed: &mut [u8; 32], number: usize, mask: u8) {
    allowed[number] = mask;
}

#[allow(clippy::indexing_slicing, reason = "runs at compile time only, where a bad index does not compile")]
const fn short_tags(allowed: &[u8; 32]) -> [ValueShape; 256] {
    let mut out = [ValueShape::Other; 256];
    let mut tag = 0;
    // Tags from 128 on have a second byte.
    while tag < 0x80 {
        let wire = tag & 7;
        if allowed[tag >> 3] >> wire & 1 == 1 {
            out[tag] = match wire as u8 {
                LEN => ValueShape::Len,
                I64 => ValueShape::I64,
                VARINT => ValueShape::Varint,
                _ => ValueShape::Other,
            };
        }
        tag += 1;
    }
    out
}

const V: u8 = 1 << VARINT;
const F64: u8 = 1 << I64;
const F32: u8 = 1 << I32;
const L: u8 = 1 << LEN;
/// A repeated fixed64 or double, packed or not.
const PACKED: u8 = L | F64;

pub(super) const REQUEST: MessageShape = MessageShape::new([(1, L)]);
pub(super) const RESOURCE_ENTRY: MessageShape = MessageShape::new([(1, L), (2, L), (3, L)]);
pub(super) const SCOPE_ENTRY: MessageShape = MessageShape::new([(1, L), (2, L), (3, L)]);

#[rustfmt::skip]
pub(super) const SPAN: MessageShape = MessageShape::new([
    (1, L), (2, L), (3, L), (4, L), (5, L), (6, V), (7, F64), (8, F64), (9, L), (10, V), (11, L), (12, V), (13, L),
    (14, V), (15, L), (16, F32),
]);

#[rustfmt::skip]
pub(super) const LOG_RECORD: MessageShape = MessageShape::new([
    (1, F64), (2, V), (3, L), (5, L), (6, L), (7, V), (8, F32), (9, L), (10, L), (11, F64), (12, L),
]);

#[rustfmt::skip]
pub(super) const METRIC: MessageShape = MessageShape::new([
    (1, L), (2, L), (3, L), (5, L), (7, L), (9, L), (10, L), (11, L), (12, L),
]);

pub(super) const POINTS: MessageShape = MessageShape::new([(1, L)]);
pub(super) const POINTS_OVER_TIME: MessageShape = MessageShape::new([(1, L), (2, V)]);
pub(super) const SUM: MessageShape = MessageShape::new([(1, L), (2, V), (3, V)]);

#[rustfmt::skip]
pub(super) const NUMBER_POINT: MessageShape = MessageShape::new([
    (2, F64), (3, F64), (4, F64), (5, L), (6, F64), (7, L), (8, V),
]);

#[rustfmt::skip]
pub(super) const HISTOGRAM_POINT: MessageShape = MessageShape::new([
    (2, F64), (3, F64), (4, F64), (5, F64), (6, PACKED), (7, PACKED), (8, L), (9, L), (10, V), (11, F64), (12, F64),
]);

#[rustfmt::skip]
pub(super) const EXPONENTIAL_POINT: MessageShape = MessageShape::new([
    (1, L), (2, F64), (3, F64), (4, F64), (5, F64), (6, V), (7, F64), (8, L), (9, L), (10, V), (11, L), (12, F64),
    (13, F64), (14, F64),
]);

#[rustfmt::skip]
pub(super) const SUMMARY_POINT: MessageShape = MessageShape::new([
    (2, F64), (3, F64), (4, F64), (5, F64), (6, L), (7, L), (8, V),
]);
