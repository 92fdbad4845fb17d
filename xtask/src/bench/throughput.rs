//! CPU for each span, and memory, beside the relay at the same fixed rate.

use std::{process::Command, thread::sleep, time::Duration};

use super::{
    Plan,
    check::{Section, median, mib},
    config::{Config, forward},
    load::Load,
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    Relay,
    Collector,
}

/// Relay and collector take turns.
pub(crate) fn run(plan: &Plan) -> anyhow::Result<Section> {
    let how = format!(
        "`otlp → batch → otlp` over gRPC at {} spans/s, 100 spans a request, 10 attributes a span, {} s measured after {} s \
         of warm-up, {} rounds in turns (the median is shown). The relay joins {JOIN} requests to one.",
        plan.rate,
        plan.measured.as_secs(),
        plan.warm_up.as_secs(),
        plan.rounds
    );
    let mut section = Section::new("CPU and memory beside the relay", how);
    section.header(&["", "CPU µs/span", "rounds", "ratio", "memory", "peak", "p99 of the sender"]);
    let sink = Sink::start("throughput-sink")?;
    for gzip in [false, true] {
        compare(plan, &sink, gzip, &mut section)?;
    }
    Ok(section)
}

fn compare(plan: &Plan, sink: &Sink, gzip: bool, section: &mut Section) -> anyhow::Result<()> {
    let (mut relay, mut collector) = (Vec::new(), Vec::new());
    for _ in 0..plan.rounds {
        relay.push(measure(plan, sink, Subject::Relay, gzip)?);
        collector.push(measure(plan, sink, Subject::Collector, gzip)?);
    }
    let cpu = |rounds: &[Round]| median(rounds.iter().map(|round| round.cpu).collect());
    let ratio = cpu(&collector) / cpu(&relay);
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

fn measure(plan: &Plan, sink: &Sink, subject: Subject, gzip: bool) -> anyhow::Result<Round> {
    let (process, address) = subject.start(sink, gzip)?;
    let load = || Load::new("throughput", &address).rate(plan.rate).gzip(gzip);
    load().lasting(plan.warm_up).run()?;
    settle();
    sink.reset()?;
    let before = process.cpu()?;
    let outcome = load().lasting(plan.measured).run()?;
    let memory = process.memory()?;
    settle();
    let cpu = process.cpu()? - before;
    let missing = sink.missing(outcome.acknowledged_file(), Duration::from_secs(10))?;
    process.stop()?;
    Ok(Round {
        cpu: cpu.as_secs_f64() * 1e6 / outcome.acknowledged() as f64,
        memory: memory.now,
        peak: memory.peak,
        p99: outcome.measure("/latency_ms/p99"),
        kept_rate: outcome.measure("/rate") / plan.rate as f64,
        wrong: missing + sink.count("/duplicates")?,
    })
}

/// Lets the last batch leave, so that its cost is counted where it belongs.
fn settle() {
    sleep(Duration::from_millis(500));
}

impl Subject {
    fn start(self, sink: &Sink, gzip: bool) -> anyhow::Result<(Process, String)> {
        match self {
            Subject::Relay => {
                let mut command = Command::new(program("kubewake-relay"));
                command.args(["--listen", "127.0.0.1:0", "--upstream", &sink.address, "--join", JOIN]);
                let process = Process::start("relay", command.args(gzip.then_some("--gzip")))?;
                let address = process.address()?;
                Ok((process, address))
            }
            Subject::Collector => {
                let config = Config::new("throughput")?;
                config.write(&forward(&sink.address, gzip))?;
                Ok((config.start()?, config.grpc))
            }
        }
    }
}
