//! The collector under test and its configurations.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context;
use serde_json::Value;

use super::{BenchProgram, directory, http, process::BenchProcess};

/// The configuration file of a collector, and its listen addresses.
#[derive(Debug)]
pub(crate) struct CollectorFile {
    name: String,
    pub grpc: String,
    pub http: String,
    pub health: String,
    pub path: PathBuf,
}

/// The parts of a configuration that scenarios choose, each as indented YAML.
#[derive(Clone, Debug, Default)]
pub(crate) struct DocumentParts {
    pub processors: String,
    pub exporters: String,
    pub pipelines: String,
    /// Whether the collector serves `/status`.
    pub health: bool,
}

impl CollectorFile {
    /// A configuration with free ports; its file is not written yet.
    pub(crate) fn new(name: &str) -> anyhow::Result<Self> {
        let path = directory().join(format!("{name}.yaml"));
        let grpc = free_address()?;
        let http = free_address()?;
        let health = free_address()?;
        Ok(Self { name: name.to_owned(), grpc, http, health, path })
    }

    /// Writes the file as Kubernetes does: a rename replaces the old one atomically.
    pub(crate) fn write(&self, parts: &DocumentParts) -> anyhow::Result<()> {
        let (extension, extensions) = if parts.health {
            (format!("extensions:\n  health_check:\n    endpoint: {}\n", self.health), "[health_check]")
        } else {
            (String::new(), "[]")
        };
        self.write_text(&format!(
            "{extension}receivers:\n  otlp:\n    protocols:\n      grpc:\n        endpoint: {}\n      http:\n        \
             endpoint: {}\nprocessors:\n{}exporters:\n{}service:\n  extensions: {extensions}\n  telemetry:\n    \
             metrics:\n      level: none\n  pipelines:\n{}",
            self.grpc, self.http, parts.processors, parts.exporters, parts.pipelines
        ))
    }

    /// The collector's `/status`, if it is served.
    pub(crate) fn status(&self) -> anyhow::Result<Value> {
        http::get(&self.health, "/status")
    }

    /// Writes any text, including invalid configurations.
    pub(crate) fn write_text(&self, text: &str) -> anyhow::Result<()> {
        let new = self.path.with_extension("new");
        fs::write(&new, text).with_context(|| format!("failed to write {}", new.display()))?;
        fs::rename(&new, &self.path).with_context(|| format!("failed to write {}", self.path.display()))
    }

    /// Starts a collector with this configuration.
    pub(crate) fn start(&self) -> anyhow::Result<BenchProcess> {
        self.start_program(&BenchProgram::Collector.program())
    }

    /// Starts the collector of another build with this configuration.
    pub(crate) fn start_program(&self, program: &Path) -> anyhow::Result<BenchProcess> {
        let mut command = Command::new(program);
        BenchProcess::start(&self.name, command.arg("collector").arg("--config").arg(&self.path))
    }
}

/// `otlp → batch → otlp` over gRPC.
pub(crate) fn forward_parts(backend: &str, gzip: bool) -> DocumentParts {
    DocumentParts {
        processors: "  batch:\n".to_owned(),
        exporters: exporter_yaml(
            "otlp",
            backend,
            if gzip { "    compression: gzip\n" } else { "    compression: none\n" },
        ),
        pipelines: pipeline_yaml("traces", "batch", "otlp"),
        health: false,
    }
}

/// An OTLP exporter to a backend on this machine, with additional settings.
pub(crate) fn exporter_yaml(id: &str, backend: &str, more: &str) -> String {
    format!("  {id}:\n    endpoint: {backend}\n    tls:\n      insecure: true\n{more}")
}

/// A pipeline of the only receiver.
pub(crate) fn pipeline_yaml(id: &str, processors: &str, exporter: &str) -> String {
    format!("    {id}:\n      receivers: [otlp]\n      processors: [{processors}]\n      exporters: [{exporter}]\n")
}

/// A free address. If another program takes it first, ours fails to start with a message.
pub(crate) fn free_address() -> anyhow::Result<String> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string())
}
