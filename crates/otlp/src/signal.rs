//! Signals: traces, metrics and logs.

use std::fmt;

/// A telemetry signal. Every payload, pipeline and counter belongs to exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Signal {
    Traces,
    /// Metrics, in `ExportMetricsServiceRequest`; their items are data points.
    Metrics,
    Logs,
}

impl Signal {
    /// All signals, in the order in which they are always listed.
    pub const ALL: [Signal; 3] = [Signal::Traces, Signal::Metrics, Signal::Logs];

    /// The name in configuration, paths and labels.
    pub const fn name(self) -> &'static str {
        match self {
            Signal::Traces => "traces",
            Signal::Metrics => "metrics",
            Signal::Logs => "logs",
        }
    }

    /// The noun for one item in the Collector's metric names: `accepted_spans`, `sent_log_records`.
    pub const fn items(self) -> &'static str {
        match self {
            Signal::Traces => "spans",
            Signal::Metrics => "metric_points",
            Signal::Logs => "log_records",
        }
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
