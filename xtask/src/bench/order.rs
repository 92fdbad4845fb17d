//! `cargo xtask order`: lists the functions that every request to a program runs, hottest first, for the linker (`crates/link-order`): those of the collector, and those of the relay beside
//! which it is measured.
//!
//! The program runs under callgrind, which counts how often each instruction is executed, in the configurations whose CPU time is promised. It is for whoever
//! changes the hot path or the compiler; a build only reads the lists. Needs `valgrind`, and `nm` of binutils.

mod names;
mod profile;

use std::{collections::HashMap, fs, path::PathBuf};

use anyhow::{Context, ensure};

use self::names::{Symbols, pattern};
use super::{
    Part,
    callgrind::{Program, Run},
    directory,
    workload::Workload,
};
use crate::root;

/// Enough that what starting takes does not count.
const REQUESTS: u64 = 2000;
/// A function is listed if it runs in one of so many requests.
const ONE_IN: u64 = 3;
/// Generic code that has the same name in more forms than this comes last, lest forms that nobody runs stand between what everybody runs.
const MANY_FORMS: usize = 10;

/// Those whose functions are listed.
pub(crate) const LISTED: [Part; 2] = [Part::Collector, Part::Relay];

/// Makes the lists again.
pub(crate) fn run() -> anyhow::Result<()> {
    super::build_with_tools(&LISTED)?;
    fs::create_dir_all(directory())?;
    for part in LISTED {
        let listed = functions(part)?;
        ensure!(!listed.is_empty(), "no function of {part:?} ran in one of {ONE_IN} requests");
        let file = file(part);
        fs::write(&file, listed.join("\n") + "\n")?;
        println!("{} names are in {}; build again to use them", listed.len(), file.display());
    }
    Ok(())
}

/// How many of the names that the list of a part has are in the program that is measured, and how many there are.
pub(crate) fn found(part: Part) -> anyhow::Result<(usize, usize)> {
    let list = fs::read_to_string(file(part)).context("cannot read the list of functions")?;
    let symbols = Symbols::of(&part.program())?;
    Ok((list.lines().filter(|pattern| symbols.forms(pattern) > 0).count(), list.lines().count()))
}

/// The list of a part.
fn file(part: Part) -> PathBuf {
    root().join(if part == Part::Relay { "benches/relay/relay.order" } else { "crates/kubewake/collector.order" })
}

/// The patterns of the functions of a part that run often enough, hottest first.
fn functions(part: Part) -> anyhow::Result<Vec<String>> {
    let symbols = Symbols::of(&part.program())?;
    let mut runs: HashMap<&str, u64> = HashMap::new();
    for workload in workloads(part) {
        for (address, count) in profile(part, *workload)? {
            if let Some(function) = symbols.at(address) {
                let most = runs.entry(function).or_default();
                *most = count.max(*most);
            }
        }
    }
    Ok(list(runs, &symbols))
}

/// How often each instruction of a part is executed, by its address in the file.
fn profile(part: Part, workload: Workload) -> anyhow::Result<HashMap<u64, u64>> {
    let name = format!("order-{part:?}-{workload:?}").to_lowercase();
    let path = part.program();
    let program = if part == Part::Relay { Program::Relay(&path) } else { Program::Collector(&path) };
    let run = Run { name: &name, program, workload, requests: REQUESTS, options: &["--dump-instr=yes"] };
    let object = path.file_name().and_then(|name| name.to_str()).context("a program has a name")?;
    profile::parse(&run.profile()?, object)
}

fn workloads(part: Part) -> &'static [Workload] {
    match part {
        Part::Relay => &[Workload::Plain, Workload::Gzip],
        _ => &Workload::ALL,
    }
}

/// The patterns of functions that run often enough, hottest first.
fn list(runs: HashMap<&str, u64>, symbols: &Symbols) -> Vec<String> {
    let mut often: Vec<(&str, u64)> = runs.into_iter().filter(|(_, count)| count * ONE_IN >= REQUESTS).collect();
    often.sort_by(|(a, more), (b, less)| less.cmp(more).then_with(|| a.cmp(b)));
    let mut patterns: Vec<String> = Vec::new();
    for (function, _) in often {
        let pattern = pattern(function);
        if !patterns.contains(&pattern) {
            patterns.push(pattern);
        }
    }
    let (few, many): (Vec<_>, Vec<_>) = patterns.into_iter().partition(|name| symbols.forms(name) <= MANY_FORMS);
    few.into_iter().chain(many).collect()
}
