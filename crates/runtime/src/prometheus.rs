//! Metrics in Prometheus' text format, version 0.0.4.
//!
//! *Guaranteed*: values of labels and help texts are escaped. A family is written as a whole, as the format
//! requires: its type and help once, then its samples.
//!
//! *Assumed*: names of metrics and labels are valid, and the caller writes each family and each set of labels
//! once. The collector, whose components share families, collects them before it writes
//! (`collector/telemetry/prometheus/`).
//!
//! *Not done*: a registry. Counters belong to the modules that count.

use std::fmt::{self, Display, Write as _};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    Counter,
    Gauge,
    Histogram,
}

/// The labels of a sample as text, with escaped values; equal labels in the same order are equal texts.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LabelSet(String);

/// A page of metrics.
#[derive(Debug, Default)]
pub struct MetricsText(String);

/// A family of a page, whose samples are written one by one.
#[derive(Debug)]
pub struct MetricFamily<'a> {
    page: &'a mut String,
    name: &'a str,
}

impl LabelSet {
    /// The labels in this order.
    pub fn new(labels: &[(&str, &str)]) -> Self {
        labels.iter().fold(Self::default(), |set, (name, value)| set.with(name, value))
    }

    /// These labels and one more.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        if !self.0.is_empty() {
            self.0.push(',');
        }
        self.0.push_str(name);
        self.0.push_str("=\"");
        for character in value.chars() {
            match character {
                '\\' => self.0.push_str(r"\\"),
                '"' => self.0.push_str("\\\""),
                '\n' => self.0.push_str(r"\n"),
                other => self.0.push(other),
            }
        }
        self.0.push('"');
        self
    }
}

impl MetricsText {
    /// Begins a family.
    pub fn family<'a>(&'a mut self, name: &'a str, kind: MetricKind, help: &str) -> MetricFamily<'a> {
        let help = help.replace('\\', r"\\").replace('\n', r"\n");
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
        MetricFamily { page: &mut self.0, name }
    }

    /// Writes a family of one sample without labels.
    pub fn single(&mut self, name: &str, kind: MetricKind, help: &str, value: impl Display) {
        self.family(name, kind, help).sample(&LabelSet::default(), value);
    }

    pub fn into_text(self) -> String {
        self.0
    }
}

impl MetricFamily<'_> {
    /// Writes a sample.
    pub fn sample(&mut self, labels: &LabelSet, value: impl Display) {
        self.row("", labels, value);
    }

    /// Writes a histogram: the cumulative counts by upper bound, the sum and the count of all observations.
    pub fn histogram<B: Display>(
        &mut self,
        labels: &LabelSet,
        buckets: impl IntoIterator<Item = (B, u64)>,
        sum: impl Display,
        count: u64,
    ) {
        for (bound, below) in buckets {
            self.row("_bucket", &labels.clone().with("le", &bound.to_string()), below);
        }
        self.row("_bucket", &labels.clone().with("le", "+Inf"), count);
        self.row("_sum", labels, sum);
        self.row("_count", labels, count);
    }

    fn row(&mut self, suffix: &str, LabelSet(labels): &LabelSet, value: impl Display) {
        let name = self.name;
        let _ = if labels.is_empty() {
            writeln!(self.page, "{name}{suffix} {value}")
        } else {
            writeln!(self.page, "{name}{suffix}{{{labels}}} {value}")
        };
    }
}

impl Display for MetricKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn family_is_written_with_its_samples() {
        let mut page = MetricsText::default();
        page.single("up", MetricKind::Gauge, "Whether it is up.", 1);
        let mut requests = page.family("requests_total", MetricKind::Counter, "Requests.");
        requests.sample(&LabelSet::new(&[("code", "200"), ("verb", "get")]), 3);
        requests.sample(&LabelSet::new(&[("code", "500"), ("verb", "get")]), 0);
        assert_eq!(
            page.into_text(),
            "# HELP up Whether it is up.\n# TYPE up gauge\nup 1\n\
             # HELP requests_total Requests.\n# TYPE requests_total counter\n\
             requests_total{code=\"200\",verb=\"get\"} 3\nrequests_total{code=\"500\",verb=\"get\"} 0\n"
        );
    }

    #[test]
    fn help_and_label_values_are_escaped() {
        let mut page = MetricsText::default();
        let mut family = page.family("a", MetricKind::Counter, "back\\slash\nand line");
        family.sample(&LabelSet::new(&[("path", "c:\\\"x\"\ny")]), 1);
        assert_eq!(
            page.into_text(),
            "# HELP a back\\\\slash\\nand line\n# TYPE a counter\na{path=\"c:\\\\\\\"x\\\"\\ny\"} 1\n"
        );
    }

    #[test]
    fn histogram_ends_with_the_count_of_all_its_sum_and_its_count() {
        let mut page = MetricsText::default();
        let mut family = page.family("seconds", MetricKind::Histogram, "Time.");
        family.histogram(&LabelSet::default(), [(0.5, 1), (5.0, 2)], 7.25, 3);
        family.histogram(&LabelSet::new(&[("a", "b")]), [(1, 0)], 0, 0);
        let samples: Vec<String> = page.into_text().lines().skip(2).map(str::to_owned).collect();
        assert_eq!(
            samples,
            [
                "seconds_bucket{le=\"0.5\"} 1",
                "seconds_bucket{le=\"5\"} 2",
                "seconds_bucket{le=\"+Inf\"} 3",
                "seconds_sum 7.25",
                "seconds_count 3",
                "seconds_bucket{a=\"b\",le=\"1\"} 0",
                "seconds_bucket{a=\"b\",le=\"+Inf\"} 0",
                "seconds_sum{a=\"b\"} 0",
                "seconds_count{a=\"b\"} 0",
            ]
        );
    }
}
