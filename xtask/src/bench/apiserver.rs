//! The embedded API server: start, memory, CPU for each request, and many watchers.

pub(super) mod client;
mod context;
mod requests;
mod start;
mod tracing;
mod watchers;

use std::{path::PathBuf, process::Command};

use self::client::Client;
use super::{Plan, check::Section, directory, process::Process, program};

/// How many of what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    starts: usize,
    /// Rounds of each kind of request; the median counts.
    rounds: usize,
    /// Requests in a round.
    creates: usize,
    gets: usize,
    lists: usize,
    /// Rounds with and as many without a header, in turn.
    pairs: usize,
    watchers: usize,
    events: usize,
}

impl Size {
    /// For a whole run, or only to see that it works.
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

/// A server under test, in memory, with a client that is connected to it.
#[derive(Debug)]
struct Server {
    process: Process,
    kubeconfig: PathBuf,
}

impl Server {
    fn start(name: &str, more: &[&str]) -> anyhow::Result<Self> {
        let kubeconfig = directory().join(format!("{name}.kubeconfig"));
        let mut command = Command::new(program("kubewake"));
        command.args(["apiserver", "--listen", "127.0.0.1:0"]).arg("--kubeconfig").arg(&kubeconfig).args(more);
        Ok(Self { process: Process::start(name, &mut command)?, kubeconfig })
    }

    fn client(&self, connections: usize) -> anyhow::Result<Client> {
        Client::start(&self.kubeconfig, connections)
    }

    /// Sends a round of requests, and gives the CPU time of the server for each in microseconds, with the client's report.
    fn cost(&self, client: &mut Client, command: &str) -> anyhow::Result<(f64, client::Report)> {
        let before = self.process.cpu()?;
        let report = client.tell(command)?;
        let cpu = self.process.cpu()? - before;
        Ok((cpu.as_secs_f64() * 1e6 / report.number("requests"), report))
    }
}

/// All of it, one after the other.
pub(crate) fn run(plan: &Plan) -> anyhow::Result<Section> {
    let size = plan.api;
    let how = format!(
        "`kubewake apiserver` in memory; ConfigMaps of 2 KiB; {} connections, HTTP/1.1 over TLS with a client certificate, kept open, \
         one request at a time on each, nothing compressed. CPU time is the server's, all of it, also for TLS; the median of the \
         rounds is shown. The client (`benches/apiclient`) runs on the same machine.",
        requests::CONNECTIONS
    );
    let mut section = Section::new("API server", how);
    section.header(&["", "CPU µs each", "rounds, least to most", "requests", "p50", "p99"]);
    start::measure(size, &mut section)?;
    requests::measure(size, &mut section)?;
    context::measure(size, &mut section)?;
    tracing::measure(size, &mut section)?;
    watchers::measure(size, &mut section)?;
    Ok(section)
}
