//! CPU for each span, and memory, beside the relay at the same fixed rate.
//!
//! Relay and collector run at the same time, each with a sender and a sink of its own, so that both see the same
//! machine: what it does from one minute to the next is more than what is compared here.

use std::{process::Command, thread::sleep, time::Duration};

use anyhow::Context;

use super::{
    Plan,
    check::{Section, median, mib},
    config::{Config, forward},
    load::{Load, Outcome, Running},
    process::Process,
    program,
    sink::Sink,
};

/// The relay joins as many requests as the collector's batch of 8192 spans holds: it leaves with the 82nd.
const JOIN: &str = "82";
/// At most this much CPU beside the relay.
const MAX_RATIO: f64 = 1.1;
/// At most this much memory under load.
const MAX_MEMORY: u64 = 45 << 20;
/// A sender that keeps less than this share of the rate has not measured what it says.
const MIN_RATE: f64 = 0.98;

/// What one round measured.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// Microseconds of CPU for each span.
    cpu: f64,
    memory: u64,
    peak: u64,
    p99: f64,
    /// Spans a second, as a share of what was wanted.
    kept_rate: f64,
    /// Acknowledged and not arrived, or arrived twice.
    wrong: u64,
}

/// A program under test between its sender and its sink.
struct Subject {
    name: &'static str,
    process: Process,
    address: String,
    sink: Sink,
}

/// Relay and collector side by side, round after round.
pub(crate) fn run(plan: &Plan) -> anyhow::Result<Section> {
    let how = format!(
        "`otlp → batch → otlp` over gRPC, {} spans/s to the relay and as many to the collector at the same time, 100 spans \
         a request, 10 attributes a span, {} s measured after {} s of warm-up, {} rounds (the median of their ratios is \
         shown). The relay joins {JOIN} requests to one.",
        plan.rate,
        plan.measured.as_secs(),
        plan.warm_up.as_secs(),
        plan.rounds
    );
    let mut section = Section::new("CPU and memory beside the relay", how);
    section.header(&["", "CPU µs/span", "rounds", "ratio", "memory", "peak", "p99 of the sender"]);
    for gzip in [false, true] {
        compare(plan, gzip, &mut section)?;
    }
    Ok(section)
}

fn compare(plan: &Plan, gzip: bool, section: &mut Section) -> anyhow::Result<()> {
    let (mut relay, mut collector) = (Vec::new(), Vec::new());
    for _ in 0..plan.rounds {
        let [beside, measured] = measure(plan, gzip)?;
        relay.push(beside);
        collector.push(measured);
    }
    let ratios = relay.iter().zip(&collector).map(|(relay, collector)| collector.cpu / relay.cpu);
    let ratio = median(ratios.collect());
    let name = if gzip { "gzip" } else { "uncompressed" };
    section.row(row(&format!("relay, {name}"), &relay, 1.0));
    section.row(row(&format!("collector, {name}"), &collector, ratio));
    section.check(
        format!("{name}: CPU at most {MAX_RATIO} × the relay's"),
        format!("{ratio:.2} ×"),
        ratio <= MAX_RATIO,
    );
    let memory = collector.iter().map(|round| round.memory).max().unwrap_or(0);
    section.check(format!("{name}: memory at most {}", mib(MAX_MEMORY)), mib(memory), memory <= MAX_MEMORY);
    let rounds = || relay.iter().chain(&collector);
    section.check_none(format!("{name}: spans lost or doubled"), rounds().map(|round| round.wrong).sum());
    let kept = rounds().map(|round| round.kept_rate).fold(f64::INFINITY, f64::min);
    section.check(format!("{name}: the rate was kept"), format!("{:.1} %", kept * 100.0), kept >= MIN_RATE);
    Ok(())
}

fn row(name: &str, rounds: &[Round], ratio: f64) -> Vec<String> {
    let all: Vec<String> = rounds.iter().map(|round| format!("{:.3}", round.cpu)).collect();
    let max = |of: fn(&Round) -> u64| rounds.iter().map(of).max().unwrap_or(0);
    vec![
        name.to_owned(),
        format!("{:.3}", median(rounds.iter().map(|round| round.cpu).collect())),
        all.join(", "),
        format!("{ratio:.2}"),
        mib(max(|round| round.memory)),
        mib(max(|round| round.peak)),
        format!("{:.1} ms", median(rounds.iter().map(|round| round.p99).collect())),
    ]
}

fn measure(plan: &Plan, gzip: bool) -> anyhow::Result<[Round; 2]> {
    let subjects = [Subject::relay(gzip)?, Subject::collector(gzip)?];
    let send = |time| -> anyhow::Result<Vec<Outcome>> {
        let load = |subject: &Subject| {
            Load::new(subject.name, &subject.address).rate(plan.rate).gzip(gzip).lasting(time).start()
        };
        let running: Vec<Running> = subjects.iter().map(load).collect::<anyhow::Result<_>>()?;
        running.into_iter().map(Running::finish).collect()
    };
    send(plan.warm_up)?;
    settle();
    let mut before = Vec::new();
    for subject in &subjects {
        subject.sink.reset()?;
        before.push(subject.process.cpu()?);
    }
    let outcomes = send(plan.measured)?;
    let [relay, collector] = subjects;
    let mut rounds = before.into_iter().zip(outcomes);
    let mut round = |subject: Subject| {
        let (before, outcome) = rounds.next().context("a sender for each")?;
        subject.finish(plan, before, &outcome)
    };
    Ok([round(relay)?, round(collector)?])
}

/// Lets the last batch leave, so that its cost is counted where it belongs.
fn settle() {
    sleep(Duration::from_millis(500));
}

impl Subject {
    fn relay(gzip: bool) -> anyhow::Result<Self> {
        let sink = Sink::start("relay-sink")?;
        let mut command = Command::new(program("kubewake-relay"));
        command.args(["--listen", "127.0.0.1:0", "--upstream", &sink.address, "--join", JOIN]);
        let process = Process::start("relay", command.args(gzip.then_some("--gzip")))?;
        let address = process.address()?;
        Ok(Self { name: "relay", process, address, sink })
    }

    fn collector(gzip: bool) -> anyhow::Result<Self> {
        let sink = Sink::start("collector-sink")?;
        let config = Config::new("throughput")?;
        config.write(&forward(&sink.address, gzip))?;
        Ok(Self { name: "collector", process: config.start()?, address: config.grpc, sink })
    }

    /// What it used since then for what its sender sent.
    fn finish(self, plan: &Plan, before: Duration, outcome: &Outcome) -> anyhow::Result<Round> {
        let memory = self.process.memory()?;
        settle();
        let cpu = self.process.cpu()?.saturating_sub(before);
        let missing = self.sink.missing(outcome.acknowledged_file(), Duration::from_secs(10))?;
        self.process.stop()?;
        Ok(Round {
            cpu: cpu.as_secs_f64() * 1e6 / outcome.acknowledged() as f64,
            memory: memory.now,
            peak: memory.peak,
            p99: outcome.measure("/latency_ms/p99"),
            kept_rate: outcome.measure("/rate") / plan.rate as f64,
            wrong: missing + self.sink.count("/duplicates")?,
        })
    }
}
