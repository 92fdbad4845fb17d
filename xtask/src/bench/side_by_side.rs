//! Runs a collector and its baseline (the relay, or the collector of another build) at the same fixed rate at
//! the same time.
//!
//! Each has its own load generator and sink, so that both are measured under equal conditions: variations of
//! the machine from one minute to the next exceed the differences to measure.

use std::{path::Path, process::Command, thread::sleep, time::Duration};

use anyhow::Context;

use super::{
    BenchPlan, BenchProgram,
    config::{CollectorFile, DocumentParts},
    load::{LoadCommand, LoadOutcome, RunningLoad},
    process::BenchProcess,
    section::{BenchSection, format_mib, median},
    sink::BenchSink,
};

/// The relay joins as many requests as fit into the collector's batch of 8192 spans, which is full with the
/// 82nd.
pub(crate) const RELAY_JOIN_COUNT: &str = "82";
/// A measurement is invalid if the load generator reaches less than this share of the rate.
const MIN_RATE: f64 = 0.98;

/// Columns of the table of rounds.
pub(crate) const COLUMNS: [&str; 7] = ["", "CPU µs/span", "rounds", "ratio", "memory", "peak", "p99 of the sender"];

#[derive(Clone, Copy, Debug)]
pub(crate) struct MeasuredRound {
    /// Microseconds of CPU time for each sent span.
    pub cpu: f64,
    pub memory: u64,
    pub peak: u64,
    p99: f64,
    /// The achieved share of the requested rate.
    kept_rate: f64,
    pub acknowledged: u64,
    /// Spans that were acknowledged and did not arrive.
    pub missing: u64,
    /// Spans that arrived more than once.
    pub duplicates: u64,
}

#[derive(Debug)]
pub(crate) struct MeasuredRounds {
    pub baseline: Vec<MeasuredRound>,
    pub collector: Vec<MeasuredRound>,
}

/// The baseline of a collector under test.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Baseline<'a> {
    Relay,
    /// The collector of another build, with the same configuration.
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

/// The collector under test: its name in files and tables, and its configuration for a backend address.
pub(crate) struct CollectorCandidate<'a> {
    pub name: &'a str,
    pub gzip: bool,
    /// Whether all acknowledged spans must arrive; otherwise the bench does not wait for them.
    pub keeps_all: bool,
    pub parts: &'a dyn Fn(&str) -> DocumentParts,
}

/// A process under test with its load generator and sink.
struct MeasuredProcess {
    name: String,
    process: BenchProcess,
    address: String,
    sink: BenchSink,
    keeps_all: bool,
}

impl MeasuredRounds {
    /// Measures relay and collector side by side in several rounds.
    pub(crate) fn run(plan: &BenchPlan, contender: &CollectorCandidate<'_>) -> anyhow::Result<Self> {
        Self::run_against(Baseline::Relay, plan, contender)
    }

    /// Measures baseline and collector side by side in several rounds.
    pub(crate) fn run_against(
        baseline: Baseline<'_>,
        plan: &BenchPlan,
        contender: &CollectorCandidate<'_>,
    ) -> anyhow::Result<Self> {
        let mut rounds = Self { baseline: Vec::new(), collector: Vec::new() };
        for _ in 0..plan.rounds {
            let [before, collector] = measure(baseline, plan, contender)?;
            rounds.baseline.push(before);
            rounds.collector.push(collector);
        }
        Ok(rounds)
    }

    /// The ratio of the collector's CPU time to the baseline's: the median of all rounds.
    pub(crate) fn ratio(&self) -> f64 {
        let both = self.baseline.iter().zip(&self.collector);
        median(both.map(|(baseline, collector)| collector.cpu / baseline.cpu).collect())
    }

    /// The maximum of a measurement over the collector's rounds.
    pub(crate) fn max_by(&self, of: impl Fn(&MeasuredRound) -> u64) -> u64 {
        self.collector.iter().map(of).max().unwrap_or(0)
    }

    pub(crate) fn all_rounds(&self) -> impl Iterator<Item = &MeasuredRound> {
        self.baseline.iter().chain(&self.collector)
    }

    /// Adds a row for the relay and one for the collector.
    pub(crate) fn add_rows(&self, name: &str, section: &mut BenchSection) {
        self.add_rows_for(Baseline::Relay, name, section);
    }

    /// Adds a row for the baseline and one for the collector.
    pub(crate) fn add_rows_for(&self, baseline: Baseline<'_>, name: &str, section: &mut BenchSection) {
        section.row(row(&format!("{}, {name}", baseline.name()), &self.baseline, 1.0));
        section.row(row(&format!("collector, {name}"), &self.collector, self.ratio()));
    }

    /// Records the promised ratio to the relay, and whether the rate was reached.
    pub(crate) fn check_against_relay(&self, name: &str, max_ratio: f64, section: &mut BenchSection) {
        self.check_against(Baseline::Relay, name, max_ratio, section);
    }

