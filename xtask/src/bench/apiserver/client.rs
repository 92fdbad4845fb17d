//! The client of the API server: `benches/apiclient`, which reads one command per line.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::bench::program;

/// A connected client process. It ends when this is dropped.
#[derive(Debug)]
pub(in crate::bench) struct ApiClientProcess {
    child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// The client's report of a round.
#[derive(Debug)]
pub(in crate::bench) struct RoundReport(Value);

impl ApiClientProcess {
    /// Starts a client and waits until it is connected.
    pub(in crate::bench) fn start(kubeconfig: &Path, connections: usize) -> anyhow::Result<Self> {
        let mut command = Command::new(program("kubewake-apiclient"));
        command.arg("--kubeconfig").arg(kubeconfig).args(["--connections", &connections.to_string()]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("failed to start the client")?;
        let commands = child.stdin.take().context("the client has no input")?;
        let answers = BufReader::new(child.stdout.take().context("the client has no output")?);
        let mut client = Self { child, commands, answers };
        client.read_report()?;
        Ok(client)
    }

    /// Sends a command and waits for its report.
    pub(in crate::bench) fn run_command(&mut self, command: &str) -> anyhow::Result<RoundReport> {
        writeln!(self.commands, "{command}")?;
        self.read_report().with_context(|| format!("the client failed at {command:?}"))
    }

    fn read_report(&mut self) -> anyhow::Result<RoundReport> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        ensure!(!line.is_empty(), "the client ended");
        Ok(RoundReport(serde_json::from_str(&line)?))
    }
}

impl Drop for ApiClientProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl RoundReport {
    /// A number in the report; NaN if it is absent.
    pub(in crate::bench) fn number(&self, name: &str) -> f64 {
        self.0.get(name).and_then(Value::as_f64).unwrap_or(f64::NAN)
    }

    pub(in crate::bench) fn text(&self, name: &str) -> &str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    pub(in crate::bench) fn count(&self, name: &str) -> u64 {
        self.0.get(name).and_then(Value::as_u64).unwrap_or(0)
    }
}
