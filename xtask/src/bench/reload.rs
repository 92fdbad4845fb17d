//! The configuration changes under load.

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

use serde_json::Value;

use super::{
    Plan,
    check::Section,
    config::{Config, Parts, exporter, pipeline},
    load::Load,
    process::Process,
    sink::Sink,
};

/// A rate at which every reload meets requests under way.
const RATE: u64 = 20_000;
/// Time for spans to pass between two reloads.
const INTERVAL: Duration = Duration::from_millis(150);
/// One in so many documents is refused.
const REFUSED: u32 = 5;
/// A document that is not in force by then is not going to be.
const RELOAD: Duration = Duration::from_secs(3);
const PATIENCE: Duration = Duration::from_secs(20);

/// Changes the file again and again while spans pass.
pub(crate) fn run(plan: &Plan) -> anyhow::Result<Section> {
    let how = format!(
        "{RATE} spans/s while the configuration is replaced {} times, {} ms apart, and one time in {REFUSED} by one that is \
         wrong. The receiver stays the same; batch, exporter and pipelines change.",
        plan.reloads,
        INTERVAL.as_millis()
    );
    let mut section = Section::new("Reload", how);
    let sink = Sink::start("reload-sink")?;
    let config = Config::new("reload")?;
    config.write(&parts(&sink, 0))?;
    let collector = config.start()?;
    // It is stopped when the reloads are done; the time only ends it if something here fails.
    let load = Load::new("reload", &config.grpc).rate(RATE).lasting(INTERVAL * plan.reloads * 4).start()?;
    let (mut loaded, mut refused) = (0, 0);
    for number in 1..=plan.reloads {
        sleep(INTERVAL);
        if reload(&config, &collector, &sink, number)? {
            *(if number.is_multiple_of(REFUSED) { &mut refused } else { &mut loaded }) += 1;
        }
    }
    sleep(INTERVAL);
    let outcome = load.stop()?;
    let missing = sink.missing(outcome.acknowledged_file(), PATIENCE)?;
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
    // A collector that ignores the file would keep every promise below.
    let (bad, good) = (plan.reloads / REFUSED, plan.reloads - plan.reloads / REFUSED);
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

/// Replaces the document by the one with this number. Whether the collector then says that it did what it should.
fn reload(config: &Config, collector: &Process, sink: &Sink, number: u32) -> anyhow::Result<bool> {
    let field = if number.is_multiple_of(REFUSED) { "/refused/hash" } else { "/revision/hash" };
    let hash = || anyhow::Ok(config.status()?.pointer(field).and_then(Value::as_str).map(str::to_owned));
    let before = hash()?;
    if number.is_multiple_of(REFUSED) {
        config.write_text(&format!("receivers:\n  unheard_of/{number}:\n"))?;
    } else {
        config.write(&parts(sink, number))?;
    }
    collector.signal("HUP")?;
    let deadline = Instant::now() + RELOAD;
    while Instant::now() < deadline {
        let now = hash()?;
        if now.is_some() && now != before {
            return Ok(true);
        }
        sleep(Duration::from_millis(5));
    }
    Ok(false)
}

/// Each number is another document: the batch or the exporter differs, or there is one pipeline more.
fn parts(sink: &Sink, number: u32) -> Parts {
    let (batch_size, timeout) = (4000 + number % 3 * 1000, 5 + number % 4);
    let more = format!("    compression: none\n    timeout: {timeout}s\n");
    let mut exporters = exporter("otlp", &sink.address, &more);
    let mut pipelines = pipeline("traces", "batch", "otlp");
    if number % 2 == 1 {
        exporters += "  nop:\n";
        pipelines += &pipeline("traces/more", "batch", "nop");
    }
    Parts { processors: format!("  batch:\n    send_batch_size: {batch_size}\n"), exporters, pipelines, health: true }
}
