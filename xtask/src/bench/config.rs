//! The collector under test and its configurations.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context;
use serde_json::Value;

use super::{Part, directory, http, process::Process};

/// A collector's configuration file, and where it listens.
#[derive(Debug)]
pub(crate) struct Config {
    name: String,
    pub grpc: String,
    pub http: String,
    pub health: String,
    pub path: PathBuf,
}

/// The parts of a document that scenarios choose, each as YAML at the depth where it belongs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts {
    pub processors: String,
    pub exporters: String,
    pub pipelines: String,
    /// Whether the collector's `/status` is served.
    pub health: bool,
}

impl Config {
    /// A configuration with free ports and no file yet.
    pub(crate) fn new(name: &str) -> anyhow::Result<Self> {
        let path = directory().join(format!("{name}.yaml"));
        let (grpc, http, health) = (free_address()?, free_address()?, free_address()?);
        Ok(Self { name: name.to_owned(), grpc, http, health, path })
    }

    /// Writes the file as Kubernetes does: a new one takes the place of the old one at once.
    pub(crate) fn write(&self, parts: &Parts) -> anyhow::Result<()> {
        let (extension, extensions) = match parts.health {
            true => (format!("extensions:\n  health_check:\n    endpoint: {}\n", self.health), "[health_check]"),
            false => (String::new(), "[]"),
        };
        self.write_text(&format!(
            "{extension}receivers:\n  otlp:\n    protocols:\n      grpc:\n        endpoint: {}\n      http:\n        \
             endpoint: {}\nprocessors:\n{}exporters:\n{}service:\n  extensions: {extensions}\n  telemetry:\n    \
             metrics:\n      level: none\n  pipelines:\n{}",
            self.grpc, self.http, parts.processors, parts.exporters, parts.pipelines
        ))
    }

    /// The collector's own account of itself, if its health is served.
    pub(crate) fn status(&self) -> anyhow::Result<Value> {
        http::get(&self.health, "/status")
    }

    /// Writes any text, also what is no configuration.
    pub(crate) fn write_text(&self, text: &str) -> anyhow::Result<()> {
        let new = self.path.with_extension("new");
        fs::write(&new, text).with_context(|| format!("cannot write {}", new.display()))?;
        fs::rename(&new, &self.path).with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Starts a collector with it.
    pub(crate) fn start(&self) -> anyhow::Result<Process> {
        self.start_program(&Part::Collector.program())
    }

    /// Starts the collector of another build with it.
    pub(crate) fn start_program(&self, program: &Path) -> anyhow::Result<Process> {
        let mut command = Command::new(program);
        Process::start(&self.name, command.arg("collector").arg("--config").arg(&self.path))
    }
}

/// `otlp → batch → otlp` over gRPC.
pub(crate) fn forward(backend: &str, gzip: bool) -> Parts {
    Parts {
        processors: "  batch:\n".to_owned(),
        exporters: exporter("otlp", backend, if gzip { "    compression: gzip\n" } else { "    compression: none\n" }),
        pipelines: pipeline("traces", "batch", "otlp"),
        health: false,
    }
}

/// An OTLP exporter to a backend on this machine, with more settings.
pub(crate) fn exporter(id: &str, backend: &str, more: &str) -> String {
    format!("  {id}:\n    endpoint: {backend}\n    tls:\n      insecure: true\n{more}")
}

/// A pipeline from the one receiver.
pub(crate) fn pipeline(id: &str, processors: &str, exporter: &str) -> String {
    format!("    {id}:\n      receivers: [otlp]\n      processors: [{processors}]\n      exporters: [{exporter}]\n")
}

/// An address that nobody uses. Another program may take it before ours does; then ours says so.
pub(crate) fn free_address() -> anyhow::Result<String> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string())
}
