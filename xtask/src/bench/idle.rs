//! Memory of an idle collector.

use std::{thread::sleep, time::Duration};

use super::{
    BenchPlan,
    config::{CollectorFile, forward_parts, free_address},
    section::{BenchSection, format_mib},
};

const MAX_MEMORY_BYTES: u64 = 12 << 20;
/// Background work of the startup has ended by then.
const SETTLE_PERIOD: Duration = Duration::from_secs(5);

/// Starts a collector, waits, and reads its memory.
pub(crate) fn run(_: &BenchPlan) -> anyhow::Result<BenchSection> {
    let mut section = BenchSection::new(
        "Idle",
        format!(
            "The pipeline is `otlp → batch → otlp`. It is measured without a sender, {} s after the start.",
            SETTLE_PERIOD.as_secs()
        ),
    );
    let config = CollectorFile::new("idle")?;
    config.write(&forward_parts(&free_address()?, false))?;
    let collector = config.start()?;
    let before = collector.cpu_time()?;
    sleep(SETTLE_PERIOD);
    let memory = collector.memory()?;
    let cpu = collector.cpu_time()? - before;
    collector.stop()?;
    section.header(&["memory", "without the binary's pages", "peak", "CPU"]);
    let share = format!("{:.1} %", cpu.as_secs_f64() / SETTLE_PERIOD.as_secs_f64() * 100.0);
    section.row([format_mib(memory.now), format_mib(memory.own), format_mib(memory.peak), share]);
    section.check(
        format!("memory at most {}", format_mib(MAX_MEMORY_BYTES)),
        format_mib(memory.now),
        memory.now <= MAX_MEMORY_BYTES,
    );
    Ok(section)
}
