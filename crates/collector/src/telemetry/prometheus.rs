//! Counters as a page for Prometheus, with the OpenTelemetry Collector's names and labels, so that dashboards
//! and alerts made for it work. Metrics that the Collector does not have begin with `kubewake_`.
//!
//! *Guarantees.* Each name and set of labels occurs at most once: internal rows that share them are added up
//! (an exporter that several pipelines use counts as one, as in the Collector). Counters start at zero before
//! the first event, so that no increase is missed. *Does not* append `_total` to the names of counters, and
//! neither does the Collector.

mod balancers;
mod calls;
mod clusters;
mod component_metrics;
mod log_files;
mod metrics_page;
mod tail_samplers;

#[cfg(test)]
mod tests;

use std::sync::atomic::Ordering;

use kubewake_config::model::MetricsLevel;
use metrics_page::{HistogramSnapshot, MetricsPage};

use super::ProcessInfo;
use crate::core::{BatchSizeHistogram, DropReason, StatsRegistry};

/// The page: empty at [`MetricsLevel::None`]; with sizes of batches in items from [`MetricsLevel::Normal`] on;
/// with sizes in bytes and durations of calls at [`MetricsLevel::Detailed`].
pub fn render(registry: &StatsRegistry, process: &ProcessInfo, level: MetricsLevel) -> String {
    let mut page = MetricsPage::default();
    if level > MetricsLevel::None {
        component_metrics::write_receivers(&mut page, registry);
        if level >= MetricsLevel::Detailed {
            calls::write_metrics(&mut page, registry);
        }
        component_metrics::write_processors(&mut page, registry, level);
        tail_samplers::write_metrics(&mut page, registry);
        component_metrics::write_exporters(&mut page, registry, level);
        balancers::write_metrics(&mut page, registry);
        clusters::write_metrics(&mut page, registry);
        log_files::write_metrics(&mut page, registry);
        pipelines(&mut page, registry);
        memory(&mut page, registry);
        reloads(&mut page, registry);
        self::process(&mut page, process);
    }
    page.into_text()
}

fn pipelines(page: &mut MetricsPage, registry: &StatsRegistry) {
    for (id, stats) in registry.pipelines() {
        let id = id.to_string();
        let labels = [("pipeline", &*id)];
        let received = stats.received();
        page.counter(
            "kubewake_pipeline_received_items",
            "Number of items that the pipeline accepted.",
            &labels,
            received,
        );
        let delivered = stats.delivered.load(Ordering::Relaxed);
        page.counter(
            "kubewake_pipeline_delivered_items",
            "Number of items that destinations accepted, counted separately for each destination.",
            &labels,
            delivered,
        );
        for reason in DropReason::ALL {
            page.counter(
                "kubewake_pipeline_dropped_items",
                "Number of items that the pipeline lost, by reason.",
                &[("pipeline", &id), ("reason", reason.name())],
                stats.dropped_for(*reason),
            );
        }
    }
}

fn memory(page: &mut MetricsPage, registry: &StatsRegistry) {
    for (id, budget) in registry.budgets() {
        let labels = [("limiter", id.as_str())];
        page.gauge("kubewake_memory_used_bytes", "Bytes of telemetry in memory.", &labels, budget.used());
        page.gauge(
            "kubewake_memory_limit_bytes",
            "Limit of the bytes of telemetry in memory.",
            &labels,
            budget.limit(),
        );
    }
}

fn reloads(page: &mut MetricsPage, registry: &StatsRegistry) {
    let help = "Number of configuration documents that were applied or refused.";
    for (result, count) in [("applied", &registry.reloads_applied), ("refused", &registry.reloads_refused)] {
        page.counter("kubewake_config_reloads", help, &[("result", result)], count.load(Ordering::Relaxed));
    }
}

fn process(page: &mut MetricsPage, process: &ProcessInfo) {
    page.counter_of_seconds("otelcol_process_uptime", "Uptime of the process [Alpha]", process.uptime.as_secs_f64());
    if let Some(seconds) = process.cpu_seconds {
        let help = "Total CPU user and system time in seconds [Alpha]";
        page.counter_of_seconds("otelcol_process_cpu_seconds", help, seconds);
    }
    if let Some(bytes) = process.memory_rss {
        page.gauge("otelcol_process_memory_rss", "Total physical memory (resident set size) [Alpha]", &[], bytes);
    }
    let names: Vec<String> = process.attributes.keys().map(|key| label_name(key)).collect();
    let labels: Vec<_> =
        names.iter().map(String::as_str).zip(process.attributes.values().map(String::as_str)).collect();
    page.gauge("target_info", "Target metadata", &labels, 1);
}

/// An attribute key as a label name: invalid characters become `_`.
fn label_name(key: &str) -> String {
    let digit_first = key.starts_with(|c: char| c.is_ascii_digit());
    let name = key.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
    digit_first.then_some('_').into_iter().chain(name).collect()
}

/// Sizes in items, with only the bounds that the Collector has for items.
fn items_snapshot(histogram: &BatchSizeHistogram) -> HistogramSnapshot {
    let mut sizes = bytes_snapshot(histogram);
    sizes.rows.retain(|(bound, _)| *bound <= BatchSizeHistogram::MAX_ITEMS_BOUND);
    sizes
}

fn bytes_snapshot(histogram: &BatchSizeHistogram) -> HistogramSnapshot {
    let (rows, sum, count) = histogram.snapshot();
    HistogramSnapshot { rows, sum, count, unit: 1 }
}
