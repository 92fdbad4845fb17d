//! A collector and its baseline (the relay, or the collector of another build) at the same fixed rate, at the same time.
//!
//! Each has a sender and a sink of its own, so that both see the same machine: what it does from one minute to the next is
//! more than what is compared here.

use std::{path::Path, process::Command, thread::sleep, time::Duration};

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

/// Rounds of a baseline and the collector.
#[derive(Debug)]
pub(crate) struct Rounds {
    pub baseline: Vec<Round>,
    pub collector: Vec<Round>,
}

/// What the collector under test is measured beside.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Baseline<'a> {
    Relay,
    /// The program of another build, with the same configuration.
    Collector(&'a Path),
}

impl Baseline<'_> {
    fn name(self) -> &'static str {
        match self {
            Self::Relay => "relay",
            Self::Collector(_) => "before",
        }
    }
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
        Self::run_beside(Baseline::Relay, plan, contender)
    }

    /// Baseline and collector side by side, round after round.
    pub(crate) fn run_beside(baseline: Baseline<'_>, plan: &Plan, contender: &Contender<'_>) -> anyhow::Result<Self> {
        let mut rounds = Self { baseline: Vec::new(), collector: Vec::new() };
        for _ in 0..plan.rounds {
            let [before, collector] = measure(baseline, plan, contender)?;
            rounds.baseline.push(before);
            rounds.collector.push(collector);
        }
        Ok(rounds)
    }

    /// The collector's CPU beside the baseline's: the median of the rounds.
    pub(crate) fn ratio(&self) -> f64 {
        let both = self.baseline.iter().zip(&self.collector);
        median(both.map(|(baseline, collector)| collector.cpu / baseline.cpu).collect())
    }

    /// The most memory that the collector had, by this measure.
    pub(crate) fn most(&self, of: impl Fn(&Round) -> u64) -> u64 {
        self.collector.iter().map(of).max().unwrap_or(0)
    }

    /// All rounds of both.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Round> {
        self.baseline.iter().chain(&self.collector)
    }

    /// A row for the relay and one for the collector.
    pub(crate) fn rows(&self, name: &str, section: &mut Section) {
        self.rows_beside(Baseline::Relay, name, section);
    }

    /// A row for the baseline and one for the collector.
    pub(crate) fn rows_beside(&self, baseline: Baseline<'_>, name: &str, section: &mut Section) {
        section.row(row(&format!("{}, {name}", baseline.name()), &self.baseline, 1.0));
        section.row(row(&format!("collector, {name}"), &self.collector, self.ratio()));
    }

    /// Notes the promise of a ratio to the relay, and whether the rate was kept.
    pub(crate) fn check(&self, name: &str, max_ratio: f64, section: &mut Section) {
        self.check_beside(Baseline::Relay, name, max_ratio, section);
    }

    /// Notes the promise of a ratio to the baseline, and whether the rate was kept.
    pub(crate) fn check_beside(&self, baseline: Baseline<'_>, name: &str, max_ratio: f64, section: &mut Section) {
        let ratio = self.ratio();
        let what = match baseline {
            Baseline::Relay => format!("{name}: CPU at most {max_ratio} × the relay's"),
            Baseline::Collector(_) => format!("{name}: CPU at most {max_ratio} × that of the build before"),
        };
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

fn measure(baseline: Baseline<'_>, plan: &Plan, contender: &Contender<'_>) -> anyhow::Result<[Round; 2]> {
    let gzip = contender.gzip;
    let before = match baseline {
        Baseline::Relay => Subject::relay(gzip)?,
        Baseline::Collector(program) => Subject::collector(&format!("{}-before", contender.name), program, contender)?,
    };
    let subjects = [before, Subject::collector(contender.name, &Part::Collector.program(), contender)?];
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
    let [baseline, collector] = subjects;
    let mut rounds = before.into_iter().zip(outcomes);
    let mut round = |subject: Subject| {
        let (before, outcome) = rounds.next().context("a sender for each")?;
        subject.finish(plan, before, &outcome)
    };
    Ok([round(baseline)?, round(collector)?])
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

    fn collector(name: &str, program: &Path, contender: &Contender<'_>) -> anyhow::Result<Self> {
        let sink = Sink::start(&format!("{name}-sink"))?;
        let config = Config::new(name)?;
        config.write(&(contender.parts)(&sink.address))?;
        let process = config.start_program(program)?;
        Ok(Self { name: name.to_owned(), process, address: config.grpc, sink, keeps_all: contender.keeps_all })
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
