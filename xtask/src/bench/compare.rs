//! `cargo xtask bench --before PROGRAM`: the collector of another build beside this one.
//!
//! CPU time is compared in rounds in which both run at the same time. Instructions are counted by callgrind,
//! which does not depend on other load of the machine: the same requests once and three times, whose difference
//! is the cost of a request without the startup. Needs `valgrind`.

use std::path::Path;

use anyhow::{Context, ensure};

use super::{
    BenchPlan, BenchProgram,
    callgrind::{CallgrindRun, ProfiledProgram},
    section::BenchSection,
    side_by_side::{Baseline, COLUMNS, CollectorCandidate, MeasuredRounds},
    workload::BenchWorkload,
};

/// Limit of the ratio of CPU times. A smaller regression is lost in the noise of a machine.
const MAX_CPU_RATIO: f64 = 1.03;
/// Limit of the ratio of instructions per request, which have little noise.
const MAX_INSTRUCTION_RATIO: f64 = 1.02;
/// Enough requests to include rare work (timers, growth of tables) in realistic proportion.
const REQUESTS: u64 = 1000;

/// Compares CPU time and instructions in each workload.
pub(super) fn run(before: &Path, plan: &BenchPlan) -> anyhow::Result<BenchSection> {
    ensure!(before.is_file(), "no program at {}: write --before PROGRAM", before.display());
    let how = format!(
        "The collectors of another build and of this one each receive {} spans/s at the same time, with 100 spans a \
         request and 10 attributes a span. A round measures {} s after {} s of warm-up. The median of the ratios of {} \
         rounds is shown. callgrind counts the instructions of {REQUESTS} requests.",
        plan.rate,
        plan.measured.as_secs(),
        plan.warm_up.as_secs(),
        plan.rounds
    );
    let mut section = BenchSection::new("This build beside another", how);
    section.header(&COLUMNS);
    // A comparison takes minutes, and each of its results is of use by itself.
    let mut printed = 0;
    for workload in BenchWorkload::ALL {
        compare_cpu(before, workload, plan, &mut section)?;
        printed = section.print_checks_after(printed);
    }
    for workload in BenchWorkload::ALL {
        compare_instructions(before, workload, &mut section)?;
        printed = section.print_checks_after(printed);
    }
    Ok(section)
}

fn compare_cpu(
    before: &Path,
    workload: BenchWorkload,
    plan: &BenchPlan,
    section: &mut BenchSection,
) -> anyhow::Result<()> {
    let parts = |backend: &str| workload.parts(backend);
    let contender = CollectorCandidate {
        name: "compare",
        gzip: workload.is_gzip(),
        keeps_all: workload.keeps_all(),
        parts: &parts,
    };
    let baseline = Baseline::Collector(before);
    let rounds = MeasuredRounds::run_against(baseline, plan, &contender)?;
    rounds.add_rows_for(baseline, workload.name(), section);
    rounds.check_against(baseline, workload.name(), MAX_CPU_RATIO, section);
    Ok(())
}

fn compare_instructions(before: &Path, workload: BenchWorkload, section: &mut BenchSection) -> anyhow::Result<()> {
    let old = instructions_per_request(before, workload)?;
    let new = instructions_per_request(&BenchProgram::Collector.program(), workload)?;
    let ratio = new / old;
    let what = format!("{}: instructions at most {MAX_INSTRUCTION_RATIO} × those of the build before", workload.name());
    let value = format!("{ratio:.3} × ({new:.0} a request, {old:.0} before)");
    section.check(what, value, ratio <= MAX_INSTRUCTION_RATIO);
    Ok(())
}

/// Instructions of a request, without those of the startup and the shutdown.
fn instructions_per_request(program: &Path, workload: BenchWorkload) -> anyhow::Result<f64> {
    let few = instructions(program, workload, REQUESTS)?;
    let many = instructions(program, workload, 3 * REQUESTS)?;
    Ok(many.saturating_sub(few) as f64 / (2 * REQUESTS) as f64)
}

/// All instructions that a collector executes until it exits.
fn instructions(program: &Path, workload: BenchWorkload, requests: u64) -> anyhow::Result<u64> {
    let program = ProfiledProgram::Collector(program);
    let counts = CallgrindRun { name: "compare-instructions", program, workload, requests, options: &[] }.profile()?;
    parse_total(&counts).context("callgrind wrote no totals")
}

/// The sum over all functions in callgrind's output.
fn parse_total(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("totals:"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn total_of_callgrind_is_parsed() {
        assert_eq!(parse_total("version: 1\nevents: Ir\nfn=(1)\n5 7\ntotals: 1234\n"), Some(1234));
        assert_eq!(parse_total("version: 1\n"), None);
    }
}