    /// Records the promised ratio to the baseline, and whether the rate was reached.
    pub(crate) fn check_against(&self, baseline: Baseline<'_>, name: &str, max_ratio: f64, section: &mut BenchSection) {
        let ratio = self.ratio();
        let what = match baseline {
            Baseline::Relay => format!("{name}: CPU at most {max_ratio} × the relay's"),
            Baseline::Collector(_) => format!("{name}: CPU at most {max_ratio} × that of the build before"),
        };
        section.check(what, format!("{ratio:.2} ×"), ratio <= max_ratio);
        let kept = self.all_rounds().map(|round| round.kept_rate).fold(f64::INFINITY, f64::min);
        section.check(format!("{name}: the rate was kept"), format!("{:.1} %", kept * 100.0), kept >= MIN_RATE);
    }
}

fn row(name: &str, rounds: &[MeasuredRound], ratio: f64) -> Vec<String> {
    let all: Vec<String> = rounds.iter().map(|round| format!("{:.3}", round.cpu)).collect();
    let max = |of: fn(&MeasuredRound) -> u64| rounds.iter().map(of).max().unwrap_or(0);
    vec![
        name.to_owned(),
        format!("{:.3}", median(rounds.iter().map(|round| round.cpu).collect())),
        all.join(", "),
        format!("{ratio:.2}"),
        format_mib(max(|round| round.memory)),
        format_mib(max(|round| round.peak)),
        format!("{:.1} ms", median(rounds.iter().map(|round| round.p99).collect())),
    ]
}

fn measure(
    baseline: Baseline<'_>,
    plan: &BenchPlan,
    contender: &CollectorCandidate<'_>,
) -> anyhow::Result<[MeasuredRound; 2]> {
    let gzip = contender.gzip;
    let before = match baseline {
        Baseline::Relay => MeasuredProcess::relay(gzip)?,
        Baseline::Collector(program) => {
            MeasuredProcess::collector(&format!("{}-before", contender.name), program, contender)?
        }
    };
    let subjects = [before, MeasuredProcess::collector(contender.name, &BenchProgram::Collector.program(), contender)?];
    let send = |time| -> anyhow::Result<Vec<LoadOutcome>> {
        let load = |subject: &MeasuredProcess| {
            LoadCommand::new(&subject.name, &subject.address).rate(plan.rate).gzip(gzip).duration(time).start()
        };
        let running: Vec<RunningLoad> = subjects.iter().map(load).collect::<anyhow::Result<_>>()?;
        running.into_iter().map(RunningLoad::finish).collect()
    };
    send(plan.warm_up)?;
    settle();
    let mut before = Vec::new();
    for subject in &subjects {
        subject.sink.reset()?;
        before.push(subject.process.cpu_time()?);
    }
    let outcomes = send(plan.measured)?;
    let [baseline, collector] = subjects;
    let mut rounds = before.into_iter().zip(outcomes);
    let mut round = |subject: MeasuredProcess| {
        let (before, outcome) = rounds.next().context("a sender for each")?;
        subject.finish(plan, before, &outcome)
    };
    Ok([round(baseline)?, round(collector)?])
}

/// Arguments of a relay on a free port.
pub(crate) fn relay_arguments(backend: &str, gzip: bool) -> impl Iterator<Item = &str> {
    let always = ["--listen", "127.0.0.1:0", "--upstream", backend, "--join", RELAY_JOIN_COUNT];
    always.into_iter().chain(gzip.then_some("--gzip"))
}

/// Waits until the last batch has left, so that its cost is included.
fn settle() {
    sleep(Duration::from_millis(500));
}

impl MeasuredProcess {
    fn relay(gzip: bool) -> anyhow::Result<Self> {
        let sink = BenchSink::start("relay-sink")?;
        let mut command = Command::new(BenchProgram::Relay.program());
        let process = BenchProcess::start("relay", command.args(relay_arguments(&sink.address, gzip)))?;
        let address = process.address()?;
        Ok(Self { name: "relay".to_owned(), process, address, sink, keeps_all: true })
    }

    fn collector(name: &str, program: &Path, contender: &CollectorCandidate<'_>) -> anyhow::Result<Self> {
        let sink = BenchSink::start(&format!("{name}-sink"))?;
        let config = CollectorFile::new(name)?;
        config.write(&(contender.parts)(&sink.address))?;
        let process = config.start_program(program)?;
        Ok(Self { name: name.to_owned(), process, address: config.grpc, sink, keeps_all: contender.keeps_all })
    }

    /// The measurement of what it used since `before`.
    fn finish(self, plan: &BenchPlan, before: Duration, outcome: &LoadOutcome) -> anyhow::Result<MeasuredRound> {
        let memory = self.process.memory()?;
        settle();
        let cpu = self.process.cpu_time()?.saturating_sub(before);
        let patience = Duration::from_secs(if self.keeps_all { 10 } else { 0 });
        let missing = self.sink.missing(outcome.acknowledged_file(), patience)?;
        self.process.stop()?;
        Ok(MeasuredRound {
            cpu: cpu.as_secs_f64() * 1e6 / outcome.acknowledged() as f64,
            memory: memory.now,
            peak: memory.peak,
            p99: outcome.measure("/latency_ms/p99"),
            kept_rate: outcome.measure("/rate") / plan.rate as f64,
            acknowledged: outcome.acknowledged(),
            missing,
            duplicates: self.sink.count("/duplicates")?,
        })
    }
}
