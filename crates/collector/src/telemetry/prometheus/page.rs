//! A page in Prometheus' text format.

use std::{collections::BTreeMap, fmt::Write};

use crate::telemetry::shortest;

/// A label and its value.
pub(super) type Label<'a> = (&'a str, &'a str);

/// Families by name. Rows with the same labels are added up.
#[derive(Default)]
pub(super) struct Page {
    families: BTreeMap<String, Family>,
}

struct Family {
    help: String,
    kind: &'static str,
    rows: BTreeMap<String, Value>,
}

enum Value {
    Whole(u64),
    Real(f64),
    Sizes(Sizes),
}

/// A histogram as it was at one moment.
#[derive(Clone)]
pub(super) struct Sizes {
    /// Cumulative counts by upper bound.
    pub(super) rows: Vec<(u64, u64)>,
    pub(super) sum: u64,
    pub(super) count: u64,
    /// So many of what was counted are one of what is shown: nanoseconds, and seconds.
    pub(super) unit: u64,
}

impl Page {
    pub(super) fn counter(&mut self, name: &str, help: &str, labels: &[Label<'_>], value: u64) {
        self.add(name, help, "counter", labels, Value::Whole(value));
    }

    pub(super) fn gauge(&mut self, name: &str, help: &str, labels: &[Label<'_>], value: u64) {
        self.add(name, help, "gauge", labels, Value::Whole(value));
    }

    pub(super) fn counter_of_seconds(&mut self, name: &str, help: &str, value: f64) {
        self.add(name, help, "counter", &[], Value::Real(value));
    }

    pub(super) fn histogram(&mut self, name: &str, help: &str, labels: &[Label<'_>], value: Sizes) {
        self.add(name, help, "histogram", labels, Value::Sizes(value));
    }

    fn add(&mut self, name: &str, help: &str, kind: &'static str, labels: &[Label<'_>], value: Value) {
        let family = self.families.entry(name.to_owned()).or_insert_with(|| Family {
            help: help.to_owned(),
            kind,
            rows: BTreeMap::new(),
        });
        let labels = labels.iter().filter(|(_, value)| !value.is_empty());
        let labels: Vec<String> = labels.map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
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

impl Value {
    fn add(&mut self, other: Value) {
        match (self, other) {
            (Value::Whole(sum), Value::Whole(more)) => *sum += more,
            (Value::Real(sum), Value::Real(more)) => *sum += more,
            (Value::Sizes(sum), Value::Sizes(more)) => sum.add(&more),
            // A family has rows of one kind only.
            _ => {}
        }
    }

    fn write(&self, name: &str, labels: &str, out: &mut String) {
        match self {
            Value::Whole(value) => row(out, name, labels, value),
            Value::Real(value) => row(out, name, labels, shortest(*value, 21)),
            Value::Sizes(sizes) => sizes.write(name, labels, out),
        }
    }
}

impl Sizes {
    fn add(&mut self, other: &Sizes) {
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
            // Bounds are written as floating point numbers; the Collector's client has an exponent from 10^6 on.
            row(out, &bucket, &format!("{labels}{comma}le=\"{}\"", shortest(self.shown(*bound), 6)), count);
        }
        row(out, &bucket, &format!("{labels}{comma}le=\"+Inf\""), self.count);
        match self.unit {
            1 => row(out, &format!("{name}_sum"), labels, self.sum),
            _ => row(out, &format!("{name}_sum"), labels, shortest(self.shown(self.sum), 21)),
        }
        row(out, &format!("{name}_count"), labels, self.count);
    }

    fn shown(&self, counted: u64) -> f64 {
        counted as f64 / self.unit as f64
    }
}

fn row(out: &mut String, name: &str, labels: &str, value: impl std::fmt::Display) {
    // Writing to a string cannot fail.
    let _ = match labels {
        "" => writeln!(out, "{name} {value}"),
        labels => writeln!(out, "{name}{{{labels}}} {value}"),
    };
}

fn escaped(value: &str) -> String {
    value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}
