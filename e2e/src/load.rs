//! `kubewake load` as a process.

use std::{fs, net::SocketAddr};

use serde_json::Value;
use tempfile::TempDir;

use crate::process::{ChildProcess, kubewake};

/// A running load generator. It is killed when this is dropped.
pub struct LoadGenerator {
    process: ChildProcess,
    folder: TempDir,
}

/// The result of a run.
#[derive(Debug)]
pub struct LoadReport {
    /// The report that the program prints.
    pub json: Value,
    /// The acknowledged items, as lines of `seed first end`.
    pub acknowledged: String,
}

impl LoadGenerator {
    pub fn start(protocol: &str, target: SocketAddr, args: &[&str]) -> Self {
        Self::start_to(protocol, &format!("http://{target}"), args)
    }

    /// The same, to a receiver by its URL.
    pub fn start_to(protocol: &str, target: &str, args: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = kubewake();
        command.args(["load", "--json", "--protocol", protocol, "--target", target]);
        // A late response on a busy machine is no failure.
        command.args(["--timeout", "60", "--acked-file"]).arg(folder.path().join("acked")).args(args);
        Self { process: ChildProcess::start(&mut command), folder }
    }

    pub fn run(protocol: &str, target: SocketAddr, args: &[&str]) -> LoadReport {
        Self::start(protocol, target, args).finish()
    }

    pub fn finish(mut self) -> LoadReport {
        self.process.wait_for_exit();
        let acknowledged = fs::read_to_string(self.folder.path().join("acked"));
        let acknowledged =
            acknowledged.unwrap_or_else(|e| panic!("failed to run the load: {e}\n{}", self.process.stderr()));
        let json = serde_json::from_str(&self.process.stdout()).expect("the report is JSON");
        LoadReport { json, acknowledged }
    }

    /// Interrupts the run, which loses nothing: requests in flight are completed.
    pub fn stop_early(self) -> LoadReport {
        self.process.signal("TERM");
        self.finish()
    }

    pub fn is_running(&mut self) -> bool {
        self.process.is_running()
    }
}

impl LoadReport {
    /// A count of items: `started`, `acknowledged`, `refused`, `failed`, `refusals`.
    pub fn items(&self, of: &str) -> u64 {
        self.json["items"][of].as_u64().unwrap_or_else(|| panic!("no {of} in {}", self.json))
    }
}
