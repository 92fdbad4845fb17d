//! A collector and the relay at the same fixed rate, at the same time.
//!
//! Each has a sender and a sink of its own, so that both see the same machine: what it does from one minute to the next is
//! more than what is compared here.

use std::{process::Command, thread::sleep, time::Duration};

use anyhow::Context;

use super::{
    Part, Plan,
    check::{Section, median, mib},
    config::{Config, Parts},
    load::{Load, Outcome, Running},
    process::Process,
    sink::Sink,
};

/// The relay joins as many requests as the collector's batch of 8192 spans holds: it leaves with the 82nd.
pub(crate) const JOIN: &str = "82";
/// A sender that keeps less than this share of the rate has not measured what it says.
const MIN_RATE: f64 = 0.98;

/// The columns of a table of rounds.
pub(crate) const COLUMNS: [&str; 7] = ["", "CPU µs/span", "rounds", "ratio", "memory", "peak", "p99 of the sender"];

/// What one round measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    /// Microseconds of CPU for each span that the sender sent.
    pub cpu: f64,
    pub memory: u64,
    pub peak: u64,
    p99: f64,
    /// Spans a second, as a share of what was wanted.
    kept_rate: f64,
    /// Spans that were acknowledged.
    pub acknowledged: u64,
    /// Acknowledged and not arrived.
    pub missing: u64,
    /// Arrived more than once.
    pub doubled: u64,
}

/// Rounds of relay and collector.
#[derive(Debug)]
pub(crate) struct Rounds {
    pub relay: Vec<Round>,
    pub collector: Vec<Round>,
}

/// What the collector under test is: its name in files and tables, and its configuration for a backend at an address.
pub(crate) struct Contender<'a> {
    pub name: &'a str,
    pub gzip: bool,
    /// Whether everything that is acknowledged is to arrive; if not, nobody waits for it.
    pub keeps_all: bool,
    pub parts: &'a dyn Fn(&str) -> Parts,
}

/// A program under test between its sender and its sink.
struct Subject {
    name: String,
    process: Process,
    address: String,
    sink: Sink,
    keeps_all: bool,
}

impl Rounds {
    /// Relay and collector side by side, round after round.
    pub(crate) fn run(plan: &Plan, contender: &Contender<'_>) -> anyhow::Result<Self> {
        let mut rounds = Self { relay: Vec::new(), collector: Vec::new() };
        for _ in 0..plan.rounds {
            let [relay, collector] = measure(plan, contender)?;
            rounds.relay.push(relay);
            rounds.collector.push(collector);
        }
        Ok(rounds)
    }

    /// The collector's CPU beside the relay's: the median of the rounds.
    pub(crate) fn ratio(&self) -> f64 {
        let both = self.relay.iter().zip(&self.collector);
        median(both.map(|(relay, collector)| collector.cpu / relay.cpu).collect())
    }

    /// The most memory that the collector had, by this measure.
    pub(crate) fn most(&self, of: impl Fn(&Round) -> u64) -> u64 {
        self.collector.iter().map(of).max().unwrap_or(0)
    }

    /// All rounds of both.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Round> {
        self.relay.iter().chain(&self.collector)
    }

    /// A row for each.
    pub(crate) fn rows(&self, name: &str, section: &mut Section) {
        section.row(row(&format!("relay, {name}"), &self.relay, 1.0));
        section.row(row(&format!("collector, {name}"), &self.collector, self.ratio()));
    }

    /// Notes the promise of a ratio, and whether the rate was kept.
    pub(crate) fn check(&self, name: &str, max_ratio: f64, section: &mut Section) {
        let ratio = self.ratio();
        let what = format!("{name}: CPU at most {max_ratio} × the relay's");
        section.check(what, format!("{ratio:.2} ×"), ratio <= max_ratio);
        let kept = self.all().map(|round| round.kept_rate).fold(f64::INFINITY, f64::min);
        section.check(format!("{name}: the rate was kept"), format!("{:.1} %", kept * 100.0), kept >= MIN_RATE);
    }
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

fn measure(plan: &Plan, contender: &Contender<'_>) -> anyhow::Result<[Round; 2]> {
    let gzip = contender.gzip;
    let subjects = [Subject::relay(gzip)?, Subject::collector(contender)?];
    let send = |time| -> anyhow::Result<Vec<Outcome>> {
        let load = |subject: &Subject| {
            Load::new(&subject.name, &subject.address).rate(plan.rate).gzip(gzip).lasting(time).start()
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

/// A relay on a free port.
pub(crate) fn relay_arguments(backend: &str, gzip: bool) -> impl Iterator<Item = &str> {
    let always = ["--listen", "127.0.0.1:0", "--upstream", backend, "--join", JOIN];
    always.into_iter().chain(gzip.then_some("--gzip"))
}

/// Lets the last batch leave, so that its cost is counted where it belongs.
fn settle() {
    sleep(Duration::from_millis(500));
}

impl Subject {
    fn relay(gzip: bool) -> anyhow::Result<Self> {
        let sink = Sink::start("relay-sink")?;
        let mut command = Command::new(Part::Relay.program());
        let process = Process::start("relay", command.args(relay_arguments(&sink.address, gzip)))?;
        let address = process.address()?;
        Ok(Self { name: "relay".to_owned(), process, address, sink, keeps_all: true })
    }

    fn collector(contender: &Contender<'_>) -> anyhow::Result<Self> {
        let sink = Sink::start("collector-sink")?;
        let config = Config::new(contender.name)?;
        config.write(&(contender.parts)(&sink.address))?;
        let (name, keeps_all) = (contender.name.to_owned(), contender.keeps_all);
        Ok(Self { name, process: config.start()?, address: config.grpc, sink, keeps_all })
    }

    /// What it used since then for what its sender sent.
    fn finish(self, plan: &Plan, before: Duration, outcome: &Outcome) -> anyhow::Result<Round> {
        let memory = self.process.memory()?;
        settle();
        let cpu = self.process.cpu()?.saturating_sub(before);
        let patience = Duration::from_secs(if self.keeps_all { 10 } else { 0 });
        let missing = self.sink.missing(outcome.acknowledged_file(), patience)?;
        self.process.stop()?;
        Ok(Round {
            cpu: cpu.as_secs_f64() * 1e6 / outcome.acknowledged() as f64,
            memory: memory.now,
            peak: memory.peak,
            p99: outcome.measure("/latency_ms/p99"),
            kept_rate: outcome.measure("/rate") / plan.rate as f64,
            acknowledged: outcome.acknowledged(),
            missing,
            doubled: self.sink.count("/duplicates")?,
        })
    }
}
