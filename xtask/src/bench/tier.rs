//! A sticky tier: one collector spreads traces over three peers, one of which is killed, and another one comes.

use std::{
    collections::{HashMap, HashSet},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};

use super::{
    Plan,
    check::Section,
    config::{Config, Parts, pipeline},
    load::Load,
    sink::Sink,
};

/// A rate that all programs of the tier bear on one machine.
const RATE: u64 = 20_000;
/// The spans of a trace come in so many requests, one after the other.
const SPREAD: &str = "10";
/// What the last requests may take to arrive.
const PATIENCE: Duration = Duration::from_secs(15);
/// At most this share of the traces is open at a moment in which something happens.
const MAX_SPLIT: f64 = 0.02;

/// Spans of each trace at a peer.
type Traces = HashMap<String, u64>;

/// One run, in the course of which a peer is killed and another one is added.
pub(crate) fn run(plan: &Plan) -> anyhow::Result<Section> {
    let third = plan.isolation / 3;
    let how = format!(
        "`otlp → load_balancing` over three peers, {RATE} spans/s for {} s, 10 traces of 10 spans in each request, the spans of \
         a trace in {SPREAD} requests. After a third of the time one peer is killed, after two thirds it is taken from the list and \
         another one is added.",
        plan.isolation.as_secs()
    );
    let mut section = Section::new("A sticky tier", how);
    section.header(&["peer", "spans", "traces", "whole"]);
    let [a, b, killed, new] = ["a", "b", "killed", "new"].map(|name| Sink::counting_traces(&format!("tier-{name}")));
    let (a, b, killed, new) = (a?, b?, killed?, new?);
    let config = Config::new("tier")?;
    config.write(&parts(&[&a, &b, &killed]))?;
    let collector = config.start()?;
    let load =
        Load::new("tier", &config.grpc).rate(RATE).lasting(plan.isolation).args(&["--spread", SPREAD, "--retry"]);
    let running = load.start()?;
    sleep(third);
    // It takes nothing more from here on, so that what it has taken can be told before it is gone.
    killed.mode("hang=true")?;
    let of_killed = killed.traces()?;
    killed.kill()?;
    sleep(third);
    config.write(&parts(&[&a, &b, &new]))?;
    let outcome = running.finish()?;
    let acknowledged = outcome.acknowledged();
    let peers = || [a.traces(), b.traces(), new.traces()].into_iter().collect::<anyhow::Result<Vec<Traces>>>();
    let sum = |traces: &[Traces]| traces.iter().flat_map(HashMap::values).sum::<u64>();
    let deadline = Instant::now() + PATIENCE;
    let mut live = peers()?;
    while sum(&live) + of_killed.values().sum::<u64>() < acknowledged && Instant::now() < deadline {
        sleep(Duration::from_millis(250));
        live = peers()?;
    }
    let [at_a, at_b, at_new] = <[Traces; 3]>::try_from(live).ok().context("three peers are left")?;
    let all = [("a", &at_a), ("b", &at_b), ("killed", &of_killed), ("new", &at_new)];
    let places = places(&all.map(|(_, traces)| traces));
    let whole = |traces: &Traces| traces.keys().filter(|id| places.get(*id) == Some(&1)).count();
    for (name, traces) in all {
        let spans: u64 = traces.values().sum();
        section.row([name.to_owned(), spans.to_string(), traces.len().to_string(), whole(traces).to_string()]);
    }
    let got: u64 = all.iter().flat_map(|(_, traces)| traces.values()).sum();
    section.check_none("spans that were acknowledged and lost", acknowledged.saturating_sub(got));
    section.check_none("spans that came twice", got.saturating_sub(acknowledged));
    let split: HashSet<&String> = places.iter().filter(|(_, peers)| **peers > 1).map(|(id, _)| id).collect();
    let by_kill = split.iter().filter(|id| of_killed.contains_key(**id)).count();
    let by_change = split.iter().filter(|id| !of_killed.contains_key(**id) && at_new.contains_key(**id)).count();
    let unexplained = (split.len() - by_kill - by_change) as u64;
    section.check_none("traces at two peers that neither the kill nor the change explains", unexplained);
    let most = (places.len() as f64 * MAX_SPLIT) as usize;
    section.check(format!("traces that were open on the killed peer, at most {most}"), by_kill, by_kill <= most);
    section.check(format!("traces that the change moved, at most {most}"), by_change, by_change <= most);
    section.check("the peer that came took its part", format!("{} traces", at_new.len()), !at_new.is_empty());
    ensure!(acknowledged > 0, "nothing was sent");
    collector.stop()?;
    Ok(section)
}

/// At how many peers each trace is.
fn places(all: &[&Traces]) -> HashMap<String, usize> {
    let mut places = HashMap::new();
    for id in all.iter().flat_map(|traces| traces.keys()) {
        *places.entry(id.clone()).or_default() += 1;
    }
    places
}

fn parts(peers: &[&Sink]) -> Parts {
    let peers: Vec<&str> = peers.iter().map(|peer| peer.address.as_str()).collect();
    let exporters = format!(
        "  load_balancing:\n    protocol:\n      otlp:\n        compression: none\n        tls: {{insecure: true}}\n        \
         retry_on_failure: {{initial_interval: 100ms, max_interval: 1s}}\n    resolver:\n      static:\n        \
         hostnames: [{}]\n",
        peers.iter().map(|peer| format!("\"{peer}\"")).collect::<Vec<_>>().join(", ")
    );
    Parts { exporters, pipelines: pipeline("traces", "", "load_balancing"), ..Parts::default() }
}
