//! `probabilistic_sampler`: its cost for each received span, compared with the relay, which forwards all spans.

use super::{
    BenchPlan,
    config::{DocumentParts, forward_parts, pipeline_yaml},
    section::BenchSection,
    side_by_side::{COLUMNS, CollectorCandidate, MeasuredRounds, RELAY_JOIN_COUNT},
};

/// Limit of the CPU time as a ratio to the relay: nine tenths of the spans are not sent.
const MAX_RATIO: f64 = 1.0;
const PERCENTAGE: f64 = 10.0;
/// Tolerance of the sampled share: 14 bits of a hash, for some hundred thousand traces.
const TOLERANCE_PERCENT: f64 = 1.0;

pub(crate) fn run(plan: &BenchPlan) -> anyhow::Result<BenchSection> {
    let how = format!(
        "The pipeline is `otlp → probabilistic_sampler ({PERCENTAGE} %) → batch → otlp` over gRPC. The relay and the \
         collector each receive {} spans/s at the same time, with 100 spans a request and 10 attributes a span. A \
         round measures {} s after {} s of warm-up, and there are {} rounds. The relay joins {RELAY_JOIN_COUNT} \
         requests to one and passes on all spans. CPU time is per span that arrives.",
        plan.rate,
        plan.measured.as_secs(),
        plan.warm_up.as_secs(),
        plan.rounds
    );
    let mut section = BenchSection::new("Probabilistic sampling beside the relay", how);
    section.header(&COLUMNS);
    for mode in ["hash_seed", "proportional"] {
        compare(plan, mode, &mut section)?;
    }
    Ok(section)
}

/// `otlp → probabilistic_sampler → batch → otlp` over gRPC.
pub(crate) fn sampling_parts(backend: &str, mode: &str) -> DocumentParts {
    let sampler = format!("  probabilistic_sampler:\n    sampling_percentage: {PERCENTAGE}\n    mode: {mode}\n");
    let plain = forward_parts(backend, false);
    DocumentParts {
        processors: sampler + &plain.processors,
        pipelines: pipeline_yaml("traces", "probabilistic_sampler, batch", "otlp"),
        ..plain
    }
}

fn compare(plan: &BenchPlan, mode: &str, section: &mut BenchSection) -> anyhow::Result<()> {
    let parts = |backend: &str| sampling_parts(backend, mode);
    let rounds = MeasuredRounds::run(
        plan,
        &CollectorCandidate { name: "sampling", gzip: false, keeps_all: false, parts: &parts },
    )?;
    rounds.add_rows(mode, section);
    rounds.check_against_relay(mode, MAX_RATIO, section);
    let sum = |of: fn(&super::side_by_side::MeasuredRound) -> u64| rounds.collector.iter().map(of).sum::<u64>() as f64;
    let kept = 100.0 - sum(|round| round.missing) / sum(|round| round.acknowledged) * 100.0;
    let what = format!("{mode}: {PERCENTAGE} % are kept");
    section.check(what, format!("{kept:.2} %"), (kept - PERCENTAGE).abs() <= TOLERANCE_PERCENT);
    section.check_none(format!("{mode}: spans doubled"), rounds.all_rounds().map(|round| round.duplicates).sum());
    section.check_none(
        format!("{mode}: spans that the relay lost"),
        rounds.baseline.iter().map(|round| round.missing).sum(),
    );
    Ok(())
}
