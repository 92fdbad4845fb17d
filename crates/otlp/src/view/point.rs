//! Data points.

use super::AttributesView;
use super::message::{RepeatedField, content, double, fixed64, last_within, sint32, uint32, view, zigzag};
use crate::field_numbers::{exponential_point, histogram_point, number_point, point, summary_point};
use crate::wire::{I64, LEN, VARINT, WireField, WireFields, read_varint};

view! {
    /// A point of a gauge or a sum: the content of a `NumberDataPoint`.
    NumberPoint
}

impl<'a> NumberPoint<'a> {
    /// The attributes that identify its series.
    pub fn attributes(&self) -> AttributesView<'a> {
        AttributesView::new(self.0, number_point::ATTRIBUTES)
    }

    /// The value as a floating point number, also if it was sent as an integer; `None` if there is none.
    pub fn value(&self) -> Option<f64> {
        let field = self.value_field()?;
        if field.number == number_point::AS_INT {
            return field.as_fixed64().map(|bits| bits as i64 as f64);
        }
        field.as_double()
    }

    /// The value if it was sent as an integer.
    pub fn int_value(&self) -> Option<i64> {
        let field = self.value_field().filter(|field| field.number == number_point::AS_INT)?;
        field.as_fixed64().map(|bits| bits as i64)
    }

    /// `DataPointFlags`: 1 means "no recorded value".
    pub fn flags(&self) -> u32 {
        uint32(self.0, number_point::FLAGS)
    }

    fn value_field(&self) -> Option<WireField<'a>> {
        let is_value = |number| matches!(number, number_point::AS_DOUBLE | number_point::AS_INT);
        WireFields::new(self.0).filter(|field| field.wire == I64 && is_value(field.number)).last()
    }
}

view! {
    /// A point of a histogram: the content of a `HistogramDataPoint`.
    HistogramPoint
}

impl<'a> HistogramPoint<'a> {
    /// The attributes that identify its series.
    pub fn attributes(&self) -> AttributesView<'a> {
        AttributesView::new(self.0, histogram_point::ATTRIBUTES)
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        fixed64(self.0, point::COUNT)
    }

    /// The sum of the values, if known.
    pub fn sum(&self) -> Option<f64> {
        double(self.0, point::SUM)
    }

    /// The smallest value, if known.
    pub fn min(&self) -> Option<f64> {
        double(self.0, histogram_point::MIN)
    }

    /// The largest value, if known.
    pub fn max(&self) -> Option<f64> {
        double(self.0, histogram_point::MAX)
    }

    /// Number of values in each bucket; one more than there are bounds.
    pub fn bucket_counts(&self) -> Fixed64Values<'a> {
        Fixed64Values::new(self.0, histogram_point::BUCKET_COUNTS)
    }

    /// The upper bounds of the buckets.
    pub fn bounds(&self) -> DoubleValues<'a> {
        DoubleValues(Fixed64Values::new(self.0, histogram_point::BOUNDS))
    }

    /// `DataPointFlags`: 1 means "no recorded value".
    pub fn flags(&self) -> u32 {
        uint32(self.0, histogram_point::FLAGS)
    }
}

view! {
    /// A point of an exponential histogram: the content of an `ExponentialHistogramDataPoint`.
    ExponentialHistogramPoint
}

impl<'a> ExponentialHistogramPoint<'a> {
    /// The attributes that identify its series.
    pub fn attributes(&self) -> AttributesView<'a> {
        AttributesView::new(self.0, exponential_point::ATTRIBUTES)
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        fixed64(self.0, point::COUNT)
    }

    /// The sum of the values, if known.
    pub fn sum(&self) -> Option<f64> {
        double(self.0, point::SUM)
    }

    /// The smallest value, if known.
    pub fn min(&self) -> Option<f64> {
        double(self.0, exponential_point::MIN)
    }

    /// The largest value, if known.
    pub fn max(&self) -> Option<f64> {
        double(self.0, exponential_point::MAX)
    }

    /// The resolution: a bucket grows by `2^(2^-scale)`.
    pub fn scale(&self) -> i32 {
        sint32(self.0, exponential_point::SCALE)
    }

    /// Number of values that are zero, within the zero threshold.
    pub fn zero_count(&self) -> u64 {
        fixed64(self.0, exponential_point::ZERO_COUNT)
    }

    pub fn zero_threshold(&self) -> f64 {
        double(self.0, exponential_point::ZERO_THRESHOLD).unwrap_or_default()
    }

    /// The buckets of positive values.
    pub fn positive(&self) -> Option<ExponentialBuckets<'a>> {
        ExponentialBuckets::find(self.0, exponential_point::POSITIVE)
    }

    /// The buckets of negative values.
    pub fn negative(&self) -> Option<ExponentialBuckets<'a>> {
        ExponentialBuckets::find(self.0, exponential_point::NEGATIVE)
    }

    /// `DataPointFlags`: 1 means "no recorded value".
    pub fn flags(&self) -> u32 {
        uint32(self.0, exponential_point::FLAGS)
    }
}

