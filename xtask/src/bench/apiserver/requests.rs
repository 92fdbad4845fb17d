//! CPU time of requests, and memory of their objects.

use super::{ApiServerWorkload, BenchApiServer, client::ApiClientProcess};
use crate::bench::section::{BenchSection, format_mib, median};

/// The number of connections for which the limit is promised.
pub(super) const CONNECTIONS: usize = 16;
/// Final number of objects, for which the memory limit is promised.
const OBJECTS: usize = 10_000;
const MAX_MEMORY_BYTES: u64 = 120 << 20;
const LIST_LIMIT: usize = 500;

pub(super) fn measure(size: ApiServerWorkload, section: &mut BenchSection) -> anyhow::Result<()> {
    let server = BenchApiServer::start("apiserver-requests", &[])?;
    let mut client = server.client(CONNECTIONS)?;
    // Warm-up of caches and pools, not measured. It creates the objects that the measured rounds do not.
    let rest = OBJECTS.saturating_sub(size.rounds * size.creates);
    client.run_command(&format!("create warm {rest}"))?;
    let create = |round| format!("create round{round} {}", size.creates);
    run(&server, &mut client, size.rounds, create, ("create", 200.0), section)?;
    let memory = server.process.memory()?.now;
    section.check(
        format!("{OBJECTS} objects at most {}", format_mib(MAX_MEMORY_BYTES)),
        format_mib(memory),
        memory <= MAX_MEMORY_BYTES,
    );
    let get = |_| format!("get warm {rest} {}", size.gets);
    run(&server, &mut client, size.rounds, get, ("get", 100.0), section)?;
    let list = |_| format!("list {LIST_LIMIT} {}", size.lists);
    run(&server, &mut client, size.rounds, list, ("list of 500", 1000.0), section)?;
    server.process.stop()
}

fn run(
    server: &BenchApiServer,
    client: &mut ApiClientProcess,
    rounds: usize,
    command: impl Fn(usize) -> String,
    (name, most): (&str, f64),
    section: &mut BenchSection,
) -> anyhow::Result<()> {
    let mut costs = Vec::new();
    let mut p50 = Vec::new();
    let mut p99 = Vec::new();
    let mut count = 0;
    for round in 0..rounds {
        let (cost, report) = server.cost(client, &command(round))?;
        costs.push(cost);
        p50.push(report.number("p50_ms"));
        p99.push(report.number("p99_ms"));
        count += report.count("requests");
    }
    let cost = median(costs.clone());
    let milliseconds = |values| format!("{:.2} ms", median(values));
    section.row([
        name.to_owned(),
        format!("{cost:.1}"),
        format_range(&costs),
        count.to_string(),
        milliseconds(p50),
        milliseconds(p99),
    ]);
    section.check(format!("CPU of a {name} at most {most:.0} µs"), format!("{cost:.1} µs"), cost <= most);
    Ok(())
}

pub(super) fn format_range(values: &[f64]) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{least:.1} to {most:.1}")
}
