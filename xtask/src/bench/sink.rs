//! The backend of every scenario: `kubewake sink`.

use std::{
    collections::HashMap,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::Context;
use serde_json::Value;

use super::{http, process::Process, program};

/// A running sink.
#[derive(Debug)]
pub(crate) struct Sink {
    // Kept so that it lives as long as this.
    process: Process,
    pub address: String,
}

impl Sink {
    /// Starts one on any free port.
    pub(crate) fn start(name: &str) -> anyhow::Result<Self> {
        Self::start_with(name, &[])
    }

    /// One that counts the spans of each trace.
    pub(crate) fn counting_traces(name: &str) -> anyhow::Result<Self> {
        Self::start_with(name, &["--traces"])
    }

    fn start_with(name: &str, args: &[&str]) -> anyhow::Result<Self> {
        let mut command = Command::new(program("kubewake"));
        let process = Process::start(name, command.args(["sink", "--listen", "127.0.0.1:0"]).args(args))?;
        Ok(Self { address: process.address()?, process })
    }

    /// Ends it without a word.
    pub(crate) fn kill(&self) -> anyhow::Result<()> {
        self.process.signal("KILL")
    }

    /// The spans of each trace that it has, if it counts them.
    pub(crate) fn traces(&self) -> anyhow::Result<HashMap<String, u64>> {
        let traces = http::get(&self.address, "/traces")?;
        let traces = traces.as_object().context("the sink counts no traces")?;
        Ok(traces.iter().map(|(id, count)| (id.clone(), count.as_u64().unwrap_or(0))).collect())
    }

    /// Changes how it behaves, as in `hang=true`.
    pub(crate) fn mode(&self, settings: &str) -> anyhow::Result<()> {
        http::post(&self.address, &format!("/mode?{settings}"), &[]).map(drop)
    }

    /// Forgets what has arrived so far.
    pub(crate) fn reset(&self) -> anyhow::Result<()> {
        http::post(&self.address, "/reset", &[]).map(drop)
    }

    /// A number from its statistics, by a JSON pointer.
    pub(crate) fn count(&self, pointer: &str) -> anyhow::Result<u64> {
        let stats = http::get(&self.address, "/stats")?;
        stats.pointer(pointer).and_then(Value::as_u64).with_context(|| format!("the sink counts no {pointer}"))
    }

    /// The latency that this share of the items had at most, from the sender to here, in milliseconds.
    pub(crate) fn latency(&self, quantile: &str) -> anyhow::Result<f64> {
        let stats = http::get(&self.address, "/stats")?;
        let value = stats.pointer(&format!("/latency_ms/{quantile}")).and_then(Value::as_f64);
        value.with_context(|| format!("the sink knows no {quantile}"))
    }

    /// How many of the acknowledged items are missing, after waiting up to this long for all of them.
    pub(crate) fn missing(&self, acknowledged: &Path, patience: Duration) -> anyhow::Result<u64> {
        let ranges = std::fs::read(acknowledged).with_context(|| format!("cannot read {}", acknowledged.display()))?;
        let deadline = Instant::now() + patience;
        loop {
            let answer = http::post(&self.address, "/missing", &ranges)?;
            let missing = answer.pointer("/missing").and_then(Value::as_u64).context("the sink does not answer")?;
            if missing == 0 || Instant::now() > deadline {
                return Ok(missing);
            }
            std::thread::sleep(Duration::from_millis(250));
        }
    }
}
