//! A page in the Prometheus text format, whose families several components fill.

use std::collections::BTreeMap;

use kubewake_runtime::prometheus::{LabelSet, MetricFamily, MetricKind, MetricsText};

use crate::telemetry::format_shortest;

pub(super) type MetricLabel<'a> = (&'a str, &'a str);

/// Metric families by name. Rows with the same labels are added up.
#[derive(Default)]
pub(super) struct MetricsPage {
    families: BTreeMap<String, FamilyRows>,
}

struct FamilyRows {
    help: String,
    kind: MetricKind,
    rows: BTreeMap<LabelSet, SampleValue>,
}

enum SampleValue {
    Integer(u64),
    Float(f64),
    Histogram(HistogramSnapshot),
}

/// The state of a histogram at one moment.
#[derive(Clone)]
pub(super) struct HistogramSnapshot {
    /// Cumulative counts by upper bound.
    pub(super) rows: Vec<(u64, u64)>,
    pub(super) sum: u64,
    pub(super) count: u64,
    /// The number of counted units in one displayed unit, such as nanoseconds in a second.
    pub(super) unit: u64,
}

impl MetricsPage {
    pub(super) fn counter(&mut self, name: &str, help: &str, labels: &[MetricLabel<'_>], value: u64) {
        self.add(name, help, MetricKind::Counter, labels, SampleValue::Integer(value));
    }

    pub(super) fn gauge(&mut self, name: &str, help: &str, labels: &[MetricLabel<'_>], value: u64) {
        self.add(name, help, MetricKind::Gauge, labels, SampleValue::Integer(value));
    }

    pub(super) fn counter_of_seconds(&mut self, name: &str, help: &str, value: f64) {
        self.add(name, help, MetricKind::Counter, &[], SampleValue::Float(value));
    }

    pub(super) fn histogram(&mut self, name: &str, help: &str, labels: &[MetricLabel<'_>], value: HistogramSnapshot) {
        self.add(name, help, MetricKind::Histogram, labels, SampleValue::Histogram(value));
    }

    fn add(&mut self, name: &str, help: &str, kind: MetricKind, labels: &[MetricLabel<'_>], value: SampleValue) {
        let family = self.families.entry(name.to_owned()).or_insert_with(|| FamilyRows {
            help: help.to_owned(),
            kind,
            rows: BTreeMap::new(),
        });
        let labels = labels.iter().filter(|(_, value)| !value.is_empty());
        let labels = labels.fold(LabelSet::default(), |set, (name, value)| set.with(name, value));
        match family.rows.entry(labels) {
            std::collections::btree_map::Entry::Vacant(row) => {
                row.insert(value);
            }
            std::collections::btree_map::Entry::Occupied(mut row) => row.get_mut().add(value),
        }
    }

    pub(super) fn into_text(self) -> String {
        let mut text = MetricsText::default();
        for (name, rows) in &self.families {
            let mut family = text.family(name, rows.kind, &rows.help);
            for (labels, value) in &rows.rows {
                value.write(labels, &mut family);
            }
        }
        text.into_text()
    }
}

impl SampleValue {
    fn add(&mut self, other: SampleValue) {
        match (self, other) {
            (SampleValue::Integer(sum), SampleValue::Integer(more)) => *sum += more,
            (SampleValue::Float(sum), SampleValue::Float(more)) => *sum += more,
            (SampleValue::Histogram(sum), SampleValue::Histogram(more)) => sum.add(&more),
            // All rows of a family have the same kind.
            _ => {}
        }
    }

    fn write(&self, labels: &LabelSet, family: &mut MetricFamily<'_>) {
        match self {
            SampleValue::Integer(value) => family.sample(labels, value),
            SampleValue::Float(value) => family.sample(labels, format_shortest(*value, 21)),
            SampleValue::Histogram(sizes) => sizes.write(labels, family),
        }
    }
}

impl HistogramSnapshot {
    fn add(&mut self, other: &HistogramSnapshot) {
        for ((_, count), (_, more)) in self.rows.iter_mut().zip(&other.rows) {
            *count += more;
        }
        self.sum += other.sum;
        self.count += other.count;
    }

    fn write(&self, labels: &LabelSet, family: &mut MetricFamily<'_>) {
        // Bounds are written as floating point numbers. The Collector's client uses an exponent from 10^6 on.
        let bound = |bound: u64| format_shortest(self.in_shown_unit(bound), 6);
        let buckets = self.rows.iter().map(|(upper, count)| (bound(*upper), *count));
        match self.unit {
            1 => family.histogram(labels, buckets, self.sum, self.count),
            _ => {
                let sum = format_shortest(self.in_shown_unit(self.sum), 21);
                family.histogram(labels, buckets, sum, self.count);
            }
        }
    }

    fn in_shown_unit(&self, counted: u64) -> f64 {
        counted as f64 / self.unit as f64
    }
}
