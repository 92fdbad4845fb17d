//! Metrics and their data.

use super::message::{Repeated, bytes, int32, varint, view};
use super::point::{ExponentialHistogram, Histogram, Number, SummaryPoint};
use super::{Attributes, View};
use crate::level::is_data;
use crate::numbers::{data, metric};
use crate::wire::{Fields, LEN};

view! {
    /// A named series of measurements: the content of a `Metric`.
    Metric
}

impl<'a> Metric<'a> {
    /// The name.
    pub fn name(&self) -> &'a [u8] {
        bytes(self.0, metric::NAME)
    }

    /// What is measured.
    pub fn description(&self) -> &'a [u8] {
        bytes(self.0, metric::DESCRIPTION)
    }

    /// The unit, as UCUM writes it.
    pub fn unit(&self) -> &'a [u8] {
        bytes(self.0, metric::UNIT)
    }

    /// What describes the metric beside its data.
    pub fn metadata(&self) -> Attributes<'a> {
        Attributes::new(self.0, metric::METADATA)
    }

    /// The measurements; `None` if there is no data message. Of several the last one counts.
    pub fn data(&self) -> Option<Data<'a>> {
        let field = Fields::new(self.0).filter(|field| field.wire == LEN && is_data(field.number)).last()?;
        let kind = MetricKind::of(field.number)?;
        Some(Data { kind, content: field.value })
    }
}

/// The five kinds of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MetricKind {
    /// Values as they are now.
    Gauge,
    /// Sums, which add up over time or series.
    Sum,
    /// Counts in buckets with bounds.
    Histogram,
    /// Counts in buckets that grow exponentially.
    ExponentialHistogram,
    /// Quantiles that were computed at the source.
    Summary,
}

impl MetricKind {
    pub(crate) const fn of(number: u32) -> Option<Self> {
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

/// What a value covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Temporality {
    /// Not said, or a number that is not known here.
    Unspecified,
    /// Since the last report.
    Delta,
    /// Since the start.
    Cumulative,
}

/// The measurements of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data<'a> {
    kind: MetricKind,
    content: &'a [u8],
}

impl<'a> Data<'a> {
    /// Which of the five it is.
    pub fn kind(&self) -> MetricKind {
        self.kind
    }

    /// What a value covers; unspecified for gauges and summaries, which have none.
    pub fn temporality(&self) -> Temporality {
        if matches!(self.kind, MetricKind::Gauge | MetricKind::Summary) {
            return Temporality::Unspecified;
        }
        match int32(self.content, data::TEMPORALITY) {
            1 => Temporality::Delta,
            2 => Temporality::Cumulative,
            _ => Temporality::Unspecified,
        }
    }

    /// Whether a sum only grows; false for all other kinds.
    pub fn is_monotonic(&self) -> bool {
        self.kind == MetricKind::Sum && varint(self.content, data::IS_MONOTONIC) != 0
    }

    /// The data points.
    pub fn points(&self) -> impl Iterator<Item = Point<'a>> + use<'a> {
        let kind = self.kind;
        Repeated::<&[u8]>::new(self.content, data::POINTS).map(move |content| Point::new(kind, content))
    }

    /// The content of the data message.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.content
    }
}

/// One measurement of one series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point<'a> {
    /// Of a gauge or a sum.
    Number(Number<'a>),
    /// Of a histogram.
    Histogram(Histogram<'a>),
    /// Of an exponential histogram.
    ExponentialHistogram(ExponentialHistogram<'a>),
    /// Of a summary.
    Summary(SummaryPoint<'a>),
}

impl<'a> Point<'a> {
    /// Sees the content of a data point message as the kind that its metric has.
    pub fn new(kind: MetricKind, content: &'a [u8]) -> Self {
        match kind {
            MetricKind::Gauge | MetricKind::Sum => Point::Number(Number::new(content)),
            MetricKind::Histogram => Point::Histogram(Histogram::new(content)),
            MetricKind::ExponentialHistogram => Point::ExponentialHistogram(ExponentialHistogram::new(content)),
            MetricKind::Summary => Point::Summary(SummaryPoint::new(content)),
        }
    }

    /// What tells its series from the others.
    pub fn attributes(&self) -> Attributes<'a> {
        match self {
            Point::Number(point) => point.attributes(),
            Point::Histogram(point) => point.attributes(),
            Point::ExponentialHistogram(point) => point.attributes(),
            Point::Summary(point) => point.attributes(),
        }
    }

    /// Since when it counts, in nanoseconds since 1970.
    pub fn start(&self) -> u64 {
        super::message::fixed64(self.as_bytes(), crate::numbers::point::START)
    }

    /// Of when it is, in nanoseconds since 1970.
    pub fn time(&self) -> u64 {
        super::message::fixed64(self.as_bytes(), crate::numbers::point::TIME)
    }

    /// The content of the message.
    pub fn as_bytes(&self) -> &'a [u8] {
        match self {
            Point::Number(point) => point.as_bytes(),
            Point::Histogram(point) => point.as_bytes(),
            Point::ExponentialHistogram(point) => point.as_bytes(),
            Point::Summary(point) => point.as_bytes(),
        }
    }
}
