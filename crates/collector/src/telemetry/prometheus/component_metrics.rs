//! Metrics of receivers, processors, exporters and pipelines.

use std::sync::atomic::{AtomicU64, Ordering};

use kubewake_config::model::MetricsLevel;
use kubewake_otlp::Signal;

use super::{
    bytes_snapshot, items_snapshot,
    metrics_page::{MetricLabel, MetricsPage},
};
use crate::core::{DestinationLabels, EarlyRefusal, ExporterStats, ProcessorStats, StatsRegistry};

const SEND_SIZE_HELP: &str = "Number of units in the batch [Development]";
const SEND_SIZE_BYTES_HELP: &str =
    "Number of bytes in batch that was sent. Only available on detailed level. [Development]";

/// `spans`, `metric points`, `log records`
fn noun(signal: Signal) -> String {
    signal.items().replace('_', " ")
}

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

pub(super) fn write_receivers(page: &mut MetricsPage, registry: &StatsRegistry) {
    let used: Vec<Signal> = registry.pipelines().iter().map(|(id, _)| id.signal).collect();
    for ((id, transport), stats) in registry.receivers() {
        let labels = [("receiver", id.as_str()), ("transport", transport.name())];
        for signal in Signal::ALL {
            let counts = [stats.accepted().get(signal), stats.refused().get(signal), stats.failed().get(signal)];
            // A signal that no pipeline carries is left out, unless it was received nevertheless.
            if used.contains(&signal) || counts.iter().any(|count| *count > 0) {
                receiver(page, signal, &labels, counts);
            }
        }
        for reason in EarlyRefusal::ALL {
            let [receiver, transport] = labels;
            page.counter(
                "kubewake_receiver_refused_requests",
                "Number of requests that were refused before their items could be counted, by reason.",
                &[("reason", reason.name()), receiver, transport],
                stats.early_refusals(*reason),
            );
        }
    }
}

