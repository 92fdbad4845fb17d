//! The client of the API server: `benches/apiclient`, which does what it is told, a line at a time.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::bench::program;

/// A client with its connections open. It ends when this is dropped.
#[derive(Debug)]
pub(in crate::bench) struct Client {
    child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// What it says of a round.
#[derive(Debug)]
pub(in crate::bench) struct Report(Value);

impl Client {
    /// Starts one and waits until it is connected.
    pub(in crate::bench) fn start(kubeconfig: &Path, connections: usize) -> anyhow::Result<Self> {
        let mut command = Command::new(program("kubewake-apiclient"));
        command.arg("--kubeconfig").arg(kubeconfig).args(["--connections", &connections.to_string()]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("cannot start the client")?;
        let commands = child.stdin.take().context("the client has no input")?;
        let answers = BufReader::new(child.stdout.take().context("the client has no output")?);
        let mut client = Self { child, commands, answers };
        client.answer()?;
        Ok(client)
    }

    /// Sends a command and waits until it is done.
    pub(in crate::bench) fn tell(&mut self, command: &str) -> anyhow::Result<Report> {
        writeln!(self.commands, "{command}")?;
        self.answer().with_context(|| format!("the client failed at {command:?}"))
    }

    fn answer(&mut self) -> anyhow::Result<Report> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        ensure!(!line.is_empty(), "the client ended");
        Ok(Report(serde_json::from_str(&line)?))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Report {
    /// A number of it; one that is not there is none.
    pub(in crate::bench) fn number(&self, name: &str) -> f64 {
        self.0.get(name).and_then(Value::as_f64).unwrap_or(f64::NAN)
    }

    /// A text of it.
    pub(in crate::bench) fn text(&self, name: &str) -> &str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// A count of it.
    pub(in crate::bench) fn count(&self, name: &str) -> u64 {
        self.0.get(name).and_then(Value::as_u64).unwrap_or(0)
    }
}
