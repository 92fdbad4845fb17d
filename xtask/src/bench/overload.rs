//! The backend hangs and senders go flat out.

use std::time::Duration;

use super::{
    Plan,
    check::{Section, mib},
    config::{Config, Parts, exporter, pipeline},
    load::Load,
    sink::Sink,
};

/// The budget of the collector.
const BUDGET_MIB: u64 = 256;
/// What the process may need beyond it.
const BEYOND_MIB: u64 = 64;
/// How long the collector may take to deliver what it held: the longest wait before a retry, and the sending.
const PATIENCE: Duration = Duration::from_secs(90);

/// Once over gRPC, once over HTTP.
pub(crate) fn run(plan: &Plan) -> anyhow::Result<Section> {
    let how = format!(
        "The backend hangs, senders go flat out for {} s (4 connections, 16 requests under way on each), \
         `memory_limiter: limit_mib: {BUDGET_MIB}`; then the backend answers again.",
        plan.overload.as_secs()
    );
    let mut section = Section::new("Overload", how);
    section.header(&["", "sent", "acknowledged", "answers", "peak", "missing afterwards", "twice"]);
    for protocol in ["grpc", "http"] {
        measure(plan, protocol, &mut section)?;
    }
    Ok(section)
}

fn measure(plan: &Plan, protocol: &str, section: &mut Section) -> anyhow::Result<()> {
    let sink = Sink::start("overload-sink")?;
    sink.mode("hang=true")?;
    let config = Config::new("overload")?;
    config.write(&parts(&sink))?;
    let collector = config.start()?;
    let address = if protocol == "grpc" { &config.grpc } else { &config.http };
    let load =
        Load::new("overload", address).args(&["--protocol", protocol, "--connections", "4", "--in-flight", "16"]);
    let outcome = load.lasting(plan.overload).run()?;
    sink.mode("hang=false")?;
    let missing = sink.missing(outcome.acknowledged_file(), PATIENCE)?;
    let peak = collector.memory()?.peak;
    section.row([
        protocol.to_owned(),
        outcome.count("/requests/sent").to_string(),
        outcome.count("/requests/acknowledged").to_string(),
        outcome.codes(),
        mib(peak),
        missing.to_string(),
        sink.count("/duplicates")?.to_string(),
    ]);
    let limit = (BUDGET_MIB + BEYOND_MIB) << 20;
    section.check(format!("{protocol}: peak memory at most {}", mib(limit)), mib(peak), peak <= limit);
    section.check_none(
        format!("{protocol}: answers that are neither OK nor retryable"),
        outcome.count("/requests/failed"),
    );
    let refusals = outcome.count("/requests/refusals");
    section.check(format!("{protocol}: senders were refused in time"), refusals, refusals > 0);
    section.check_none(format!("{protocol}: acknowledged and never arrived"), missing);
    collector.stop()
}

fn parts(sink: &Sink) -> Parts {
    // Short waits, so that the bench does not take longer than the backend's absence; no end to the retries.
    let retry = "    compression: none\n    retry_on_failure:\n      initial_interval: 1s\n      max_interval: 5s\n      \
                 max_elapsed_time: 0s\n";
    Parts {
        processors: format!("  memory_limiter:\n    check_interval: 1s\n    limit_mib: {BUDGET_MIB}\n  batch:\n"),
        exporters: exporter("otlp", &sink.address, retry),
        pipelines: pipeline("traces", "memory_limiter, batch", "otlp"),
        health: false,
    }
}
