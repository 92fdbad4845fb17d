//! Metrics of receivers of log files.

use std::sync::atomic::Ordering;

use super::metrics_page::MetricsPage;
use crate::core::StatsRegistry;

pub(super) fn write_metrics(page: &mut MetricsPage, registry: &StatsRegistry) {
    for (id, stats) in registry.log_files() {
        let receiver = ("receiver", id.as_str());
        let help = "Bytes that were read from log files.";
        page.counter("kubewake_file_log_read_bytes", help, &[receiver], stats.read_bytes());
        let help = "Number of records of log files that were submitted.";
        page.counter("kubewake_file_log_records", help, &[receiver], stats.records.load(Ordering::Relaxed));
        let help = "Number of logs that are followed.";
        page.gauge("kubewake_file_log_logs", help, &[receiver], stats.logs.load(Ordering::Relaxed));
        for (kind, count) in stats.problems() {
            let help = "Number of problems with log files, by kind.";
            page.counter("kubewake_file_log_problems", help, &[("kind", kind), receiver], count);
        }
        for output in stats.outputs() {
            let pipeline = output.pipeline.to_string();
            let labels = [("exporter", output.exporter.as_str()), ("pipeline", &pipeline), receiver];
            let help = "Bytes of log files that an exporter has not dealt with.";
            page.gauge("kubewake_file_log_lag_bytes", help, &labels, output.lag_bytes);
            let help = "Age of the last line that an exporter has dealt with, in seconds; 0 if none is left.";
            page.gauge("kubewake_file_log_lag_seconds", help, &labels, output.lag_seconds);
            let help = "Bytes of log files that were removed before an exporter had dealt with them.";
            page.counter("kubewake_file_log_lost_bytes", help, &labels, output.lost_bytes);
            let help = "Number of requests that an exporter did not send and that are read again.";
            page.counter("kubewake_file_log_returned_requests", help, &labels, output.returned_requests);
        }
    }
}
