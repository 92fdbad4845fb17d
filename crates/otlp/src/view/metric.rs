//! Metrics and their data.

use super::message::{RepeatedField, bytes, int32, varint, view};
use super::point::{ExponentialHistogramPoint, HistogramPoint, NumberPoint, SummaryPoint};
use super::{AttributesView, MessageView};
use crate::field_numbers::{data, metric};
use crate::nesting::is_data;
use crate::wire::{LEN, WireFields};

view! {
    /// A metric: the content of a `Metric`.
    Metric
}

impl<'a> Metric<'a> {
    pub fn name(&self) -> &'a [u8] {
        bytes(self.0, metric::NAME)
    }

    pub fn description(&self) -> &'a [u8] {
        bytes(self.0, metric::DESCRIPTION)
    }

    /// The unit, in UCUM notation.
    pub fn unit(&self) -> &'a [u8] {
        bytes(self.0, metric::UNIT)
    }

    /// Attributes that describe the metric.
    pub fn metadata(&self) -> AttributesView<'a> {
        AttributesView::new(self.0, metric::METADATA)
    }

    /// The data; `None` if there is no data message. Of several the last one counts.
    pub fn data(&self) -> Option<MetricData<'a>> {
        let field = WireFields::new(self.0).filter(|field| field.wire == LEN && is_data(field.number)).last()?;
        let kind = MetricKind::from_field_number(field.number)?;
        Some(MetricData { kind, content: field.value })
    }
}

/// The five types of metric data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MetricKind {
    /// Current values.
    Gauge,
    /// Sums, which can be added over time or series.
    Sum,
    /// Counts in buckets with explicit bounds.
    Histogram,
    /// Counts in buckets of exponential width.
    ExponentialHistogram,
    /// Quantiles computed at the source.
    Summary,
}

impl MetricKind {
    pub(crate) const fn from_field_number(number: u32) -> Option<Self> {
        Some(match number {
            metric::GAUGE => MetricKind::Gauge,
            metric::SUM => MetricKind::Sum,
            metric::HISTOGRAM => MetricKind::Histogram,
            metric::EXPONENTIAL_HISTOGRAM => MetricKind::ExponentialHistogram,
            metric::SUMMARY => MetricKind::Summary,
            _ => return None,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AggregationTemporality {
    /// Unspecified, or an unknown number.
    Unspecified,
    Delta,
    Cumulative,
}

/// The data of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricData<'a> {
    kind: MetricKind,
    content: &'a [u8],
}

impl<'a> MetricData<'a> {
    /// Which of the five it is.
    pub fn kind(&self) -> MetricKind {
        self.kind
    }

    /// The aggregation temporality; unspecified for gauges and summaries, which have none.
    pub fn temporality(&self) -> AggregationTemporality {
        if matches!(self.kind, MetricKind::Gauge | MetricKind::Summary) {
            return AggregationTemporality::Unspecified;
        }
        match int32(self.content, data::TEMPORALITY) {
            1 => AggregationTemporality::Delta,
            2 => AggregationTemporality::Cumulative,
            _ => AggregationTemporality::Unspecified,
        }
    }

    /// Whether a sum is monotonic; false for all other kinds.
    pub fn is_monotonic(&self) -> bool {
        self.kind == MetricKind::Sum && varint(self.content, data::IS_MONOTONIC) != 0
    }

    pub fn points(&self) -> impl Iterator<Item = DataPoint<'a>> + use<'a> {
        let kind = self.kind;
        RepeatedField::<&[u8]>::new(self.content, data::POINTS).map(move |content| DataPoint::new(kind, content))
    }

    /// The content of the data message.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.content
    }
}

/// A data point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataPoint<'a> {
    /// A point of a gauge or a sum.
    Number(NumberPoint<'a>),
    Histogram(HistogramPoint<'a>),
    ExponentialHistogram(ExponentialHistogramPoint<'a>),
    Summary(SummaryPoint<'a>),
}

impl<'a> DataPoint<'a> {
    /// Views the content of a data point message of a metric of this kind.
    pub fn new(kind: MetricKind, content: &'a [u8]) -> Self {
        match kind {
            MetricKind::Gauge | MetricKind::Sum => DataPoint::Number(NumberPoint::new(content)),
            MetricKind::Histogram => DataPoint::Histogram(HistogramPoint::new(content)),
            MetricKind::ExponentialHistogram => {
                DataPoint::ExponentialHistogram(ExponentialHistogramPoint::new(content))
            }
            MetricKind::Summary => DataPoint::Summary(SummaryPoint::new(content)),
        }
    }

    /// The attributes that identify its series.
    pub fn attributes(&self) -> AttributesView<'a> {
        match self {
            DataPoint::Number(point) => point.attributes(),
            DataPoint::Histogram(point) => point.attributes(),
            DataPoint::ExponentialHistogram(point) => point.attributes(),
            DataPoint::Summary(point) => point.attributes(),
        }
    }

    /// The start of the interval, in nanoseconds since 1970.
    pub fn start(&self) -> u64 {
        super::message::fixed64(self.as_bytes(), crate::field_numbers::point::START)
    }

    /// The time of the point, in nanoseconds since 1970.
    pub fn time(&self) -> u64 {
        super::message::fixed64(self.as_bytes(), crate::field_numbers::point::TIME)
    }

    /// The content of the message.
    pub fn as_bytes(&self) -> &'a [u8] {
        match self {
            DataPoint::Number(point) => point.as_bytes(),
            DataPoint::Histogram(point) => point.as_bytes(),
            DataPoint::ExponentialHistogram(point) => point.as_bytes(),
            DataPoint::Summary(point) => point.as_bytes(),
        }
    }
}
