//! The embedded API server: start, memory, CPU for each request, and many watchers.

pub(super) mod client;
mod context;
mod requests;
mod start;
mod tracing;
mod watchers;

use std::{path::PathBuf, process::Command};

use self::client::ApiClientProcess;
use super::{BenchPlan, directory, process::BenchProcess, program, section::BenchSection};

#[derive(Clone, Copy, Debug)]
pub(crate) struct ApiServerWorkload {
    starts: usize,
    /// Rounds of each kind of request, of which the median is reported.
    rounds: usize,
    creates: usize,
    gets: usize,
    lists: usize,
    /// Pairs of rounds: with and without a header, in alternation.
    pairs: usize,
    watchers: usize,
    events: usize,
}

impl ApiServerWorkload {
    /// Sizes of a full run, or of a quick one that only checks the bench.
    pub(crate) fn new(quick: bool) -> Self {
        let pick = |full, short| if quick { short } else { full };
        Self {
            starts: pick(11, 3),
            rounds: pick(9, 3),
            creates: 1000,
            gets: pick(5000, 1000),
            lists: pick(300, 100),
            pairs: pick(60, 5),
            watchers: 1000,
            events: pick(500, 50),
        }
    }
}

/// A server under test, with storage in memory, and a connected client.
#[derive(Debug)]
struct BenchApiServer {
    process: BenchProcess,
    kubeconfig: PathBuf,
}

impl BenchApiServer {
    fn start(name: &str, more: &[&str]) -> anyhow::Result<Self> {
        let kubeconfig = directory().join(format!("{name}.kubeconfig"));
        let mut command = Command::new(program("kubewake"));
        command.args(["apiserver", "--listen", "127.0.0.1:0"]).arg("--kubeconfig").arg(&kubeconfig).args(more);
        Ok(Self { process: BenchProcess::start(name, &mut command)?, kubeconfig })
    }

    fn client(&self, connections: usize) -> anyhow::Result<ApiClientProcess> {
        ApiClientProcess::start(&self.kubeconfig, connections)
    }

    /// Runs a round of requests, and returns the server's CPU time for each request in microseconds, with the
    /// client's report.
    fn cost(&self, client: &mut ApiClientProcess, command: &str) -> anyhow::Result<(f64, client::RoundReport)> {
        let before = self.process.cpu_time()?;
        let report = client.run_command(command)?;
        let cpu = self.process.cpu_time()? - before;
        Ok((cpu.as_secs_f64() * 1e6 / report.number("requests"), report))
    }
}

/// Runs all measurements in sequence.
pub(crate) fn run(plan: &BenchPlan) -> anyhow::Result<BenchSection> {
    let size = plan.api;
    let how = format!(
        "`kubewake apiserver` runs in memory with ConfigMaps of 2 KiB. {} connections speak HTTP/1.1 over TLS with a \
         client certificate. They stay open, have one request at a time each, and use no compression. CPU time is the \
         total of the server, including TLS, and the median of the rounds is shown. The client (`benches/apiclient`) \
         runs on the same machine.",
        requests::CONNECTIONS
    );
    let mut section = BenchSection::new("API server", how);
    section.header(&["", "CPU µs each", "rounds, least to most", "requests", "p50", "p99"]);
    start::measure(size, &mut section)?;
    requests::measure(size, &mut section)?;
    context::measure(size, &mut section)?;
    tracing::measure(size, &mut section)?;
    watchers::measure(size, &mut section)?;
    Ok(section)
}
