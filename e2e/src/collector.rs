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
    http::{self, Answer},
    process::{Process, kubewake},
    wait::eventually,
};

/// A collector about to start. Its document may say `${env:DIR}` for its folder, `${env:HEALTH}` and `${env:METRICS_PORT}`.
pub struct Builder {
    folder: TempDir,
    config: PathBuf,
    health: SocketAddr,
    metrics: SocketAddr,
    args: Vec<String>,
    env: Vec<(String, PathBuf)>,
}

/// A collector that serves. It is killed when this is dropped.
pub struct Collector {
    process: Process,
    folder: TempDir,
    config: PathBuf,
    health: SocketAddr,
    metrics: SocketAddr,
    ready: String,
}

impl Collector {
    /// One with this document.
    pub fn with(document: impl ToString) -> Builder {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("collector.yaml");
        fs::write(&config, document.to_string()).unwrap();
        Builder { folder, config, health: free_address(), metrics: free_address(), args: Vec::new(), env: Vec::new() }
    }
}

impl Builder {
    /// Writes a file into its folder.
    pub fn file(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        fs::write(self.folder.path().join(name), content).unwrap();
        self
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Reads the document from elsewhere.
    pub fn config_at(mut self, path: PathBuf) -> Self {
        self.config = path;
        self
    }

    /// Adds arguments.
    pub fn args(mut self, args: &[&str]) -> Self {
        self.args.extend(args.iter().map(ToString::to_string));
        self
    }

    /// Sets a variable to a path.
    pub fn env(mut self, name: &str, path: PathBuf) -> Self {
        self.env.push((name.to_owned(), path));
        self
    }

    /// Starts it and waits until it serves.
    pub fn start(self) -> Collector {
        let mut process = Process::start(&mut self.command(&[]));
        let ready = process.ready();
        let Self { folder, config, health, metrics, .. } = self;
        Collector { process, folder, config, health, metrics, ready }
    }

    /// Runs it to its end, which is soon if it does not start.
    pub fn run(self) -> Output {
        Process::start(&mut self.command(&[])).output()
    }

    /// Only checks its document.
    pub fn validate(self) -> Output {
        Process::start(&mut self.command(&["validate"])).output()
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

impl Collector {
    /// Where it takes OTLP over gRPC.
    pub fn grpc(&self) -> SocketAddr {
        self.listener("otlp/grpc")
    }

    /// Where it takes OTLP over HTTP.
    pub fn http(&self) -> SocketAddr {
        self.listener("otlp/http")
    }

    /// Where this listener is, by the line that says that it serves.
    pub fn listener(&self, name: &str) -> SocketAddr {
        let mut pairs = self.ready.split(' ').filter_map(|word| word.split_once('='));
        let at = pairs.find_map(|(key, value)| (key == name).then_some(value));
        at.unwrap_or_else(|| panic!("no {name} in {:?}", self.ready)).parse().unwrap()
    }

    /// What its health endpoint answers.
    pub fn health(&self, path: &str) -> Answer {
        http::get(self.health, path)
    }

    /// `/status`
    pub fn status(&self) -> Value {
        self.health("/status").json()
    }

    /// The page for Prometheus.
    pub fn metrics_page(&self) -> String {
        http::get(self.metrics, "/metrics").text()
    }

    /// The sum of all rows of this name whose labels have all of these pairs, written as `key="value"`.
    pub fn metric(&self, name: &str, labels: &[&str]) -> f64 {
        let page = self.metrics_page();
        let rows = page.lines().filter_map(|line| line.rsplit_once(' ')).filter(|(key, _)| {
            let rest = key.strip_prefix(name).filter(|rest| rest.is_empty() || rest.starts_with('{'));
            rest.is_some_and(|rest| labels.iter().all(|label| rest.contains(label)))
        });
        rows.map(|(_, value)| value.parse::<f64>().unwrap()).sum()
    }

    /// How many documents were `applied` or `refused`.
    pub fn reloads(&self, result: &str) -> u64 {
        self.metric("kubewake_config_reloads", &[&format!("result=\"{result}\"")]) as u64
    }

    /// Replaces the document by a rename, as editors do.
    pub fn write(&self, document: impl ToString) {
        let fresh = self.config.with_extension("new");
        fs::write(&fresh, document.to_string()).unwrap();
        fs::rename(&fresh, &self.config).unwrap();
    }

    /// Replaces the document and waits until it is in force.
    pub fn reload(&self, document: impl ToString) {
        let number = || self.status()["revision"]["number"].as_u64();
        let before = number();
        self.write(document);
        eventually("the new document is in force", || number() > before);
    }

    /// Replaces the document and waits until it is refused; gives the reasons in `/status`.
    pub fn reload_refused(&self, document: impl ToString) -> String {
        let before = self.status()["refused"].clone();
        self.write(document);
        eventually("the new document is refused", || self.status()["refused"] != before);
        self.status()["refused"]["reasons"].to_string()
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What it logged.
    pub fn logs(&self) -> String {
        self.process.stderr()
    }

    /// What it printed.
    pub fn printed(&self) -> String {
        self.process.stdout()
    }

    /// Sends it a signal by name.
    pub fn signal(&self, name: &str) {
        self.process.signal(name);
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> ExitStatus {
        self.process.wait()
    }

    /// Asks it to stop and waits for its end.
    pub fn stop(&mut self) -> ExitStatus {
        self.signal("TERM");
        self.wait()
    }

    /// Whether it runs still.
    pub fn runs(&mut self) -> bool {
        self.process.runs()
    }

    /// The most memory that it ever had, in MiB.
    pub fn peak_mib(&self) -> u64 {
        self.process.peak_mib()
    }
}
