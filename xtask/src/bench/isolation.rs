//! Isolation of two pipelines, one of which has a backend that hangs.

use std::time::Duration;

use anyhow::Context;
use serde_json::Value;

use super::{
    BenchPlan,
    config::{CollectorFile, DocumentParts, exporter_yaml, pipeline_yaml},
    load::{LoadCommand, LoadOutcome},
    section::BenchSection,
    sink::BenchSink,
};

/// A rate well within the capacity of both pipelines.
const SPANS_PER_SECOND: u64 = 20_000;
/// Limit of the healthy pipeline's p99, as a ratio to its p99 when no backend hangs.
const MAX_RATIO: f64 = 1.5;
/// The healthy pipeline delivers almost at once.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(10);

/// Measurements of one run at the healthy backend.
struct IsolationRun {
    outcome: LoadOutcome,
    missing: u64,
    duplicates: u64,
    /// Spans that the other backend received.
    other_took: u64,
    other_dropped: u64,
    /// Latency from the sender to the backend, in milliseconds.
    p50: f64,
    p99: f64,
}

/// Measures with two healthy backends, then with one that hangs.
pub(crate) fn run(plan: &BenchPlan) -> anyhow::Result<BenchSection> {
    let how = format!(
        "One receiver feeds two pipelines with a backend each, at {SPANS_PER_SECOND} spans/s for {} s. First both \
         backends answer, then one of them hangs. The figures are those of the other backend.",
        plan.isolation.as_secs()
    );
    let mut section = BenchSection::new("Isolation", how);
    section.header(&["", "acknowledged", "answers", "missing", "twice", "p50", "p99", "p99 of the sender"]);
    let alone = measure(plan, false)?;
    let beside = measure(plan, true)?;
    for (name, run) in [("both answer", &alone), ("one hangs", &beside)] {
        section.row([
            name.to_owned(),
            run.outcome.acknowledged().to_string(),
            run.outcome.codes(),
            run.missing.to_string(),
            run.duplicates.to_string(),
            format!("{:.1} ms", run.p50),
            format!("{:.1} ms", run.p99),
            format!("{:.1} ms", run.outcome.measure("/latency_ms/p99")),
        ]);
    }
    // Otherwise isolation was not tested.
    let stuck = beside.other_took == 0 && beside.other_dropped > 0;
    let what = format!("{} taken, {} dropped", beside.other_took, beside.other_dropped);
    section.check("the hanging backend took nothing and its pipeline was full", what, stuck);
    section.check_none("spans that pipeline dropped while both answered", alone.other_dropped);
    let sent = beside.outcome.count("/items/started");
    section.check_none("spans that the receiver did not take", sent.saturating_sub(beside.outcome.acknowledged()));
    section.check_none("spans that the healthy backend did not get", beside.missing);
    section.check_none("spans that it got twice", beside.duplicates);
    let ratio = beside.p99 / alone.p99;
    section.check(format!("its p99 at most {MAX_RATIO} × of before"), format!("{ratio:.2} ×"), ratio <= MAX_RATIO);
    Ok(section)
}

fn measure(plan: &BenchPlan, hang: bool) -> anyhow::Result<IsolationRun> {
    let healthy = BenchSink::start("isolation-healthy")?;
    let other = BenchSink::start("isolation-other")?;
    other.set_mode(&format!("hang={hang}"))?;
    let config = CollectorFile::new("isolation")?;
    config.write(&parts(&healthy, &other))?;
    let collector = config.start()?;
    LoadCommand::new("isolation", &config.grpc).rate(SPANS_PER_SECOND).duration(plan.warm_up).run()?;
    healthy.reset()?;
    let outcome = LoadCommand::new("isolation", &config.grpc).rate(SPANS_PER_SECOND).duration(plan.isolation).run()?;
    let missing = healthy.missing(outcome.acknowledged_file(), DELIVERY_TIMEOUT)?;
    let duplicates = healthy.count("/duplicates")?;
    let p50 = healthy.latency("p50")?;
    let p99 = healthy.latency("p99")?;
    let other_took = other.count("/items")?;
    let dropped = config.status()?.pointer("/pipelines/traces~1other/dropped/queue_full").and_then(Value::as_u64);
    let other_dropped = dropped.context("the collector does not count what the other pipeline dropped")?;
    // The other pipeline must deliver its queue, so that the collector exits soon.
    other.set_mode("hang=false")?;
    collector.stop()?;
    Ok(IsolationRun { outcome, missing, duplicates, other_took, other_dropped, p50, p99 })
}

/// Small batches, whose delay does not dominate the latency, and a queue that the other pipeline fills.
fn parts(healthy: &BenchSink, other: &BenchSink) -> DocumentParts {
    let more = "    compression: none\n    sending_queue:\n      queue_size: 100\n    retry_on_failure:\n      \
                initial_interval: 500ms\n      max_interval: 1s\n";
    let exporters =
        [exporter_yaml("otlp/healthy", &healthy.address, more), exporter_yaml("otlp/other", &other.address, more)];
    let pipelines = [
        pipeline_yaml("traces/healthy", "batch/healthy", "otlp/healthy"),
        pipeline_yaml("traces/other", "batch/other", "otlp/other"),
    ];
    let batch = |name: &str| format!("  batch/{name}:\n    timeout: 20ms\n    send_batch_size: 2000\n");
    DocumentParts {
        processors: batch("healthy") + &batch("other"),
        exporters: exporters.concat(),
        pipelines: pipelines.concat(),
        health: true,
    }
}
