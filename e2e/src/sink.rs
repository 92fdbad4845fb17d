//! `kubewake sink` as a process.

use std::{fs, net::SocketAddr, path::PathBuf};

use kubewake_otlp::{Signal, json};
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    ClusterUnderTest, http,
    process::{ChildProcess, kubewake},
    wait::wait_until,
};

/// A backend that counts and records items. It is killed when this is dropped.
pub struct SinkProcess {
    process: ChildProcess,
    address: SocketAddr,
    out: PathBuf,
    _folder: TempDir,
}

impl SinkProcess {
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// A backend that does not respond until [`SinkProcess::recover`].
    pub fn hanging() -> Self {
        Self::start_with(&["--hang"])
    }

    /// A backend with arguments, at an address where the cluster reaches it.
    pub fn start_with(args: &[&str]) -> Self {
        Self::start_at(ClusterUnderTest::any_port(), args)
    }

    /// A backend at this address.
    pub fn start_at(address: SocketAddr, args: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("received");
        let mut command = kubewake();
        command.args(["sink", "--listen", &address.to_string(), "--out"]).arg(&out).args(args);
        let mut process = ChildProcess::start(&mut command);
        let ready = process.wait_until_ready();
        let address = ready.rsplit(' ').next().unwrap().parse().expect("the ready line ends with an address");
        Self { process, address, out, _folder: folder }
    }

    /// Address of both gRPC and HTTP.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn stats(&self) -> Value {
        http::get(self.address, "/stats").json()
    }

    pub fn count(&self, name: &str) -> u64 {
        self.stats()[name].as_u64().unwrap_or_else(|| panic!("no count {name}"))
    }

    pub fn items(&self) -> u64 {
        self.count("items")
    }

    /// Changes its mode, as in `hang=true&delay_ms=10`.
    pub fn set_mode(&self, change: &str) {
        let answer = http::post(self.address, &format!("/mode?{change}"), "text/plain", b"");
        assert_eq!(answer.status, 200, "{}", answer.text());
    }

    pub fn recover(&self) {
        self.set_mode("hang=false");
    }

    /// Waits until it has acknowledged this number of items.
    pub fn wait_for_items(&self, count: u64) {
        wait_until(&format!("the sink has {count} items"), || self.items() >= count);
    }

    /// How many of these items (lines of `seed first end`) are missing.
    pub fn missing(&self, acknowledged: &str) -> u64 {
        let answer = http::post(self.address, "/missing", "text/plain", acknowledged.as_bytes()).json();
        answer["missing"].as_u64().unwrap_or_else(|| panic!("{answer}"))
    }

    /// Waits until all of these items have arrived.
    pub fn wait_for_all(&self, acknowledged: &str) {
        wait_until("the sink has all acknowledged items", || self.missing(acknowledged) == 0);
    }

    /// The requests that it acknowledged, in OTLP's JSON.
    pub fn received(&self, signal: Signal) -> Vec<Value> {
        let bytes = fs::read(&self.out).unwrap_or_default();
        let mut rest = &bytes[..];
        let mut requests = Vec::new();
        while let [mark, a, b, c, d, tail @ ..] = rest {
            let (request, more) = tail.split_at(u32::from_be_bytes([*a, *b, *c, *d]) as usize);
            if signal.name().as_bytes().starts_with(&[*mark]) {
                let mut text = Vec::new();
                json::encode(signal, request, &mut text).expect("the sink writes OTLP");
                requests.push(serde_json::from_slice(&text).expect("the sink writes JSON"));
            }
            rest = more;
        }
        requests
    }

    /// The names of all acknowledged spans, sorted.
    pub fn span_names(&self) -> Vec<String> {
        let requests = self.received(Signal::Traces);
        let mut names: Vec<_> = requests.iter().flat_map(crate::otlp::span_names).collect();
        names.sort();
        names
    }

    pub fn logs(&self) -> String {
        self.process.stdout() + &self.process.stderr()
    }
}
