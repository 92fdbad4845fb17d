//! What requests cost the server, and what their objects take.

use super::{Server, Size, client::Client};
use crate::bench::check::{Section, median, mib};

/// As many connections as the promise says.
pub(super) const CONNECTIONS: usize = 16;
/// Objects that there are in the end; the promise about memory is about so many.
const OBJECTS: usize = 10_000;
const MAX_MEMORY: u64 = 120 << 20;
/// Objects in a list.
const PAGE: usize = 500;

pub(super) fn measure(size: Size, section: &mut Section) -> anyhow::Result<()> {
    let server = Server::start("apiserver-requests", &[])?;
    let mut client = server.client(CONNECTIONS)?;
    // Not measured: caches and pools become as in daily life. The rest brings the objects to their number.
    let rest = OBJECTS.saturating_sub(size.rounds * size.creates);
    client.tell(&format!("create warm {rest}"))?;
    let create = |round| format!("create round{round} {}", size.creates);
    run(&server, &mut client, size.rounds, create, ("create", 200.0), section)?;
    let memory = server.process.memory()?.now;
    section.check(format!("{OBJECTS} objects at most {}", mib(MAX_MEMORY)), mib(memory), memory <= MAX_MEMORY);
    let get = |_| format!("get warm {rest} {}", size.gets);
    run(&server, &mut client, size.rounds, get, ("get", 100.0), section)?;
    let list = |_| format!("list {PAGE} {}", size.lists);
    run(&server, &mut client, size.rounds, list, ("list of 500", 1000.0), section)?;
    server.process.stop()
}

fn run(
    server: &Server,
    client: &mut Client,
    rounds: usize,
    command: impl Fn(usize) -> String,
    (name, most): (&str, f64),
    section: &mut Section,
) -> anyhow::Result<()> {
    let (mut costs, mut p50, mut p99) = (Vec::new(), Vec::new(), Vec::new());
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
        spread(&costs),
        count.to_string(),
        milliseconds(p50),
        milliseconds(p99),
    ]);
    section.check(format!("CPU of a {name} at most {most:.0} µs"), format!("{cost:.1} µs"), cost <= most);
    Ok(())
}

/// The least and the most.
pub(super) fn spread(values: &[f64]) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{least:.1} to {most:.1}")
}
