//! Overload: the backend hangs while senders do not limit their rate.

use std::time::Duration;

use super::{
    BenchPlan,
    config::{CollectorFile, DocumentParts, exporter_yaml, pipeline_yaml},
    load::LoadCommand,
    section::{BenchSection, format_mib},
    sink::BenchSink,
};

/// Memory budget of the collector.
const BUDGET_MIB: u64 = 256;
/// Memory of the process beyond the budget.
const MAX_OVERHEAD_MIB: u64 = 64;
/// How long the delivery of queued data may take: the longest retry interval, and the transfer.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(90);

/// Runs once over gRPC and once over HTTP.
pub(crate) fn run(plan: &BenchPlan) -> anyhow::Result<BenchSection> {
    let how = format!(
        "The backend hangs while senders send at full speed for {} s (4 connections, 16 requests in flight on each). \
         The setting is `memory_limiter: limit_mib: {BUDGET_MIB}`. Then the backend answers again.",
        plan.overload.as_secs()
    );
    let mut section = BenchSection::new("Overload", how);
    section.header(&["", "sent", "acknowledged", "answers", "peak", "missing afterwards", "twice"]);
    for protocol in ["grpc", "http"] {
        measure(plan, protocol, &mut section)?;
    }
    Ok(section)
}

fn measure(plan: &BenchPlan, protocol: &str, section: &mut BenchSection) -> anyhow::Result<()> {
    let sink = BenchSink::start("overload-sink")?;
    sink.set_mode("hang=true")?;
    let config = CollectorFile::new("overload")?;
    config.write(&parts(&sink))?;
    let collector = config.start()?;
    let address = if protocol == "grpc" { &config.grpc } else { &config.http };
    let load = LoadCommand::new("overload", address).args(&[
        "--protocol",
        protocol,
        "--connections",
        "4",
        "--in-flight",
        "16",
    ]);
    let outcome = load.duration(plan.overload).run()?;
    sink.set_mode("hang=false")?;
    let missing = sink.missing(outcome.acknowledged_file(), DELIVERY_TIMEOUT)?;
    let peak = collector.memory()?.peak;
    section.row([
        protocol.to_owned(),
        outcome.count("/requests/sent").to_string(),
        outcome.count("/requests/acknowledged").to_string(),
        outcome.codes(),
        format_mib(peak),
        missing.to_string(),
        sink.count("/duplicates")?.to_string(),
    ]);
    let limit = (BUDGET_MIB + MAX_OVERHEAD_MIB) << 20;
    section.check(format!("{protocol}: peak memory at most {}", format_mib(limit)), format_mib(peak), peak <= limit);
    section.check_none(
        format!("{protocol}: answers that are neither OK nor retryable"),
        outcome.count("/requests/failed"),
    );
    let refusals = outcome.count("/requests/refusals");
    section.check(format!("{protocol}: senders were refused in time"), refusals, refusals > 0);
    section.check_none(format!("{protocol}: acknowledged and never arrived"), missing);
    collector.stop()
}

fn parts(sink: &BenchSink) -> DocumentParts {
    // Short retry intervals, so that the bench takes no longer than the outage, and unlimited retries.
    let retry = "    compression: none\n    retry_on_failure:\n      initial_interval: 1s\n      max_interval: 5s\n      \
                 max_elapsed_time: 0s\n";
    DocumentParts {
        processors: format!("  memory_limiter:\n    check_interval: 1s\n    limit_mib: {BUDGET_MIB}\n  batch:\n"),
        exporters: exporter_yaml("otlp", &sink.address, retry),
        pipelines: pipeline_yaml("traces", "memory_limiter, batch", "otlp"),
        health: false,
    }
}
