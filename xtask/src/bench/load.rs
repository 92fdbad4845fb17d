//! The load generator of every scenario: `kubewake load`.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context, ensure};
use serde_json::Value;

use super::{directory, program};
use crate::steps::command_output;

pub(crate) const SPANS_PER_REQUEST: u64 = 100;

/// A load command with [`SPANS_PER_REQUEST`] spans per request and 10 attributes per span.
#[derive(Debug)]
pub(crate) struct LoadCommand {
    command: Command,
    acknowledged: PathBuf,
}

#[derive(Debug)]
pub(crate) struct RunningLoad {
    child: Child,
    acknowledged: PathBuf,
}

/// The result of a load.
#[derive(Debug)]
pub(crate) struct LoadOutcome {
    report: Value,
    acknowledged: PathBuf,
}

impl LoadCommand {
    /// A load on a gRPC receiver.
    pub(crate) fn new(name: &str, address: &str) -> Self {
        let acknowledged = directory().join(format!("{name}.acknowledged"));
        let mut command = Command::new(program("kubewake"));
        command.args(["load", "--json", "--spans", &SPANS_PER_REQUEST.to_string(), "--attributes", "10"]);
        command.args(["--target", &format!("http://{address}")]).arg("--acked-file").arg(&acknowledged);
        Self { command, acknowledged }
    }

    pub(crate) fn args(mut self, args: &[&str]) -> Self {
        self.command.args(args);
        self
    }

    pub(crate) fn rate(self, spans: u64) -> Self {
        self.args(&["--rate", &spans.to_string()])
    }

    pub(crate) fn duration(self, time: Duration) -> Self {
        self.args(&["--seconds", &time.as_secs_f64().to_string()])
    }

    pub(crate) fn gzip(self, gzip: bool) -> Self {
        if gzip { self.args(&["--compression", "gzip"]) } else { self }
    }

    pub(crate) fn run(self) -> anyhow::Result<LoadOutcome> {
        self.start()?.finish()
    }

    pub(crate) fn start(mut self) -> anyhow::Result<RunningLoad> {
        let child =
            self.command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("failed to start the load")?;
        Ok(RunningLoad { child, acknowledged: self.acknowledged })
    }
}

impl RunningLoad {
    pub(crate) fn stop(self) -> anyhow::Result<LoadOutcome> {
        command_output("kill", &["-TERM", &self.child.id().to_string()])?;
        self.finish()
    }

    /// Waits for the end of the run.
    pub(crate) fn finish(self) -> anyhow::Result<LoadOutcome> {
        let output = self.child.wait_with_output()?;
        ensure!(output.status.success(), "the load failed with {}", output.status);
        let report = serde_json::from_slice(&output.stdout).context("the load printed no report")?;
        Ok(LoadOutcome { report, acknowledged: self.acknowledged })
    }
}

impl LoadOutcome {
    /// A count in the report, by JSON pointer.
    pub(crate) fn count(&self, pointer: &str) -> u64 {
        self.report.pointer(pointer).and_then(Value::as_u64).unwrap_or(0)
    }

    /// A number in the report, by JSON pointer.
    pub(crate) fn measure(&self, pointer: &str) -> f64 {
        self.report.pointer(pointer).and_then(Value::as_f64).unwrap_or(f64::NAN)
    }

    /// Spans that the receiver acknowledged.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.count("/items/acknowledged")
    }

    pub(crate) fn acknowledged_file(&self) -> &Path {
        &self.acknowledged
    }

    /// The number of responses for each code, as text.
    pub(crate) fn codes(&self) -> String {
        let codes = self.report.get("codes").and_then(Value::as_object).into_iter().flatten();
        let codes: Vec<String> = codes.map(|(code, count)| format!("{code} {count}")).collect();
        codes.join(", ")
    }
}
