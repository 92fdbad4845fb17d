//! `tail_sampling`: what it costs for each span that arrives, beside the relay, and how much memory whole traces take while they wait.

use std::time::Duration;

use super::{
    Plan,
    beside::{COLUMNS, Contender, JOIN, Round, Rounds},
    check::{Section, mib},
    config::{Parts, forward, pipeline},
};

/// At most this much CPU beside the relay.
const MAX_RATIO: f64 = 2.0;
/// At most this much memory at the peak.
const MAX_PEAK: u64 = 200 << 20;
/// Spans a second.
const RATE: u64 = 40_000;
/// How long traces wait.
const WAIT: Duration = Duration::from_secs(5);
/// The share that is kept.
const PERCENTAGE: f64 = 10.0;
/// How far from it the share may be, of some ten thousand traces.
const TOLERANCE: f64 = 1.0;
/// So much time passes after the last span until it is counted what arrived.
const BEFORE_COUNT: Duration = Duration::from_millis(500);

/// Status, latency and a share of the rest.
pub(crate) fn run(plan: &Plan) -> anyhow::Result<Section> {
    // Whoever is measured decides on as much as arrives: the warm-up is longer than the wait, and what waits at the end was
    // there at the beginning, too.
    let measured = plan.measured.max(2 * WAIT);
    let plan = &Plan { rate: RATE, warm_up: plan.warm_up + WAIT, measured, ..*plan };
    let how = format!(
        "`otlp → tail_sampling → batch → otlp` over gRPC: status, latency and {PERCENTAGE} % of the rest, `decision_wait` {} s. \
         {} spans/s to the relay and as many to the collector at the same time, 10 spans a trace, 100 spans a request, 10 \
         attributes a span, {} s measured after {} s of warm-up, {} rounds. The relay joins {JOIN} requests to one and sends \
         all on. CPU is for each span that arrives.",
        WAIT.as_secs(),
        plan.rate,
        plan.measured.as_secs(),
        plan.warm_up.as_secs(),
        plan.rounds
    );
    let mut section = Section::new("Tail sampling beside the relay", how);
    section.header(&COLUMNS);
    let contender = Contender { name: "tail", gzip: false, keeps_all: false, parts: &parts };
    let rounds = Rounds::run(plan, &contender)?;
    rounds.rows("tail", &mut section);
    rounds.check("tail", MAX_RATIO, &mut section);
    let peak = rounds.most(|round| round.peak);
    section.check(format!("memory at most {} at the peak", mib(MAX_PEAK)), mib(peak), peak <= MAX_PEAK);
    kept(plan, &rounds, &mut section);
    section.check_none("spans doubled".to_owned(), rounds.all().map(|round| round.doubled).sum());
    Ok(section)
}

/// Of all that arrived but for the last seconds, which still wait when it is counted, that share was kept.
fn kept(plan: &Plan, rounds: &Rounds, section: &mut Section) {
    let sum = |of: fn(&Round) -> u64| rounds.collector.iter().map(of).sum::<u64>() as f64;
    let decided = sum(|round| round.acknowledged) * (1.0 - (WAIT - BEFORE_COUNT).div_duration_f64(plan.measured));
    let arrived = sum(|round| round.acknowledged) - sum(|round| round.missing);
    let kept = arrived / decided * 100.0;
    let holds = (kept - PERCENTAGE).abs() <= TOLERANCE;
    section.check(format!("{PERCENTAGE} % are kept"), format!("{kept:.2} %"), holds);
}

fn parts(backend: &str) -> Parts {
    let policies = format!(
        "      - {{name: errors, type: status_code, status_code: {{status_codes: [ERROR]}}}}\n      \
         - {{name: slow, type: latency, latency: {{threshold_ms: 500}}}}\n      \
         - {{name: some, type: probabilistic, probabilistic: {{sampling_percentage: {PERCENTAGE}}}}}\n"
    );
    Parts {
        processors: format!(
            "  tail_sampling:\n    decision_wait: {}s\n    policies:\n{policies}  batch:\n",
            WAIT.as_secs()
        ),
        pipelines: pipeline("traces", "tail_sampling, batch", "otlp"),
        ..forward(backend, false)
    }
}
