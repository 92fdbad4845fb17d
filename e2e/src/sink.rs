//! `kubewake sink` as a process.

use std::{fs, net::SocketAddr, path::PathBuf};

use kubewake_otlp::{Signal, json};
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    Cluster, http,
    process::{Process, kubewake},
    wait::eventually,
};

/// A backend that counts and keeps what it gets. It is killed when this is dropped.
pub struct Sink {
    process: Process,
    address: SocketAddr,
    out: PathBuf,
    _folder: TempDir,
}

impl Sink {
    /// One that takes everything.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// One that takes nothing and answers nothing until [`Sink::recover`].
    pub fn hanging() -> Self {
        Self::start_with(&["--hang"])
    }

    /// One with arguments, where the cluster reaches it.
    pub fn start_with(args: &[&str]) -> Self {
        Self::start_at(Cluster::any_port(), args)
    }

    /// One at a place that was chosen before.
    pub fn start_at(address: SocketAddr, args: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("received");
        let mut command = kubewake();
        command.args(["sink", "--listen", &address.to_string(), "--out"]).arg(&out).args(args);
        let mut process = Process::start(&mut command);
        let ready = process.ready();
        let address = ready.rsplit(' ').next().unwrap().parse().expect("it says where it listens");
        Self { process, address, out, _folder: folder }
    }

    /// Where it listens, for gRPC and HTTP alike.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its counts.
    pub fn stats(&self) -> Value {
        http::get(self.address, "/stats").json()
    }

    /// One of its counts.
    pub fn count(&self, name: &str) -> u64 {
        self.stats()[name].as_u64().unwrap_or_else(|| panic!("no count {name}"))
    }

    /// How many items it acknowledged.
    pub fn items(&self) -> u64 {
        self.count("items")
    }

    /// Changes how it behaves, as in `hang=true&delay_ms=10`.
    pub fn mode(&self, change: &str) {
        let answer = http::post(self.address, &format!("/mode?{change}"), "text/plain", b"");
        assert_eq!(answer.status, 200, "{}", answer.text());
    }

    /// Ends a hang.
    pub fn recover(&self) {
        self.mode("hang=false");
    }

    /// Waits until it has acknowledged so many items.
    pub fn await_items(&self, count: u64) {
        eventually(&format!("the sink has {count} items"), || self.items() >= count);
    }

    /// How many of these items (lines of `seed first end`) it does not have.
    pub fn missing(&self, acknowledged: &str) -> u64 {
        let answer = http::post(self.address, "/missing", "text/plain", acknowledged.as_bytes()).json();
        answer["missing"].as_u64().unwrap_or_else(|| panic!("{answer}"))
    }

    /// Waits until it has all of these items.
    pub fn await_all(&self, acknowledged: &str) {
        eventually("the sink has everything that was acknowledged", || self.missing(acknowledged) == 0);
    }

    /// The requests that it acknowledged, in OTLP's JSON.
    pub fn received(&self, signal: Signal) -> Vec<Value> {
        let bytes = fs::read(&self.out).unwrap_or_default();
        let (mut rest, mut requests) = (&bytes[..], Vec::new());
        while let [mark, a, b, c, d, tail @ ..] = rest {
            let (request, more) = tail.split_at(u32::from_be_bytes([*a, *b, *c, *d]) as usize);
            if signal.name().as_bytes().starts_with(&[*mark]) {
                let mut text = Vec::new();
                json::encode(signal, request, &mut text).expect("the sink writes OTLP");
                requests.push(serde_json::from_slice(&text).expect("it is JSON"));
            }
            rest = more;
        }
        requests
    }

    /// The names of all spans that it acknowledged, sorted.
    pub fn span_names(&self) -> Vec<String> {
        let requests = self.received(Signal::Traces);
        let mut names: Vec<_> = requests.iter().flat_map(crate::otlp::span_names).collect();
        names.sort();
        names
    }

    /// What it printed and logged.
    pub fn logs(&self) -> String {
        self.process.stdout() + &self.process.stderr()
    }
}