fn receiver(page: &mut MetricsPage, signal: Signal, labels: &[MetricLabel<'_>], [accepted, refused, failed]: [u64; 3]) {
    let items = signal.items();
    let noun = noun(signal);
    page.counter(
        &format!("otelcol_receiver_accepted_{items}"),
        &format!("Number of {noun} successfully pushed into the pipeline. [Alpha]"),
        labels,
        accepted,
    );
    page.counter(
        &format!("otelcol_receiver_refused_{items}"),
        &format!("Number of {noun} that could not be pushed into the pipeline. [Alpha]"),
        labels,
        refused,
    );
    page.counter(
        &format!("otelcol_receiver_failed_{items}"),
        &format!("The number of {noun} that failed to be processed by the receiver due to internal errors. [Alpha]"),
        labels,
        failed,
    );
}

pub(super) fn write_processors(page: &mut MetricsPage, registry: &StatsRegistry, level: MetricsLevel) {
    for ((id, signal), stats) in registry.processors() {
        let labels = [("otel_signal", signal.name()), ("processor", id.as_str())];
        let help = "Number of items passed to the processor. [Alpha]";
        page.counter("otelcol_processor_incoming_items", help, &labels, read(&stats.incoming));
        let help = "Number of items emitted from the processor. [Alpha]";
        page.counter("otelcol_processor_outgoing_items", help, &labels, read(&stats.outgoing));
        let labels = [("processor", id.as_str())];
        match id.kind() {
            "batch" => batch(page, &labels, &stats, level),
            "memory_limiter" => memory_limiter(page, signal, &labels, &stats),
            "filter" => filter(page, signal, &[("filter", id.as_str())], &stats),
            "probabilistic_sampler" => probabilistic_sampler(page, signal, id.as_str(), &stats),
            _ => {}
        }
    }
}

fn batch(page: &mut MetricsPage, labels: &[MetricLabel<'_>], stats: &ProcessorStats, level: MetricsLevel) {
    page.counter(
        "otelcol_processor_batch_batch_size_trigger_send",
        "Number of times the batch was sent due to a size trigger [Development]",
        labels,
        read(&stats.size_triggers),
    );
    page.counter(
        "otelcol_processor_batch_timeout_trigger_send",
        "Number of times the batch was sent due to a timeout trigger [Development]",
        labels,
        read(&stats.timeout_triggers),
    );
    let combinations = read(&stats.metadata_cardinality);
    if combinations > 0 {
        let help = "Number of distinct metadata value combinations being processed [Development]";
        page.gauge("otelcol_processor_batch_metadata_cardinality", help, labels, combinations);
    }
    if level >= MetricsLevel::Normal {
        page.histogram(
            "otelcol_processor_batch_batch_send_size",
            SEND_SIZE_HELP,
            labels,
            items_snapshot(&stats.batch_items),
        );
    }
    if level >= MetricsLevel::Detailed {
        let name = "otelcol_processor_batch_batch_send_size_bytes";
        page.histogram(name, SEND_SIZE_BYTES_HELP, labels, bytes_snapshot(&stats.batch_bytes));
    }
}

fn memory_limiter(page: &mut MetricsPage, signal: Signal, labels: &[MetricLabel<'_>], stats: &ProcessorStats) {
    let items = signal.items();
    let noun = noun(signal);
    page.counter(
        &format!("otelcol_processor_memory_limiter_accepted_{items}"),
        &format!("Number of {noun} successfully pushed into the next component in the pipeline. [Alpha]"),
        labels,
        read(&stats.outgoing),
    );
    page.counter(
        &format!("otelcol_processor_memory_limiter_refused_{items}"),
        &format!("Number of {noun} that were rejected by the next component in the pipeline. [Alpha]"),
        labels,
        read(&stats.refused),
    );
}

fn filter(page: &mut MetricsPage, signal: Signal, labels: &[MetricLabel<'_>], stats: &ProcessorStats) {
    let (items, noun) = match signal {
        Signal::Traces => ("spans", "spans"),
        Signal::Metrics => ("datapoints", "metric data points"),
        Signal::Logs => ("logs", "logs"),
    };
    page.counter(
        &format!("otelcol_processor_filter_{items}_filtered"),
        &format!("Number of {noun} dropped by the filter processor [Development]"),
        labels,
        read(&stats.filtered),
    );
}

fn probabilistic_sampler(page: &mut MetricsPage, signal: Signal, id: &str, stats: &ProcessorStats) {
    // The Collector counts spans here, although the name says traces.
    let name = format!("otelcol_processor_probabilistic_sampler_count_{}_sampled", signal.name());
    let help = format!("Count of {} that were sampled or not [Development]", signal.name());
    for (policy, decisions) in stats.sampled.policies() {
        for (sampled, count) in [("true", decisions.kept()), ("false", decisions.dropped())] {
            page.counter(&name, &help, &[("policy", &policy), ("processor", id), ("sampled", sampled)], count);
        }
    }
}

pub(super) fn write_exporters(page: &mut MetricsPage, registry: &StatsRegistry, level: MetricsLevel) {
    for ((id, pipeline, to), stats) in registry.exporters() {
        let exporter = ("exporter", id.as_str());
        sent(page, pipeline.signal, exporter, &to, &stats);
        let help = "Number of items that destinations rejected in requests that they accepted.";
        for (reason, items) in stats.rejected.iter() {
            page.counter("kubewake_exporter_rejected_items", help, &[exporter, ("reason", reason.name())], items);
        }
        let help = "Number of items that were shortened to the limits of the destination.";
        page.counter("kubewake_exporter_truncated_items", help, &[exporter], read(&stats.truncated));
        let labels = [("data_type", pipeline.signal.name()), exporter];
        let in_flight = u64::try_from(stats.in_flight.load(Ordering::Relaxed)).unwrap_or(0);
        page.gauge(
            "otelcol_exporter_in_flight_requests",
            "Number of export requests currently in-flight (including retry backoff). [Development]",
            &labels,
            in_flight,
        );
        if read(&stats.queue_capacity) > 0 {
            queue(page, &labels, &stats, level);
        }
    }
}

fn sent(
    page: &mut MetricsPage,
    signal: Signal,
    exporter: MetricLabel<'_>,
    to: &DestinationLabels,
    stats: &ExporterStats,
) {
    let items = signal.items();
    let noun = noun(signal);
    let labels = [exporter, ("server_address", &*to.address), ("server_port", &*to.port), ("url_path", &*to.path)];
    page.counter(
        &format!("otelcol_exporter_sent_{items}"),
        &format!("Number of {noun} successfully sent to destination. [Alpha]"),
        &labels,
        read(&stats.sent),
    );
    page.counter(
        &format!("otelcol_exporter_send_failed_{items}"),
        &format!("Number of {noun} in failed attempts to send to destination. [Alpha]"),
        &labels,
        read(&stats.send_failed),
    );
    page.counter(
        &format!("otelcol_exporter_enqueue_failed_{items}"),
        &format!("Number of {noun} failed to be added to the sending queue. [Alpha]"),
        &[exporter],
        read(&stats.enqueue_failed),
    );
}

fn queue(page: &mut MetricsPage, labels: &[MetricLabel<'_>; 2], stats: &ExporterStats, level: MetricsLevel) {
    let help = "Fixed capacity of the retry queue (in batches). [Alpha]";
    page.gauge("otelcol_exporter_queue_capacity", help, labels, read(&stats.queue_capacity));
    let help = "Current size of the retry queue (in batches). [Alpha]";
    page.gauge("otelcol_exporter_queue_size", help, labels, stats.queue.size());
    let [_, exporter] = labels;
    if level >= MetricsLevel::Normal {
        page.histogram(
            "otelcol_exporter_queue_batch_send_size",
            SEND_SIZE_HELP,
            &[*exporter],
            items_snapshot(&stats.batch_items),
        );
    }
    if level >= MetricsLevel::Detailed {
        let name = "otelcol_exporter_queue_batch_send_size_bytes";
        page.histogram(name, SEND_SIZE_BYTES_HELP, &[*exporter], bytes_snapshot(&stats.batch_bytes));
    }
}
