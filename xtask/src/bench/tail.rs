//! `tail_sampling`: its cost for each received span, compared with the relay, and the memory of traces that
//! wait for a decision.

use std::time::Duration;

use super::{
    BenchPlan,
    config::{DocumentParts, forward_parts, pipeline_yaml},
    section::{BenchSection, format_mib},
    side_by_side::{COLUMNS, CollectorCandidate, MeasuredRound, MeasuredRounds, RELAY_JOIN_COUNT},
};

/// Limit of the CPU time as a ratio to the relay.
const MAX_RATIO: f64 = 2.0;
/// Limit of the peak memory.
const MAX_PEAK_BYTES: u64 = 200 << 20;
const SPANS_PER_SECOND: u64 = 40_000;
const DECISION_WAIT: Duration = Duration::from_secs(5);
const PERCENTAGE: f64 = 10.0;
/// Tolerance of the sampled share, for some ten thousand traces.
const TOLERANCE_PERCENT: f64 = 1.0;
/// Delay between the last span and the count of arrived spans.
const COUNT_DELAY: Duration = Duration::from_millis(500);

/// Measures policies on status, latency and a share of the rest.
pub(crate) fn run(plan: &BenchPlan) -> anyhow::Result<BenchSection> {
    // Decisions must keep pace with arrivals during the measurement: the warm-up is longer than the decision
    // wait, and as many spans wait at the end as at the beginning.
    let measured = plan.measured.max(2 * DECISION_WAIT);
    let plan = &BenchPlan { rate: SPANS_PER_SECOND, warm_up: plan.warm_up + DECISION_WAIT, measured, ..*plan };
    let how = format!(
        "The pipeline is `otlp → tail_sampling → batch → otlp` over gRPC. Its policies are status, latency and \
         {PERCENTAGE} % of the rest, with a `decision_wait` of {} s. The relay and the collector each receive {} \
         spans/s at the same time, with 10 spans a trace, 100 spans a request and 10 attributes a span. A round \
         measures {} s after {} s of warm-up, and there are {} rounds. The relay joins {RELAY_JOIN_COUNT} requests to \
         one and passes on all spans. CPU time is per span that arrives.",
        DECISION_WAIT.as_secs(),
        plan.rate,
        plan.measured.as_secs(),
        plan.warm_up.as_secs(),
        plan.rounds
    );
    let mut section = BenchSection::new("Tail sampling beside the relay", how);
    section.header(&COLUMNS);
    let contender = CollectorCandidate { name: "tail", gzip: false, keeps_all: false, parts: &parts };
    let rounds = MeasuredRounds::run(plan, &contender)?;
    rounds.add_rows("tail", &mut section);
    rounds.check_against_relay("tail", MAX_RATIO, &mut section);
    let peak = rounds.max_by(|round| round.peak);
    section.check(
        format!("memory at most {} at the peak", format_mib(MAX_PEAK_BYTES)),
        format_mib(peak),
        peak <= MAX_PEAK_BYTES,
    );
    check_kept_share(plan, &rounds, &mut section);
    section.check_none("spans doubled".to_owned(), rounds.all_rounds().map(|round| round.duplicates).sum());
    Ok(section)
}

/// Checks the sampled share of all spans but those of the last seconds, which are undecided when they are
/// counted.
fn check_kept_share(plan: &BenchPlan, rounds: &MeasuredRounds, section: &mut BenchSection) {
    let sum = |of: fn(&MeasuredRound) -> u64| rounds.collector.iter().map(of).sum::<u64>() as f64;
    let decided =
        sum(|round| round.acknowledged) * (1.0 - (DECISION_WAIT - COUNT_DELAY).div_duration_f64(plan.measured));
    let arrived = sum(|round| round.acknowledged) - sum(|round| round.missing);
    let kept = arrived / decided * 100.0;
    let holds = (kept - PERCENTAGE).abs() <= TOLERANCE_PERCENT;
    section.check(format!("{PERCENTAGE} % are kept"), format!("{kept:.2} %"), holds);
}

fn parts(backend: &str) -> DocumentParts {
    let policies = format!(
        "      - {{name: errors, type: status_code, status_code: {{status_codes: [ERROR]}}}}\n      \
         - {{name: slow, type: latency, latency: {{threshold_ms: 500}}}}\n      \
         - {{name: some, type: probabilistic, probabilistic: {{sampling_percentage: {PERCENTAGE}}}}}\n"
    );
    DocumentParts {
        processors: format!(
            "  tail_sampling:\n    decision_wait: {}s\n    policies:\n{policies}  batch:\n",
            DECISION_WAIT.as_secs()
        ),
        pipelines: pipeline_yaml("traces", "tail_sampling, batch", "otlp"),
        ..forward_parts(backend, false)
    }
}
