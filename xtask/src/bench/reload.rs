//! Configuration reloads under load.

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

use serde_json::Value;

use super::{
    BenchPlan,
    config::{CollectorFile, DocumentParts, exporter_yaml, pipeline_yaml},
    load::LoadCommand,
    process::BenchProcess,
    section::BenchSection,
    sink::BenchSink,
};

/// A rate at which requests are in flight during every reload.
const SPANS_PER_SECOND: u64 = 20_000;
/// Time for spans to pass between two reloads.
const RELOAD_INTERVAL: Duration = Duration::from_millis(150);
/// One in this number of configurations is invalid.
const REFUSED_ONE_IN: u32 = 5;
/// A configuration that is not applied by then never will be.
const RELOAD_TIMEOUT: Duration = Duration::from_secs(3);
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(20);

/// Changes the file repeatedly under load.
pub(crate) fn run(plan: &BenchPlan) -> anyhow::Result<BenchSection> {
    let how = format!(
        "The collector receives {SPANS_PER_SECOND} spans/s while its configuration is replaced {} times, {} ms apart. \
         One in {REFUSED_ONE_IN} configurations is invalid. The receiver stays the same; batch, exporter and pipelines \
         change.",
        plan.reloads,
        RELOAD_INTERVAL.as_millis()
    );
    let mut section = BenchSection::new("Reload", how);
    let sink = BenchSink::start("reload-sink")?;
    let config = CollectorFile::new("reload")?;
    config.write(&parts(&sink, 0))?;
    let collector = config.start()?;
    // The load is stopped after the last reload; its duration only applies if the bench fails.
    let load = LoadCommand::new("reload", &config.grpc)
        .rate(SPANS_PER_SECOND)
        .duration(RELOAD_INTERVAL * plan.reloads * 4)
        .start()?;
    let mut loaded = 0;
    let mut refused = 0;
    for number in 1..=plan.reloads {
        sleep(RELOAD_INTERVAL);
        if reload(&config, &collector, &sink, number)? {
            *(if number.is_multiple_of(REFUSED_ONE_IN) { &mut refused } else { &mut loaded }) += 1;
        }
    }
    sleep(RELOAD_INTERVAL);
    let outcome = load.stop()?;
    let missing = sink.missing(outcome.acknowledged_file(), DELIVERY_TIMEOUT)?;
    let duplicates = sink.count("/duplicates")?;
    collector.stop()?;

    section.header(&[
        "reloads",
        "acknowledged",
        "answers",
        "missing",
        "twice",
        "connections lost",
        "p99 of the sender",
    ]);
    section.row([
        plan.reloads.to_string(),
        outcome.acknowledged().to_string(),
        outcome.codes(),
        missing.to_string(),
        duplicates.to_string(),
        outcome.count("/connections/lost").to_string(),
        format!("{:.1} ms", outcome.measure("/latency_ms/p99")),
    ]);
    // Without this check, a collector that ignores the file would pass the others.
    let bad = plan.reloads / REFUSED_ONE_IN;
    let good = plan.reloads - plan.reloads / REFUSED_ONE_IN;
    let what = format!("{loaded} and {refused}");
    section.check(
        format!("{good} loaded and {bad} refused, by its own account"),
        what,
        (loaded, refused) == (good, bad),
    );
    let sent = outcome.count("/items/started");
    section.check_none("spans that the receiver did not take", sent.saturating_sub(outcome.acknowledged()));
    section.check_none("spans lost", missing);
    section.check_none("spans doubled", duplicates);
    section.check_none("connections closed", outcome.count("/connections/lost"));
    Ok(section)
}

/// Writes the configuration with this number. Returns whether the collector applied or refused it as expected.
fn reload(config: &CollectorFile, collector: &BenchProcess, sink: &BenchSink, number: u32) -> anyhow::Result<bool> {
    let field = if number.is_multiple_of(REFUSED_ONE_IN) { "/refused/hash" } else { "/revision/hash" };
    let hash = || anyhow::Ok(config.status()?.pointer(field).and_then(Value::as_str).map(str::to_owned));
    let before = hash()?;
    if number.is_multiple_of(REFUSED_ONE_IN) {
        config.write_text(&format!("receivers:\n  unheard_of/{number}:\n"))?;
    } else {
        config.write(&parts(sink, number))?;
    }
    collector.signal("HUP")?;
    let deadline = Instant::now() + RELOAD_TIMEOUT;
    while Instant::now() < deadline {
        let now = hash()?;
        if now.is_some() && now != before {
            return Ok(true);
        }
        sleep(Duration::from_millis(5));
    }
    Ok(false)
}

/// Consecutive configurations differ in the batch or the exporter, or have one pipeline more.
fn parts(sink: &BenchSink, number: u32) -> DocumentParts {
    let batch_size = 4000 + number % 3 * 1000;
    let timeout = 5 + number % 4;
    let more = format!("    compression: none\n    timeout: {timeout}s\n");
    let mut exporters = exporter_yaml("otlp", &sink.address, &more);
    let mut pipelines = pipeline_yaml("traces", "batch", "otlp");
    if number % 2 == 1 {
        exporters += "  nop:\n";
        pipelines += &pipeline_yaml("traces/more", "batch", "nop");
    }
    DocumentParts {
        processors: format!("  batch:\n    send_batch_size: {batch_size}\n"),
        exporters,
        pipelines,
        health: true,
    }
}
