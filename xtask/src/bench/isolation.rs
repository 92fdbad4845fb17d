//! Two pipelines, one backend hangs.

use std::time::Duration;

use anyhow::Context;
use serde_json::Value;

use super::{
    Plan,
    check::Section,
    config::{Config, Parts, exporter, pipeline},
    load::{Load, Outcome},
    sink::Sink,
};

/// A rate that both pipelines bear easily.
const RATE: u64 = 20_000;
/// The other pipeline's p99 at most, beside what it is when nothing hangs.
const MAX_RATIO: f64 = 1.5;
/// The healthy pipeline delivers within moments.
const PATIENCE: Duration = Duration::from_secs(10);

/// What one run measured at the healthy backend.
struct Run {
    outcome: Outcome,
    missing: u64,
    duplicates: u64,
    /// Spans that the other backend took, and that its pipeline had no room for.
    other_took: u64,
    other_dropped: u64,
    /// From the sender to the backend, in milliseconds.
    p50: f64,
    p99: f64,
}

/// First with both backends well, then with one hanging.
pub(crate) fn run(plan: &Plan) -> anyhow::Result<Section> {
    let how = format!(
        "One receiver, two pipelines with a backend each, {RATE} spans/s for {} s: first both backends answer, then one of \
         them hangs. Measured at the other.",
        plan.isolation.as_secs()
    );
    let mut section = Section::new("Isolation", how);
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
    // Otherwise nothing was put to the test.
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

fn measure(plan: &Plan, hang: bool) -> anyhow::Result<Run> {
    let (healthy, other) = (Sink::start("isolation-healthy")?, Sink::start("isolation-other")?);
    other.mode(&format!("hang={hang}"))?;
    let config = Config::new("isolation")?;
    config.write(&parts(&healthy, &other))?;
    let collector = config.start()?;
    Load::new("isolation", &config.grpc).rate(RATE).lasting(plan.warm_up).run()?;
    healthy.reset()?;
    let outcome = Load::new("isolation", &config.grpc).rate(RATE).lasting(plan.isolation).run()?;
    let missing = healthy.missing(outcome.acknowledged_file(), PATIENCE)?;
    let duplicates = healthy.count("/duplicates")?;
    let (p50, p99) = (healthy.latency("p50")?, healthy.latency("p99")?);
    let other_took = other.count("/items")?;
    let dropped = config.status()?.pointer("/pipelines/traces~1other/dropped/queue_full").and_then(Value::as_u64);
    let other_dropped = dropped.context("the collector does not count what the other pipeline dropped")?;
    // The hanging pipeline has what it cannot deliver; let it, so that the collector ends at once.
    other.mode("hang=false")?;
    collector.stop()?;
    Ok(Run { outcome, missing, duplicates, other_took, other_dropped, p50, p99 })
}

/// Small batches, so that the latency is the collector's and not the batch's; a queue that the hanging pipeline fills.
fn parts(healthy: &Sink, other: &Sink) -> Parts {
    let more = "    compression: none\n    sending_queue:\n      queue_size: 100\n    retry_on_failure:\n      \
                initial_interval: 500ms\n      max_interval: 1s\n";
    let exporters = [exporter("otlp/healthy", &healthy.address, more), exporter("otlp/other", &other.address, more)];
    let pipelines = [
        pipeline("traces/healthy", "batch/healthy", "otlp/healthy"),
        pipeline("traces/other", "batch/other", "otlp/other"),
    ];
    let batch = |name: &str| format!("  batch/{name}:\n    timeout: 20ms\n    send_batch_size: 2000\n");
    Parts {
        processors: batch("healthy") + &batch("other"),
        exporters: exporters.concat(),
        pipelines: pipelines.concat(),
        health: true,
    }
}
