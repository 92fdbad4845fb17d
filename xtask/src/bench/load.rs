//! The sender of every scenario: `kubewake load`.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context, ensure};
use serde_json::Value;

use super::{directory, program};
use crate::steps::output;

/// Spans in each request.
pub(crate) const SPANS: u64 = 100;

/// A load to be sent: [`SPANS`] a request, 10 attributes each.
#[derive(Debug)]
pub(crate) struct Load {
    command: Command,
    acknowledged: PathBuf,
}

/// A load under way.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    acknowledged: PathBuf,
}

/// What became of a load.
#[derive(Debug)]
pub(crate) struct Outcome {
    report: Value,
    acknowledged: PathBuf,
}

impl Load {
    /// A load on a gRPC receiver.
    pub(crate) fn new(name: &str, address: &str) -> Self {
        let acknowledged = directory().join(format!("{name}.acknowledged"));
        let mut command = Command::new(program("kubewake"));
        command.args(["load", "--json", "--spans", &SPANS.to_string(), "--attributes", "10"]);
        command.args(["--target", &format!("http://{address}")]).arg("--acked-file").arg(&acknowledged);
        Self { command, acknowledged }
    }

    /// With more arguments.
    pub(crate) fn args(mut self, args: &[&str]) -> Self {
        self.command.args(args);
        self
    }

    /// At a fixed rate.
    pub(crate) fn rate(self, spans: u64) -> Self {
        self.args(&["--rate", &spans.to_string()])
    }

    /// For so long.
    pub(crate) fn lasting(self, time: Duration) -> Self {
        self.args(&["--seconds", &time.as_secs_f64().to_string()])
    }

    /// With compressed requests, or not.
    pub(crate) fn gzip(self, gzip: bool) -> Self {
        if gzip { self.args(&["--compression", "gzip"]) } else { self }
    }

    /// Sends it all.
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        self.start()?.finish()
    }

    /// Begins to send.
    pub(crate) fn start(mut self) -> anyhow::Result<Running> {
        let child =
            self.command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("cannot start the load")?;
        Ok(Running { child, acknowledged: self.acknowledged })
    }
}

impl Running {
    /// Ends the load now.
    pub(crate) fn stop(self) -> anyhow::Result<Outcome> {
        output("kill", &["-TERM", &self.child.id().to_string()])?;
        self.finish()
    }

    /// Waits until it has ended.
    pub(crate) fn finish(self) -> anyhow::Result<Outcome> {
        let output = self.child.wait_with_output()?;
        ensure!(output.status.success(), "the load ended with {}", output.status);
        let report = serde_json::from_slice(&output.stdout).context("the load gave no report")?;
        Ok(Outcome { report, acknowledged: self.acknowledged })
    }
}

impl Outcome {
    /// A count from the report, by a JSON pointer.
    pub(crate) fn count(&self, pointer: &str) -> u64 {
        self.report.pointer(pointer).and_then(Value::as_u64).unwrap_or(0)
    }

    /// A measure from the report, by a JSON pointer.
    pub(crate) fn measure(&self, pointer: &str) -> f64 {
        self.report.pointer(pointer).and_then(Value::as_f64).unwrap_or(f64::NAN)
    }

    /// Spans that the receiver took.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.count("/items/acknowledged")
    }

    /// The list of them.
    pub(crate) fn acknowledged_file(&self) -> &Path {
        &self.acknowledged
    }

    /// How many of which answer, in words.
    pub(crate) fn codes(&self) -> String {
        let codes = self.report.get("codes").and_then(Value::as_object).into_iter().flatten();
        let codes: Vec<String> = codes.map(|(code, count)| format!("{code} {count}")).collect();
        codes.join(", ")
    }
}
