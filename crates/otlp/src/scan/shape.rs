//! Which wire types each field of a message may have.

use crate::wire::{I32, I64, LEN, VARINT};

/// The wire types that each field number allows, a bit per wire type.
///
/// One load answers every question about a tag: a known field with another wire type, field number 0, a group and a
/// wire type that does not exist are all a bit that is not set.
pub(super) struct Shape([u8; 32]);

/// An unknown field may have any wire type that is not a group.
const UNKNOWN: u8 = 1 << VARINT | 1 << I64 | 1 << LEN | 1 << I32;

impl Shape {
    const fn new<const N: usize>(known: [(usize, u8); N]) -> Self {
        let mut allowed = [UNKNOWN; 32];
        let mut left: &[(usize, u8)] = &known;
        while let [(number, mask), tail @ ..] = left {
            set(&mut allowed, *number, *mask);
            left = tail;
        }
        set(&mut allowed, 0, 0);
        Self(allowed)
    }

    #[inline(always)]
    pub(super) fn allows(&self, number: u32, wire: u8) -> bool {
        self.0.get(number as usize).copied().unwrap_or(UNKNOWN) >> wire & 1 == 1
    }
}

#[allow(clippy::indexing_slicing, reason = "runs at compile time only, where a bad index does not compile")]
const fn set(allowed: &mut [u8; 32], number: usize, mask: u8) {
    allowed[number] = mask;
}

const V: u8 = 1 << VARINT;
const F64: u8 = 1 << I64;
const F32: u8 = 1 << I32;
const L: u8 = 1 << LEN;
/// A repeated fixed64 or double, packed or not.
const PACKED: u8 = L | F64;

pub(super) const REQUEST: Shape = Shape::new([(1, L)]);
pub(super) const RESOURCE_ENTRY: Shape = Shape::new([(1, L), (2, L), (3, L)]);
pub(super) const SCOPE_ENTRY: Shape = Shape::new([(1, L), (2, L), (3, L)]);

#[rustfmt::skip]
pub(super) const SPAN: Shape = Shape::new([
    (1, L), (2, L), (3, L), (4, L), (5, L), (6, V), (7, F64), (8, F64), (9, L), (10, V), (11, L), (12, V), (13, L),
    (14, V), (15, L), (16, F32),
]);

#[rustfmt::skip]
pub(super) const LOG_RECORD: Shape = Shape::new([
    (1, F64), (2, V), (3, L), (5, L), (6, L), (7, V), (8, F32), (9, L), (10, L), (11, F64), (12, L),
]);

#[rustfmt::skip]
pub(super) const METRIC: Shape = Shape::new([
    (1, L), (2, L), (3, L), (5, L), (7, L), (9, L), (10, L), (11, L), (12, L),
]);

/// `Gauge` and `Summary`.
pub(super) const POINTS: Shape = Shape::new([(1, L)]);
/// `Histogram` and `ExponentialHistogram`.
pub(super) const POINTS_OVER_TIME: Shape = Shape::new([(1, L), (2, V)]);
pub(super) const SUM: Shape = Shape::new([(1, L), (2, V), (3, V)]);

#[rustfmt::skip]
pub(super) const NUMBER_POINT: Shape = Shape::new([
    (2, F64), (3, F64), (4, F64), (5, L), (6, F64), (7, L), (8, V),
]);

#[rustfmt::skip]
pub(super) const HISTOGRAM_POINT: Shape = Shape::new([
    (2, F64), (3, F64), (4, F64), (5, F64), (6, PACKED), (7, PACKED), (8, L), (9, L), (10, V), (11, F64), (12, F64),
]);

#[rustfmt::skip]
pub(super) const EXPONENTIAL_POINT: Shape = Shape::new([
    (1, L), (2, F64), (3, F64), (4, F64), (5, F64), (6, V), (7, F64), (8, L), (9, L), (10, V), (11, L), (12, F64),
    (13, F64), (14, F64),
]);

#[rustfmt::skip]
pub(super) const SUMMARY_POINT: Shape = Shape::new([
    (2, F64), (3, F64), (4, F64), (5, F64), (6, L), (7, L), (8, V),
]);
