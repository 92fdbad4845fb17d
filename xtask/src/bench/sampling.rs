//! `probabilistic_sampler`: what it costs for each span that arrives, beside the relay, which sends them all on.

use super::{
    Plan,
    beside::{COLUMNS, Contender, JOIN, Rounds},
    check::Section,
    config::{Parts, forward, pipeline},
};

/// At most this much CPU beside the relay: nine tenths are never sent.
const MAX_RATIO: f64 = 1.0;
/// The share that is kept.
const PERCENTAGE: f64 = 10.0;
/// How far from it the share may be: 14 bits of a hash, of some hundred thousand traces.
const TOLERANCE: f64 = 1.0;

/// Each mode that decides in a way of its own.
pub(crate) fn run(plan: &Plan) -> anyhow::Result<Section> {
    let how = format!(
        "`otlp → probabilistic_sampler ({PERCENTAGE} %) → batch → otlp` over gRPC, {} spans/s to the relay and as many to the \
         collector at the same time, 100 spans a request, 10 attributes a span, {} s measured after {} s of warm-up, {} \
         rounds. The relay joins {JOIN} requests to one and sends all on. CPU is for each span that arrives.",
        plan.rate,
        plan.measured.as_secs(),
        plan.warm_up.as_secs(),
        plan.rounds
    );
    let mut section = Section::new("Probabilistic sampling beside the relay", how);
    section.header(&COLUMNS);
    for mode in ["hash_seed", "proportional"] {
        compare(plan, mode, &mut section)?;
    }
    Ok(section)
}

/// `otlp → probabilistic_sampler → batch → otlp` over gRPC.
pub(crate) fn parts(backend: &str, mode: &str) -> Parts {
    let sampler = format!("  probabilistic_sampler:\n    sampling_percentage: {PERCENTAGE}\n    mode: {mode}\n");
    let plain = forward(backend, false);
    Parts {
        processors: sampler + &plain.processors,
        pipelines: pipeline("traces", "probabilistic_sampler, batch", "otlp"),
        ..plain
    }
}

fn compare(plan: &Plan, mode: &str, section: &mut Section) -> anyhow::Result<()> {
    let parts = |backend: &str| parts(backend, mode);
    let rounds = Rounds::run(plan, &Contender { name: "sampling", gzip: false, keeps_all: false, parts: &parts })?;
    rounds.rows(mode, section);
    rounds.check(mode, MAX_RATIO, section);
    let sum = |of: fn(&super::beside::Round) -> u64| rounds.collector.iter().map(of).sum::<u64>() as f64;
    let kept = 100.0 - sum(|round| round.missing) / sum(|round| round.acknowledged) * 100.0;
    let what = format!("{mode}: {PERCENTAGE} % are kept");
    section.check(what, format!("{kept:.2} %"), (kept - PERCENTAGE).abs() <= TOLERANCE);
    section.check_none(format!("{mode}: spans doubled"), rounds.all().map(|round| round.doubled).sum());
    section.check_none(
        format!("{mode}: spans that the relay lost"),
        rounds.baseline.iter().map(|round| round.missing).sum(),
    );
    Ok(())
}
