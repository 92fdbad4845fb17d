//! The configuration changes under load.

use std::{thread::sleep, time::Duration};

use super::{
    Plan,
    check::Section,
    config::{Config, Parts, exporter, pipeline},
    load::Load,
    sink::Sink,
};

/// A rate at which every reload meets requests under way.
const RATE: u64 = 20_000;
/// Time for one reload to happen before the next.
const INTERVAL: Duration = Duration::from_millis(150);
/// One in so many documents is refused.
const REFUSED: u32 = 5;
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
    for number in 1..=plan.reloads {
        sleep(INTERVAL);
        if number % REFUSED == 0 {
            config.write_text("receivers:\n  unheard_of:\n")?;
        } else {
            config.write(&parts(&sink, number))?;
        }
        collector.signal("HUP")?;
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
    let sent = outcome.count("/items/started");
    section.check_none("spans that the receiver did not take", sent.saturating_sub(outcome.acknowledged()));
    section.check_none("spans lost", missing);
    section.check_none("spans doubled", duplicates);
    section.check_none("connections closed", outcome.count("/connections/lost"));
    Ok(section)
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
    Parts { processors: format!("  batch:\n    send_batch_size: {batch_size}\n"), exporters, pipelines }
}
