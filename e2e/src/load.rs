//! `kubewake load` as a process.

use std::{fs, net::SocketAddr};

use serde_json::Value;
use tempfile::TempDir;

use crate::process::{Process, kubewake};

/// A sender that is under way. It is killed when this is dropped.
pub struct Load {
    process: Process,
    folder: TempDir,
}

/// What became of a run.
#[derive(Debug)]
pub struct Report {
    /// The report as the program gives it.
    pub json: Value,
    /// The items that were acknowledged, as lines of `seed first end`.
    pub acknowledged: String,
}

impl Load {
    /// Begins to send.
    pub fn start(protocol: &str, target: SocketAddr, args: &[&str]) -> Self {
        Self::start_to(protocol, &format!("http://{target}"), args)
    }

    /// The same, to a receiver by its URL.
    pub fn start_to(protocol: &str, target: &str, args: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = kubewake();
        command.args(["load", "--json", "--protocol", protocol, "--target", target]);
        // An answer that is late on a busy machine is no failure.
        command.args(["--timeout", "60", "--acked-file"]).arg(folder.path().join("acked")).args(args);
        Self { process: Process::start(&mut command), folder }
    }

    /// Sends to the end.
    pub fn run(protocol: &str, target: SocketAddr, args: &[&str]) -> Report {
        Self::start(protocol, target, args).finish()
    }

    /// Waits for the end.
    pub fn finish(mut self) -> Report {
        self.process.wait();
        let acknowledged = fs::read_to_string(self.folder.path().join("acked"));
        let acknowledged = acknowledged.unwrap_or_else(|e| panic!("no run: {e}\n{}", self.process.stderr()));
        let json = serde_json::from_str(&self.process.stdout()).expect("it reports in JSON");
        Report { json, acknowledged }
    }

    /// Ends it before its time, which loses nothing: what it has begun it ends.
    pub fn end(self) -> Report {
        self.process.signal("TERM");
        self.finish()
    }

    /// Whether it is still at it.
    pub fn runs(&mut self) -> bool {
        self.process.runs()
    }
}

impl Report {
    /// A count of items: `started`, `acknowledged`, `refused`, `failed`, `refusals`.
    pub fn items(&self, of: &str) -> u64 {
        self.json["items"][of].as_u64().unwrap_or_else(|| panic!("no {of} in {}", self.json))
    }
}
