//! CPU time for each span, and memory, compared with the relay at the same fixed rate.

use super::{
    BenchPlan,
    config::forward_parts,
    order,
    section::{BenchSection, format_mib},
    side_by_side::{COLUMNS, CollectorCandidate, MeasuredRounds, RELAY_JOIN_COUNT},
};

/// Limit of the CPU time as a ratio to the relay.
const MAX_RATIO: f64 = 1.1;
/// Limit of the memory under load.
const MAX_MEMORY_BYTES: u64 = 45 << 20;
/// A list of which a smaller share is found in the program should be regenerated: `cargo xtask order`.
const MIN_FOUND_SHARE: f64 = 0.9;

/// Measures relay and collector side by side in several rounds.
pub(crate) fn run(plan: &BenchPlan) -> anyhow::Result<BenchSection> {
    let how = format!(
        "The pipeline is `otlp → batch → otlp` over gRPC. The relay and the collector each receive {} spans/s at the \
         same time, with 100 spans a request and 10 attributes a span. A round measures {} s after {} s of warm-up. \
         The median of the ratios of {} rounds is shown. The relay joins {RELAY_JOIN_COUNT} requests to one.",
        plan.rate,
        plan.measured.as_secs(),
        plan.warm_up.as_secs(),
        plan.rounds
    );
    let mut section = BenchSection::new("CPU and memory beside the relay", how);
    section.header(&COLUMNS);
    for gzip in [false, true] {
        compare(plan, gzip, &mut section)?;
    }
    for part in order::LISTED_PROGRAMS {
        let (found, all) = order::count_found(part)?;
        let enough = found as f64 >= MIN_FOUND_SHARE * all as f64;
        let what = format!("functions of the {part:?} that the linker puts side by side are there").to_lowercase();
        section.check(what, format!("{found} of {all}"), enough);
    }
    Ok(section)
}

fn compare(plan: &BenchPlan, gzip: bool, section: &mut BenchSection) -> anyhow::Result<()> {
    let name = if gzip { "gzip" } else { "uncompressed" };
    let parts = |backend: &str| forward_parts(backend, gzip);
    let rounds =
        MeasuredRounds::run(plan, &CollectorCandidate { name: "throughput", gzip, keeps_all: true, parts: &parts })?;
    rounds.add_rows(name, section);
    rounds.check_against_relay(name, MAX_RATIO, section);
    let memory = rounds.max_by(|round| round.memory);
    section.check(
        format!("{name}: memory at most {}", format_mib(MAX_MEMORY_BYTES)),
        format_mib(memory),
        memory <= MAX_MEMORY_BYTES,
    );
    let wrong = rounds.all_rounds().map(|round| round.missing + round.duplicates).sum();
    section.check_none(format!("{name}: spans lost or doubled"), wrong);
    Ok(())
}
