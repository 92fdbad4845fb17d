//! Memory without load.

use std::{thread::sleep, time::Duration};

use super::{
    Plan,
    check::{Section, mib},
    config::{Config, forward, free_address},
};

/// At most this much.
const MAX_MEMORY: u64 = 12 << 20;
/// What starts has settled by then.
const WAIT: Duration = Duration::from_secs(5);

/// Starts a collector, waits, and looks.
pub(crate) fn run(_: &Plan) -> anyhow::Result<Section> {
    let mut section =
        Section::new("Idle", format!("`otlp → batch → otlp` without a sender, {} s after the start.", WAIT.as_secs()));
    let config = Config::new("idle")?;
    config.write(&forward(&free_address()?, false))?;
    let collector = config.start()?;
    let before = collector.cpu()?;
    sleep(WAIT);
    let (memory, cpu) = (collector.memory()?, collector.cpu()? - before);
    collector.stop()?;
    section.header(&["memory", "without the binary's pages", "peak", "CPU"]);
    let share = format!("{:.1} %", cpu.as_secs_f64() / WAIT.as_secs_f64() * 100.0);
    section.row([mib(memory.now), mib(memory.own), mib(memory.peak), share]);
    section.check(format!("memory at most {}", mib(MAX_MEMORY)), mib(memory.now), memory.now <= MAX_MEMORY);
    Ok(section)
}
