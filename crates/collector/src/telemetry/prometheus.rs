//! Counters as a page for Prometheus, under the OpenTelemetry Collector's names and labels, so that dashboards and
//! alerts made for it work. What the Collector has no name for is under `kubewake_`.
//!
//! *Guarantees.* Each name and set of labels is there at most once: internal rows that share them are added up (an
//! exporter that several pipelines use counts as one, as in the Collector). Counters are there with zero before the
//! first event, so that no increase is missed. *Does not* write `_total` behind counters: the Collector does not either.

mod balancers;
mod calls;
mod clusters;
mod page;
mod rows;
mod sampling;

#[cfg(test)]
mod tests;

use std::sync::atomic::Ordering;

use kubewake_config::model::Level;
use page::{Page, Sizes};

use super::ProcessInfo;
use crate::core::{DropReason, Histogram, Registry};

/// The page. An empty one at [`Level::None`]; sizes of batches from [`Level::Normal`] on, those in bytes at
/// [`Level::Detailed`], with the durations of calls.
pub fn render(registry: &Registry, process: &ProcessInfo, level: Level) -> String {
    let mut page = Page::default();
    if level > Level::None {
        rows::receivers(&mut page, registry);
        if level >= Level::Detailed {
            calls::all(&mut page, registry);
        }
        rows::processors(&mut page, registry, level);
        sampling::all(&mut page, registry);
        rows::exporters(&mut page, registry, level);
        balancers::all(&mut page, registry);
        clusters::all(&mut page, registry);
        pipelines(&mut page, registry);
        memory(&mut page, registry);
        reloads(&mut page, registry);
        self::process(&mut page, process);
    }
    page.into_text()
}

fn pipelines(page: &mut Page, registry: &Registry) {
    for (id, stats) in registry.pipelines() {
        let id = id.to_string();
        let labels = [("pipeline", &*id)];
        let received = stats.received();
        page.counter("kubewake_pipeline_received_items", "Number of items that the pipeline took.", &labels, received);
        let delivered = stats.delivered.load(Ordering::Relaxed);
        page.counter(
            "kubewake_pipeline_delivered_items",
            "Number of items that destinations took, each destination counted by itself.",
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

fn memory(page: &mut Page, registry: &Registry) {
    for (id, budget) in registry.budgets() {
        let labels = [("limiter", id.as_str())];
        page.gauge("kubewake_memory_used_bytes", "Bytes of telemetry that are held.", &labels, budget.used());
        page.gauge("kubewake_memory_limit_bytes", "Bytes of telemetry that may be held.", &labels, budget.limit());
    }
}

fn reloads(page: &mut Page, registry: &Registry) {
    let help = "Number of configuration documents that were put into effect or refused.";
    for (result, count) in [("applied", &registry.reloads_applied), ("refused", &registry.reloads_refused)] {
        page.counter("kubewake_config_reloads", help, &[("result", result)], count.load(Ordering::Relaxed));
    }
}

fn process(page: &mut Page, process: &ProcessInfo) {
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

/// An attribute's key as a label: what a label's name cannot hold becomes `_`.
fn label_name(key: &str) -> String {
    let digit_first = key.starts_with(|c: char| c.is_ascii_digit());
    let name = key.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
    digit_first.then_some('_').into_iter().chain(name).collect()
}

/// Sizes in items: only the bounds that the Collector has for items.
fn items(histogram: &Histogram) -> Sizes {
    let mut sizes = bytes(histogram);
    sizes.rows.retain(|(bound, _)| *bound <= Histogram::LAST_BOUND_OF_ITEMS);
    sizes
}

fn bytes(histogram: &Histogram) -> Sizes {
    let (rows, sum, count) = histogram.snapshot();
    Sizes { rows, sum, count, unit: 1 }
}
