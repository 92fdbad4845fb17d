//! Reads the same files with the agent and with the bare reader at the same time.

use std::{
    process::Command,
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::ensure;

use super::{
    LogCase,
    agent::LogAgent,
    containers::{ContainerLogs, remove},
};
use crate::bench::{
    BenchProgram, cluster_stub::ClusterStub, directory, process::BenchProcess, section::median, sink::BenchSink,
};

/// An agent that takes longer is stuck.
const READ_TIMEOUT: Duration = Duration::from_secs(180);
/// Records that come twice come soon.
const SETTLE_PERIOD: Duration = Duration::from_millis(500);

/// One program that read all files.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogReading {
    /// Nanoseconds of CPU time for each line.
    pub(super) cpu: f64,
    pub(super) memory: u64,
    pub(super) peak: u64,
    pub(super) missing: u64,
    pub(super) surplus: u64,
    /// Bytes of the requests for each line.
    bytes: u64,
}

pub(super) struct LogReadings {
    pub(super) reader: Vec<LogReading>,
    pub(super) agent: Vec<LogReading>,
}

impl LogReadings {
    pub(super) fn run(logs: &ContainerLogs, case: &LogCase, rounds: usize, stub: &ClusterStub) -> anyhow::Result<Self> {
        // The agent alone first: it warms the page cache, and shows how many bytes the reader has to send.
        let agent = LogAgent::start("logs-agent", stub, case.parses_json)?;
        logs.link_to(&agent.pods)?;
        let bytes = finish(&agent.process, &agent.sink, Duration::ZERO, logs)?.bytes;
        agent.process.stop()?;

        let mut readings = Self { reader: Vec::new(), agent: Vec::new() };
        for _ in 0..rounds {
            let agent = LogAgent::start("logs-agent", stub, case.parses_json)?;
            let folder = directory().join("logs-reader");
            remove(&folder)?;
            let sink = BenchSink::start("logs-reader-sink")?;
            let mut command = Command::new(BenchProgram::Relay.program());
            command.arg("--logs").arg(&folder).args(["--record-bytes", &bytes.to_string()]);
            let reader = BenchProcess::start("logs-reader", command.args(["--upstream", &sink.address]))?;
            let before = [reader.cpu_time()?, agent.process.cpu_time()?];
            logs.link_to(&folder)?;
            logs.link_to(&agent.pods)?;
            readings.reader.push(finish(&reader, &sink, before[0], logs)?);
            readings.agent.push(finish(&agent.process, &agent.sink, before[1], logs)?);
            agent.process.stop()?;
            reader.stop()?;
        }
        Ok(readings)
    }

    /// The ratio of the agent's CPU time to the reader's: the median of all rounds.
    pub(super) fn ratio(&self) -> f64 {
        median(self.reader.iter().zip(&self.agent).map(|(reader, agent)| agent.cpu / reader.cpu).collect())
    }
}

/// Waits until all lines have arrived, and measures what they cost since `before`.
fn finish(
    process: &BenchProcess,
    sink: &BenchSink,
    before: Duration,
    logs: &ContainerLogs,
) -> anyhow::Result<LogReading> {
    let lines = logs.lines();
    // What is missing is reported and not an error.
    let arrived = wait_for_records(sink, lines);
    let cpu = process.cpu_time()?.saturating_sub(before);
    let memory = process.memory()?;
    sleep(SETTLE_PERIOD);
    let found = records(sink)?;
    ensure!(found > 0, "no line has arrived: {arrived:?}");
    Ok(LogReading {
        cpu: cpu.as_nanos() as f64 / lines as f64,
        memory: memory.now,
        peak: memory.peak,
        missing: lines.saturating_sub(found),
        surplus: found.saturating_sub(lines),
        bytes: sink.count("/signals/logs/bytes")? / found,
    })
}

/// The log records that have arrived.
pub(super) fn records(sink: &BenchSink) -> anyhow::Result<u64> {
    sink.count("/signals/logs/items")
}

/// Waits until as many records have arrived.
pub(super) fn wait_for_records(sink: &BenchSink, wanted: u64) -> anyhow::Result<()> {
    let deadline = Instant::now() + READ_TIMEOUT;
    loop {
        let found = records(sink)?;
        if found >= wanted {
            return Ok(());
        }
        ensure!(Instant::now() < deadline, "{found} of {wanted} records arrived in {} s", READ_TIMEOUT.as_secs());
        sleep(Duration::from_millis(20));
    }
}
