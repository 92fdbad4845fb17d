//! Startup time of a server, and its memory without clients.

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

use super::{ApiServerWorkload, BenchApiServer};
use crate::bench::section::{BenchSection, format_mib, median};

/// From the start of the process to its line `ready`, in milliseconds.
const MAX_START_MILLIS: f64 = 100.0;
/// Without user objects and connections.
const MAX_IDLE_BYTES: u64 = 25 << 20;
/// Background work of the startup has ended by then.
const SETTLE_PERIOD: Duration = Duration::from_secs(5);

pub(super) fn measure(size: ApiServerWorkload, section: &mut BenchSection) -> anyhow::Result<()> {
    let mut times = Vec::new();
    let mut cpu = Vec::new();
    for _ in 0..size.starts {
        let start = Instant::now();
        let server = BenchApiServer::start("apiserver-start", &[])?;
        times.push(start.elapsed().as_secs_f64() * 1000.0);
        cpu.push(server.process.cpu_time()?.as_secs_f64() * 1000.0);
        server.process.stop()?;
    }
    let time = median(times);
    let shown = format!("{time:.0} ms, with {:.0} ms of CPU time", median(cpu));
    section.check(format!("from start to ready at most {MAX_START_MILLIS:.0} ms"), shown, time <= MAX_START_MILLIS);
    let server = BenchApiServer::start("apiserver-idle", &[])?;
    sleep(SETTLE_PERIOD);
    let memory = server.process.memory()?;
    let text = format!("{}, of which {} are not pages of the binary", format_mib(memory.now), format_mib(memory.own));
    section.check(format!("idle memory at most {}", format_mib(MAX_IDLE_BYTES)), text, memory.now <= MAX_IDLE_BYTES);
    server.process.stop()
}
