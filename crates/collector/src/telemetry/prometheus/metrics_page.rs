//! A page in the Prometheus text format.

use std::{collections::BTreeMap, fmt::Write};

use crate::telemetry::format_shortest;

pub(super) type MetricLabel<'a> = (&'a str, &'a str);

/// Metric families by name. Rows with the same labels are added up.
#[derive(Default)]
pub(super) struct MetricsPage {
    families: BTreeMap<String, MetricFamily>,
}

struct MetricFamily {
    help: String,
    kind: &'static str,
    rows: BTreeMap<String, SampleValue>,
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
        self.add(name, help, "counter", labels, SampleValue::Integer(value));
    }

    pub(super) fn gauge(&mut self, name: &str, help: &str, labels: &[MetricLabel<'_>], value: u64) {
        self.add(name, help, "gauge", labels, SampleValue::Integer(value));
    }

    pub(super) fn counter_of_seconds(&mut self, name: &str, help: &str, value: f64) {
        self.add(name, help, "counter", &[], SampleValue::Float(value));
    }

    pub(super) fn histogram(&mut self, name: &str, help: &str, labels: &[MetricLabel<'_>], value: HistogramSnapshot) {
        self.add(name, help, "histogram", labels, SampleValue::Histogram(value));
    }

    fn add(&mut self, name: &str, help: &str, kind: &'static str, labels: &[MetricLabel<'_>], value: SampleValue) {
        let family = self.families.entry(name.to_owned()).or_insert_with(|| MetricFamily {
            help: help.to_owned(),
            kind,
            rows: BTreeMap::new(),
        });
        let labels = labels.iter().filter(|(_, value)| !value.is_empty());
        let labels: Vec<String> =
            labels.map(|(name, value)| format!("{name}=\"{}\"", escape_label_value(value))).collect();
        match family.rows.entry(labels.join(",")) {
            std::collections::btree_map::Entry::Vacant(row) => {
                row.insert(value);
            }
            std::collections::btree_map::Entry::Occupied(mut row) => row.get_mut().add(value),
        }
    }

    pub(super) fn into_text(self) -> String {
        let mut out = String::new();
        for (name, family) in &self.families {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "# HELP {name} {}", family.help.replace('\\', r"\\").replace('\n', r"\n"));
            let _ = writeln!(out, "# TYPE {name} {}", family.kind);
            for (labels, value) in &family.rows {
                value.write(name, labels, &mut out);
            }
        }
        out
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

    fn write(&self, name: &str, labels: &str, out: &mut String) {
        match self {
            SampleValue::Integer(value) => write_row(out, name, labels, value),
            SampleValue::Float(value) => write_row(out, name, labels, format_shortest(*value, 21)),
            SampleValue::Histogram(sizes) => sizes.write(name, labels, out),
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

    fn write(&self, name: &str, labels: &str, out: &mut String) {
        let bucket = format!("{name}_bucket");
        let comma = if labels.is_empty() { "" } else { "," };
        for (bound, count) in &self.rows {
            // Bounds are written as floating point numbers. The Collector's client uses an exponent from 10^6
            // on.
            write_row(
                out,
                &bucket,
                &format!("{labels}{comma}le=\"{}\"", format_shortest(self.in_shown_unit(*bound), 6)),
                count,
            );
        }
        write_row(out, &bucket, &format!("{labels}{comma}le=\"+Inf\""), self.count);
        match self.unit {
            1 => write_row(out, &format!("{name}_sum"), labels, self.sum),
            _ => write_row(out, &format!("{name}_sum"), labels, format_shortest(self.in_shown_unit(self.sum), 21)),
        }
        write_row(out, &format!("{name}_count"), labels, self.count);
    }

    fn in_shown_unit(&self, counted: u64) -> f64 {
        counted as f64 / self.unit as f64
    }
}

fn write_row(out: &mut String, name: &str, labels: &str, value: impl std::fmt::Display) {
    // Writing to a string cannot fail.
    let _ = match labels {
        "" => writeln!(out, "{name} {value}"),
        labels => writeln!(out, "{name}{{{labels}}} {value}"),
    };
}

fn escape_label_value(value: &str) -> String {
    value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}
