//! `kubewake collector` as a process.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Output},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    address::free_address,
    http::{self, HttpResponse},
    process::{ChildProcess, kubewake},
    wait::wait_until,
};

/// Builds the command of a collector. Its configuration may use `${env:DIR}` for its folder, `${env:HEALTH}`
/// and `${env:METRICS_PORT}`.
pub struct CollectorBuilder {
    folder: TempDir,
    config: PathBuf,
    health: SocketAddr,
    metrics: SocketAddr,
    args: Vec<String>,
    env: Vec<(String, PathBuf)>,
}

/// A running collector. It is killed when this is dropped.
pub struct CollectorProcess {
    process: ChildProcess,
    folder: TempDir,
    config: PathBuf,
    health: SocketAddr,
    metrics: SocketAddr,
    ready: String,
}

impl CollectorProcess {
    pub fn with_config(document: impl ToString) -> CollectorBuilder {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("collector.yaml");
        fs::write(&config, document.to_string()).unwrap();
        CollectorBuilder {
            folder,
            config,
            health: free_address(),
            metrics: free_address(),
            args: Vec::new(),
            env: Vec::new(),
        }
    }
}

impl CollectorBuilder {
    pub fn file(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        fs::write(self.folder.path().join(name), content).unwrap();
        self
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Reads the configuration from another path.
    pub fn config_at(mut self, path: PathBuf) -> Self {
        self.config = path;
        self
    }

    pub fn args(mut self, args: &[&str]) -> Self {
        self.args.extend(args.iter().map(ToString::to_string));
        self
    }

    pub fn env(mut self, name: &str, path: PathBuf) -> Self {
        self.env.push((name.to_owned(), path));
        self
    }

    /// Starts the collector and waits until it is ready.
    pub fn start(self) -> CollectorProcess {
        let mut process = ChildProcess::start(&mut self.command(&[]));
        let ready = process.wait_until_ready();
        let Self { folder, config, health, metrics, .. } = self;
        CollectorProcess { process, folder, config, health, metrics, ready }
    }

    /// Runs the collector until it exits, which is soon if it fails to start.
    pub fn run(self) -> Output {
        ChildProcess::start(&mut self.command(&[])).output()
    }

    pub fn validate(self) -> Output {
        ChildProcess::start(&mut self.command(&["validate"])).output()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = kubewake();
        command.arg("collector").args(words).arg("--config").arg(&self.config).args(&self.args);
        command.env("DIR", self.folder.path()).env("HEALTH", self.health.to_string());
        command.env("METRICS_PORT", self.metrics.port().to_string()).env_remove("RUST_LOG");
        command.envs(self.env.iter().map(|(name, path)| (name, path)));
        command
    }
}

impl CollectorProcess {
    /// Address of OTLP over gRPC.
    pub fn grpc(&self) -> SocketAddr {
        self.listener("otlp/grpc")
    }

    /// Address of OTLP over HTTP.
    pub fn http(&self) -> SocketAddr {
        self.listener("otlp/http")
    }

    /// Address of a listener, from the line that reports it as ready.
    pub fn listener(&self, name: &str) -> SocketAddr {
        let mut pairs = self.ready.split(' ').filter_map(|word| word.split_once('='));
        let at = pairs.find_map(|(key, value)| (key == name).then_some(value));
        at.unwrap_or_else(|| panic!("no {name} in {:?}", self.ready)).parse().unwrap()
    }

    /// Requests a path of its health endpoint.
    pub fn health(&self, path: &str) -> HttpResponse {
        http::get(self.health, path)
    }

    /// `/status`
    pub fn status(&self) -> Value {
        self.health("/status").json()
    }

    pub fn metrics_page(&self) -> String {
        http::get(self.metrics, "/metrics").text()
    }

    /// The sum of all samples of this metric whose labels include these pairs, written as `key="value"`.
    pub fn metric(&self, name: &str, labels: &[&str]) -> f64 {
        let page = self.metrics_page();
        let rows = page.lines().filter_map(|line| line.rsplit_once(' ')).filter(|(key, _)| {
            let rest = key.strip_prefix(name).filter(|rest| rest.is_empty() || rest.starts_with('{'));
            rest.is_some_and(|rest| labels.iter().all(|label| rest.contains(label)))
        });
        rows.map(|(_, value)| value.parse::<f64>().unwrap()).sum()
    }

    /// How many configurations were `applied` or `refused`.
    pub fn reloads(&self, result: &str) -> u64 {
        self.metric("kubewake_config_reloads", &[&format!("result=\"{result}\"")]) as u64
    }

    /// Replaces the configuration by a rename, as editors do.
    pub fn write(&self, document: impl ToString) {
        let fresh = self.config.with_extension("new");
        fs::write(&fresh, document.to_string()).unwrap();
        fs::rename(&fresh, &self.config).unwrap();
    }

    /// Replaces the configuration and waits until it is applied.
    pub fn reload(&self, document: impl ToString) {
        let number = || self.status()["revision"]["number"].as_u64();
        let before = number();
        self.write(document);
        wait_until("the new document is in force", || number() > before);
    }

    /// Replaces the configuration, waits until it is refused, and returns the reasons in `/status`.
    pub fn reload_refused(&self, document: impl ToString) -> String {
        let before = self.status()["refused"].clone();
        self.write(document);
        wait_until("the new document is refused", || self.status()["refused"] != before);
        self.status()["refused"]["reasons"].to_string()
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn logs(&self) -> String {
        self.process.stderr()
    }

    pub fn stdout(&self) -> String {
        self.process.stdout()
    }

    pub fn signal(&self, name: &str) {
        self.process.signal(name);
    }

    pub fn wait_for_exit(&mut self) -> ExitStatus {
        self.process.wait_for_exit()
    }

    /// Asks the collector to stop, and waits for its exit.
    pub fn stop(&mut self) -> ExitStatus {
        self.signal("TERM");
        self.wait_for_exit()
    }

    pub fn is_running(&mut self) -> bool {
        self.process.is_running()
    }

    /// Peak resident memory in MiB.
    pub fn peak_mib(&self) -> u64 {
        self.process.peak_mib()
    }
}
