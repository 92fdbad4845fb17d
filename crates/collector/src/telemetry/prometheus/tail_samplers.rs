//! Metrics of tail samplers, under the names of the Collector's contrib repository.

use std::sync::atomic::{AtomicU64, Ordering};

use super::metrics_page::{HistogramSnapshot, MetricLabel, MetricsPage};
use crate::core::{EarlyDecision, SamplingOutcome, StatsRegistry, TailSamplerStats, ValueHistogram};

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

pub(super) fn write_metrics(page: &mut MetricsPage, registry: &StatsRegistry) {
    for (id, stats) in registry.samplers() {
        let processor = ("processor", id.as_str());
        let name = id.as_str().split_once('/').map(|(_, name)| name);
        policies(page, &stats, name, processor);
        decisions(page, &stats, processor);
        state(page, &stats, processor);
        times(page, &stats, processor);
    }
}

/// The policies of one processor. With a processor name, it becomes the prefix of the policy label.
fn policies(page: &mut MetricsPage, stats: &TailSamplerStats, name: Option<&str>, processor: MetricLabel<'_>) {
    for (policy, stats) in stats.policies() {
        let policy = name.map_or_else(|| policy.clone(), |name| format!("{name}.{policy}"));
        let mut executions = 0;
        for outcome in SamplingOutcome::ALL {
            let counts = stats.counts(outcome);
            let labels =
                [("decision", outcome.name()), ("policy", &*policy), processor, ("sampled", outcome.sampled())];
            for (unit, count) in [("traces", &counts.traces), ("spans", &counts.spans), ("bytes", &counts.bytes)] {
                page.counter(
                    &format!("otelcol_processor_tail_sampling_count_{unit}_sampled"),
                    &format!("Count of {unit} that were sampled or not per sampling policy [Development]"),
                    &labels,
                    read(count),
                );
            }
            executions += read(&counts.traces);
        }
        page.counter(
            "otelcol_processor_tail_sampling_sampling_policy_execution_count",
            "Total number of executions of a specific sampling policy [Development]",
            &[("policy", &*policy), processor],
            executions,
        );
    }
}

fn decisions(page: &mut MetricsPage, stats: &TailSamplerStats, processor: MetricLabel<'_>) {
    for outcome in SamplingOutcome::ALL {
        page.counter(
            "otelcol_processor_tail_sampling_global_count_traces_sampled",
            "Global count of traces that were sampled or not by at least one policy [Development]",
            &[("decision", outcome.name()), processor, ("sampled", outcome.sampled())],
            stats.decisions(outcome),
        );
    }
    for (sampled, count) in [("true", &stats.cached_kept), ("false", &stats.cached_dropped)] {
        page.counter(
            "otelcol_processor_tail_sampling_early_releases_from_cache_decision",
            "Number of spans that were able to be immediately released due to a decision cache hit. [Development]",
            &[processor, ("sampled", sampled)],
            read(count),
        );
    }
    for why in EarlyDecision::ALL {
        page.counter(
            "kubewake_tail_sampling_early_decisions",
            "Number of traces that were decided before the end of decision_wait, by reason.",
            &[processor, ("reason", why.name())],
            stats.early_decisions(why),
        );
    }
}

fn state(page: &mut MetricsPage, stats: &TailSamplerStats, processor: MetricLabel<'_>) {
    let counters = [
        (
            "otelcol_processor_tail_sampling_new_trace_id_received",
            "Counts the arrival of new traces [Development]",
            &stats.new_traces,
        ),
        (
            "otelcol_processor_tail_sampling_traces_dropped_too_large",
            "Count of traces that were dropped because they were too large [Development]",
            &stats.too_large,
        ),
        (
            "kubewake_tail_sampling_promoted_traces",
            "Number of dropped traces that are kept after all because of a late error.",
            &stats.promoted,
        ),
        (
            "kubewake_tail_sampling_unreadable_trace_states",
            "Number of kept spans without a sampling probability, because their trace state is invalid or \
             contradicts the decision.",
            &stats.unreadable_trace_states,
        ),
        ("kubewake_tail_sampling_overloads", "Number of times that the sampler ran short of memory.", &stats.overloads),
    ];
    for (name, help, count) in counters {
        page.counter(name, help, &[processor], read(count));
    }
    // Traces beyond the limit are decided rather than dropped, and a policy never fails: both metrics are
    // always zero, for dashboards that use them.
    for (name, help) in [
        (
            "otelcol_processor_tail_sampling_sampling_trace_dropped_too_early",
            "Count of traces that needed to be dropped before the configured wait time [Development]",
        ),
        (
            "otelcol_processor_tail_sampling_sampling_policy_evaluation_error",
            "Count of sampling policy evaluation errors [Development]",
        ),
    ] {
        page.counter(name, help, &[processor], 0);
    }
    let help = "Tracks the number of traces current on memory [Development]";
    page.gauge("otelcol_processor_tail_sampling_sampling_traces_on_memory", help, &[processor], read(&stats.traces));
    let help = "Bytes of spans that wait for a decision.";
    page.gauge("kubewake_tail_sampling_waiting_bytes", help, &[processor], read(&stats.waiting_bytes));
    let help = "Whether new traces are kept or dropped at random immediately, because memory is short.";
    let overloaded = u64::from(read(&stats.overloaded) > 0);
    page.gauge("kubewake_tail_sampling_overloaded", help, &[processor], overloaded);
}

fn times(page: &mut MetricsPage, stats: &TailSamplerStats, processor: MetricLabel<'_>) {
    let sizes = |distribution: &ValueHistogram| {
        let (rows, sum, count) = distribution.snapshot();
        HistogramSnapshot { rows, sum, count, unit: 1 }
    };
    let all = [
        (
            "sampling_decision_timer_latency",
            "Latency (in milliseconds) of each run of the sampling decision timer [Development]",
            &stats.decision_time,
        ),
        (
            "sampling_late_span_age",
            "Time (in seconds) from the sampling decision was taken and the arrival of a late span [Development]",
            &stats.late_age,
        ),
        (
            "sampling_trace_removal_age",
            "Time (in seconds) from arrival of a new trace until its removal from memory [Development]",
            &stats.removal_age,
        ),
    ];
    for (name, help, distribution) in all {
        page.histogram(&format!("otelcol_processor_tail_sampling_{name}"), help, &[processor], sizes(distribution));
    }
}
