//! `cargo xtask order`: lists the functions that every request to a program executes, hottest first, for the
//! linker (`crates/link-order`). There is one list for the collector, and one for the relay, its baseline in
//! benchmarks.
//!
//! The program runs under callgrind, which counts how often each instruction is executed, in the configurations
//! with promised CPU times. Run it after a change of the hot path or of the compiler; a build only reads the
//! lists. Needs `valgrind`, and `nm` of binutils.

mod profile;
mod symbols;

use std::{collections::HashMap, fs, path::PathBuf};

use anyhow::{Context, ensure};

use self::symbols::{SymbolTable, symbol_pattern};
use super::{
    BenchProgram,
    callgrind::{CallgrindRun, ProfiledProgram},
    directory,
    workload::BenchWorkload,
};
use crate::workspace_root;

/// Enough requests to make the startup negligible.
const REQUESTS: u64 = 2000;
/// A function is listed if it is executed once in this number of requests.
const MIN_RUN_DIVISOR: u64 = 3;
/// Generic code with more instantiations of one name than this comes last, so that unused instantiations do not
/// lie between hot functions.
const MAX_FORMS_FIRST: usize = 10;

/// The programs that have a list.
pub(crate) const LISTED_PROGRAMS: [BenchProgram; 2] = [BenchProgram::Collector, BenchProgram::Relay];

pub(crate) fn run() -> anyhow::Result<()> {
    super::build_with_tools(&LISTED_PROGRAMS)?;
    fs::create_dir_all(directory())?;
    for part in LISTED_PROGRAMS {
        let listed = functions(part)?;
        ensure!(!listed.is_empty(), "no function of {part:?} ran in one of {MIN_RUN_DIVISOR} requests");
        let file = file(part);
        fs::write(&file, listed.join("\n") + "\n")?;
        println!("wrote {} names to {}; build again to use them", listed.len(), file.display());
    }
    Ok(())
}

/// How many patterns in the list of a program match its symbols, and how many there are.
pub(crate) fn count_found(part: BenchProgram) -> anyhow::Result<(usize, usize)> {
    let list = fs::read_to_string(file(part)).context("failed to read the list of functions")?;
    let symbols = SymbolTable::from_program(&part.program())?;
    Ok((list.lines().filter(|pattern| symbols.count_forms(pattern) > 0).count(), list.lines().count()))
}

/// Path of a program's list.
fn file(part: BenchProgram) -> PathBuf {
    workspace_root().join(if part == BenchProgram::Relay {
        "benches/relay/relay.order"
    } else {
        "crates/kubewake/collector.order"
    })
}

/// Patterns of the functions that a program executes often enough, hottest first.
fn functions(part: BenchProgram) -> anyhow::Result<Vec<String>> {
    let symbols = SymbolTable::from_program(&part.program())?;
    let mut runs: HashMap<&str, u64> = HashMap::new();
    for workload in workloads(part) {
        for (address, count) in profile(part, *workload)? {
            if let Some(function) = symbols.function_at(address) {
                let most = runs.entry(function).or_default();
                *most = count.max(*most);
            }
        }
    }
    Ok(ordered_patterns(runs, &symbols))
}

/// Executions of each instruction of a program, by its address in the file.
fn profile(part: BenchProgram, workload: BenchWorkload) -> anyhow::Result<HashMap<u64, u64>> {
    let name = format!("order-{part:?}-{workload:?}").to_lowercase();
    let path = part.program();
    let program =
        if part == BenchProgram::Relay { ProfiledProgram::Relay(&path) } else { ProfiledProgram::Collector(&path) };
    let run = CallgrindRun { name: &name, program, workload, requests: REQUESTS, options: &["--dump-instr=yes"] };
    let object = path.file_name().and_then(|name| name.to_str()).context("the path of the program has a file name")?;
    profile::parse(&run.profile()?, object)
}

fn workloads(part: BenchProgram) -> &'static [BenchWorkload] {
    match part {
        BenchProgram::Relay => &[BenchWorkload::Plain, BenchWorkload::Gzip],
        _ => &BenchWorkload::ALL,
    }
}

/// Patterns of functions that are executed often enough, hottest first.
fn ordered_patterns(runs: HashMap<&str, u64>, symbols: &SymbolTable) -> Vec<String> {
    let mut often: Vec<(&str, u64)> =
        runs.into_iter().filter(|(_, count)| count * MIN_RUN_DIVISOR >= REQUESTS).collect();
    often.sort_by(|(a, more), (b, less)| less.cmp(more).then_with(|| a.cmp(b)));
    let mut patterns: Vec<String> = Vec::new();
    for (function, _) in often {
        let pattern = symbol_pattern(function);
        if !patterns.contains(&pattern) {
            patterns.push(pattern);
        }
    }
    let (few, many): (Vec<_>, Vec<_>) =
        patterns.into_iter().partition(|name| symbols.count_forms(name) <= MAX_FORMS_FIRST);
    few.into_iter().chain(many).collect()
}
