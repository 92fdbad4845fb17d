//! A sticky tier: one collector distributes traces over three peers, one of which is killed, and another one is
//! added.

use std::{
    collections::{HashMap, HashSet},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};

use super::{
    BenchPlan,
    config::{CollectorFile, DocumentParts, pipeline_yaml},
    load::LoadCommand,
    section::BenchSection,
    sink::BenchSink,
};

/// A rate within the capacity of all programs of the tier on one machine.
const SPANS_PER_SECOND: u64 = 20_000;
/// The spans of a trace arrive in this number of consecutive requests.
const REQUESTS_PER_TRACE: &str = "10";
/// How long the last requests may take to arrive.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(15);
/// Limit of the share of traces that each event splits: those that are open at that moment.
const MAX_SPLIT_SHARE: f64 = 0.02;

/// Spans of each trace at a peer.
type SpansByTrace = HashMap<String, u64>;

/// Runs the tier once, and kills and adds a peer meanwhile.
pub(crate) fn run(plan: &BenchPlan) -> anyhow::Result<BenchSection> {
    let third = plan.isolation / 3;
    let how = format!(
        "The pipeline is `otlp → load_balancing` over three peers. It receives {SPANS_PER_SECOND} spans/s for {} s, \
         with 10 traces of 10 spans in each request, and the spans of a trace in {REQUESTS_PER_TRACE} requests. After \
         a third of the time one peer is killed. After two thirds it is removed from the list and another peer is \
         added.",
        plan.isolation.as_secs()
    );
    let mut section = BenchSection::new("A sticky tier", how);
    section.header(&["peer", "spans", "traces", "whole"]);
    let [a, b, killed, new] =
        ["a", "b", "killed", "new"].map(|name| BenchSink::start_counting_traces(&format!("tier-{name}")));
    let a = a?;
    let b = b?;
    let killed = killed?;
    let new = new?;
    let config = CollectorFile::new("tier")?;
    config.write(&parts(&[&a, &b, &killed]))?;
    let collector = config.start()?;
    let load = LoadCommand::new("tier", &config.grpc).rate(SPANS_PER_SECOND).duration(plan.isolation).args(&[
        "--spread",
        REQUESTS_PER_TRACE,
        "--retry",
    ]);
    let running = load.start()?;
    sleep(third);
    // The peer must receive nothing more, so that its traces can be read before it is killed.
    killed.set_mode("hang=true")?;
    let of_killed = killed.traces()?;
    killed.kill()?;
    sleep(third);
    config.write(&parts(&[&a, &b, &new]))?;
    let outcome = running.finish()?;
    let acknowledged = outcome.acknowledged();
    let peers = || [a.traces(), b.traces(), new.traces()].into_iter().collect::<anyhow::Result<Vec<SpansByTrace>>>();
    let sum = |traces: &[SpansByTrace]| traces.iter().flat_map(HashMap::values).sum::<u64>();
    let deadline = Instant::now() + DELIVERY_TIMEOUT;
    let mut live = peers()?;
    while sum(&live) + of_killed.values().sum::<u64>() < acknowledged && Instant::now() < deadline {
        sleep(Duration::from_millis(250));
        live = peers()?;
    }
    let [at_a, at_b, at_new] = <[SpansByTrace; 3]>::try_from(live).ok().context("three peers are left")?;
    let all = [("a", &at_a), ("b", &at_b), ("killed", &of_killed), ("new", &at_new)];
    let places = peers_by_trace(&all.map(|(_, traces)| traces));
    let whole = |traces: &SpansByTrace| traces.keys().filter(|id| places.get(*id) == Some(&1)).count();
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
    let most = (places.len() as f64 * MAX_SPLIT_SHARE) as usize;
    section.check(format!("traces that were open on the killed peer, at most {most}"), by_kill, by_kill <= most);
    section.check(format!("traces that the change moved, at most {most}"), by_change, by_change <= most);
    section.check("the peer that came took its part", format!("{} traces", at_new.len()), !at_new.is_empty());
    ensure!(acknowledged > 0, "the load sent no spans");
    collector.stop()?;
    Ok(section)
}

/// The number of peers that have spans of each trace.
fn peers_by_trace(all: &[&SpansByTrace]) -> HashMap<String, usize> {
    let mut places = HashMap::new();
    for id in all.iter().flat_map(|traces| traces.keys()) {
        *places.entry(id.clone()).or_default() += 1;
    }
    places
}

fn parts(peers: &[&BenchSink]) -> DocumentParts {
    let peers: Vec<&str> = peers.iter().map(|peer| peer.address.as_str()).collect();
    let exporters = format!(
        "  load_balancing:\n    protocol:\n      otlp:\n        compression: none\n        tls: {{insecure: true}}\n        \
         retry_on_failure: {{initial_interval: 100ms, max_interval: 1s}}\n    resolver:\n      static:\n        \
         hostnames: [{}]\n",
        peers.iter().map(|peer| format!("\"{peer}\"")).collect::<Vec<_>>().join(", ")
    );
    DocumentParts { exporters, pipelines: pipeline_yaml("traces", "", "load_balancing"), ..DocumentParts::default() }
}
