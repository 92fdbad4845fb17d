//! The three kinds of telemetry.

use std::fmt;

/// A kind of telemetry. Every payload, pipeline and counter is of exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Signal {
    /// Spans, in `ExportTraceServiceRequest`.
    Traces,
    /// Metrics, in `ExportMetricsServiceRequest`; their items are data points.
    Metrics,
    /// Log records, in `ExportLogsServiceRequest`.
    Logs,
}

impl Signal {
    /// All of them, in the order in which they are listed everywhere.
    pub const ALL: [Signal; 3] = [Signal::Traces, Signal::Metrics, Signal::Logs];

    /// The name that configuration, paths and labels use.
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
