//! The backend of every scenario: `kubewake sink`.

use std::{
    collections::HashMap,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::Context;
use serde_json::Value;

use super::{http, process::BenchProcess, program};

#[derive(Debug)]
pub(crate) struct BenchSink {
    // Owned here, so that it lives as long as the sink.
    process: BenchProcess,
    pub address: String,
}

impl BenchSink {
    /// Starts a sink on a free port.
    pub(crate) fn start(name: &str) -> anyhow::Result<Self> {
        Self::start_with(name, &[])
    }

    /// Starts a sink that counts the spans of each trace.
    pub(crate) fn start_counting_traces(name: &str) -> anyhow::Result<Self> {
        Self::start_with(name, &["--traces"])
    }

    fn start_with(name: &str, args: &[&str]) -> anyhow::Result<Self> {
        let mut command = Command::new(program("kubewake"));
        let process = BenchProcess::start(name, command.args(["sink", "--listen", "127.0.0.1:0"]).args(args))?;
        Ok(Self { address: process.address()?, process })
    }

    pub(crate) fn kill(&self) -> anyhow::Result<()> {
        self.process.signal("KILL")
    }

    /// The number of spans of each trace, if they are counted.
    pub(crate) fn traces(&self) -> anyhow::Result<HashMap<String, u64>> {
        let traces = http::get(&self.address, "/traces")?;
        let traces = traces.as_object().context("the sink counts no traces")?;
        Ok(traces.iter().map(|(id, count)| (id.clone(), count.as_u64().unwrap_or(0))).collect())
    }

    /// Changes its mode, as in `hang=true`.
    pub(crate) fn set_mode(&self, settings: &str) -> anyhow::Result<()> {
        http::post(&self.address, &format!("/mode?{settings}"), &[]).map(drop)
    }

    pub(crate) fn reset(&self) -> anyhow::Result<()> {
        http::post(&self.address, "/reset", &[]).map(drop)
    }

    /// A number in its statistics, by JSON pointer.
    pub(crate) fn count(&self, pointer: &str) -> anyhow::Result<u64> {
        let stats = http::get(&self.address, "/stats")?;
        stats.pointer(pointer).and_then(Value::as_u64).with_context(|| format!("the sink counts no {pointer}"))
    }

    /// A quantile of the latency from the sender to the sink, in milliseconds.
    pub(crate) fn latency(&self, quantile: &str) -> anyhow::Result<f64> {
        let stats = http::get(&self.address, "/stats")?;
        let value = stats.pointer(&format!("/latency_ms/{quantile}")).and_then(Value::as_f64);
        value.with_context(|| format!("the load reports no {quantile}"))
    }

    /// How many of the acknowledged items are missing, after waiting up to `patience` for all of them.
    pub(crate) fn missing(&self, acknowledged: &Path, patience: Duration) -> anyhow::Result<u64> {
        let ranges =
            std::fs::read(acknowledged).with_context(|| format!("failed to read {}", acknowledged.display()))?;
        let deadline = Instant::now() + patience;
        loop {
            let answer = http::post(&self.address, "/missing", &ranges)?;
            let missing =
                answer.pointer("/missing").and_then(Value::as_u64).context("failed to get a response from the sink")?;
            if missing == 0 || Instant::now() > deadline {
                return Ok(missing);
            }
            std::thread::sleep(Duration::from_millis(250));
        }
    }
}