/// Buckets of an exponential histogram. A message that comes in parts is merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExponentialBuckets<'a> {
    point: &'a [u8],
    number: u32,
}

impl<'a> ExponentialBuckets<'a> {
    fn find(point: &'a [u8], number: u32) -> Option<Self> {
        content(point, number).map(|_| Self { point, number })
    }

    /// The index of the first bucket.
    pub fn offset(&self) -> i32 {
        let field = last_within(self.point, self.number, exponential_point::BUCKETS_OFFSET, VARINT);
        zigzag(field.and_then(|field| field.as_varint()).unwrap_or_default() as u32)
    }

    /// Number of values in each bucket.
    pub fn counts(&self) -> VarintValues<'a> {
        let parts = WireFields::new(self.point);
        VarintValues { parts, part: self.number, fields: WireFields::new(&[]), packed: &[] }
    }
}

view! {
    /// A point of a summary: the content of a `SummaryDataPoint`.
    SummaryPoint
}

impl<'a> SummaryPoint<'a> {
    /// The attributes that identify its series.
    pub fn attributes(&self) -> AttributesView<'a> {
        AttributesView::new(self.0, summary_point::ATTRIBUTES)
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        fixed64(self.0, point::COUNT)
    }

    pub fn sum(&self) -> f64 {
        double(self.0, point::SUM).unwrap_or_default()
    }

    pub fn quantiles(&self) -> RepeatedField<'a, QuantileValue<'a>> {
        RepeatedField::new(self.0, summary_point::QUANTILES)
    }

    /// `DataPointFlags`: 1 means "no recorded value".
    pub fn flags(&self) -> u32 {
        uint32(self.0, summary_point::FLAGS)
    }
}

view! {
    /// A quantile and the value there.
    QuantileValue
}

impl QuantileValue<'_> {
    /// From 0 to 1.
    pub fn quantile(&self) -> f64 {
        double(self.0, summary_point::QUANTILE).unwrap_or_default()
    }

    /// The value at the quantile.
    pub fn value(&self) -> f64 {
        double(self.0, summary_point::VALUE).unwrap_or_default()
    }
}

/// The numbers of a repeated fixed64, packed or not. Ends where the message stops being well formed.
#[derive(Clone, Debug)]
pub struct Fixed64Values<'a> {
    fields: WireFields<'a>,
    number: u32,
    packed: &'a [u8],
}

impl<'a> Fixed64Values<'a> {
    fn new(message: &'a [u8], number: u32) -> Self {
        Self { fields: WireFields::new(message), number, packed: &[] }
    }
}

impl Iterator for Fixed64Values<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        loop {
            if let Some((value, rest)) = self.packed.split_first_chunk() {
                self.packed = rest;
                return Some(u64::from_le_bytes(*value));
            }
            let field = self.fields.find(|field| field.number == self.number && matches!(field.wire, LEN | I64))?;
            self.packed = field.value;
        }
    }
}

/// The numbers of a repeated double, packed or not. Ends where the message stops being well formed.
#[derive(Clone, Debug)]
pub struct DoubleValues<'a>(Fixed64Values<'a>);

impl Iterator for DoubleValues<'_> {
    type Item = f64;

    fn next(&mut self) -> Option<f64> {
        self.0.next().map(f64::from_bits)
    }
}

/// Number of values in each bucket of an exponential histogram, packed or not. Ends where the message stops
/// being well formed.
#[derive(Clone, Debug)]
pub struct VarintValues<'a> {
    /// The point, and the number of its field with the buckets.
    parts: WireFields<'a>,
    part: u32,
    fields: WireFields<'a>,
    packed: &'a [u8],
}

impl Iterator for VarintValues<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        loop {
            match read_varint(&mut self.packed) {
                Ok(value) => return Some(value),
                Err(_) if !self.packed.is_empty() => return None,
                Err(_) => {}
            }
            let is_counts = |number, wire| number == exponential_point::BUCKETS_COUNTS && matches!(wire, LEN | VARINT);
            match self.fields.find(|field| is_counts(field.number, field.wire)) {
                Some(counts) => self.packed = counts.value,
                None => {
                    let part = self.part;
                    self.fields = WireFields::new(self.parts.find(|field| field.is_len(part))?.value);
                }
            }
        }
    }
}
