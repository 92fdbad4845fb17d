//! CPU for each span, and memory, beside the relay at the same fixed rate.

use super::{
    Plan,
    beside::{COLUMNS, Contender, JOIN, Rounds},
    check::{Section, mib},
    config::forward,
    order,
};

/// At most this much CPU beside the relay.
const MAX_RATIO: f64 = 1.1;
/// At most this much memory under load.
const MAX_MEMORY: u64 = 45 << 20;
/// A list that names fewer functions of the program than this is worth making again: `cargo xtask order`.
const MIN_FOUND: f64 = 0.9;

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
    section.header(&COLUMNS);
    for gzip in [false, true] {
        compare(plan, gzip, &mut section)?;
    }
    for part in order::LISTED {
        let (found, all) = order::found(part)?;
        let enough = found as f64 >= MIN_FOUND * all as f64;
        let what = format!("functions of the {part:?} that the linker puts side by side are there").to_lowercase();
        section.check(what, format!("{found} of {all}"), enough);
    }
    Ok(section)
}

fn compare(plan: &Plan, gzip: bool, section: &mut Section) -> anyhow::Result<()> {
    let name = if gzip { "gzip" } else { "uncompressed" };
    let parts = |backend: &str| forward(backend, gzip);
    let rounds = Rounds::run(plan, &Contender { name: "throughput", gzip, keeps_all: true, parts: &parts })?;
    rounds.rows(name, section);
    rounds.check(name, MAX_RATIO, section);
    let memory = rounds.most(|round| round.memory);
    section.check(format!("{name}: memory at most {}", mib(MAX_MEMORY)), mib(memory), memory <= MAX_MEMORY);
    let wrong = rounds.all().map(|round| round.missing + round.doubled).sum();
    section.check_none(format!("{name}: spans lost or doubled"), wrong);
    Ok(())
}
