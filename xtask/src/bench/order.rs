//! `cargo xtask order`: makes `crates/kubewake/collector.order`, the functions that every request to a collector runs, hottest first.
//!
//! The collector built alone runs under callgrind, which counts how often each instruction is executed, in the configurations whose CPU time is promised. It is for whoever
//! changes the hot path or the compiler; a build only reads the list. Needs `valgrind`, and `nm` of binutils.

mod names;
mod profile;

use std::{collections::HashMap, fs, path::PathBuf, process::Command};

use anyhow::{Context, ensure};

use self::names::{Symbols, pattern};
use super::{
    collector,
    config::{Config, Parts, forward},
    directory,
    load::Load,
    process::Process,
    sampling,
    sink::Sink,
};
use crate::root;

/// Enough that what starting takes does not count.
const REQUESTS: u64 = 2000;
/// A function is listed if it runs in one of so many requests.
const ONE_IN: u64 = 3;
/// Generic code that has the same name in more forms than this comes last, lest forms that nobody runs stand between what everybody runs.
const MANY_FORMS: usize = 10;

/// Makes the list again.
pub(crate) fn run() -> anyhow::Result<()> {
    super::build(&["collector"])?;
    fs::create_dir_all(directory())?;
    let symbols = Symbols::of(&collector())?;
    let mut runs: HashMap<&str, u64> = HashMap::new();
    for (name, parts) in configurations() {
        for (address, count) in profile(name, parts)? {
            if let Some(function) = symbols.at(address) {
                let most = runs.entry(function).or_default();
                *most = count.max(*most);
            }
        }
    }
    let listed = list(runs, &symbols);
    ensure!(!listed.is_empty(), "no function ran in one of {ONE_IN} requests");
    fs::write(file(), listed.join("\n") + "\n")?;
    println!("{} names are in {}; build again to use them", listed.len(), file().display());
    Ok(())
}

/// How many of the names that the list has are in the collector that is measured, and how many there are.
pub(crate) fn found() -> anyhow::Result<(usize, usize)> {
    let list = fs::read_to_string(file()).context("cannot read the list of functions")?;
    let symbols = Symbols::of(&collector())?;
    Ok((list.lines().filter(|pattern| symbols.forms(pattern) > 0).count(), list.lines().count()))
}

fn file() -> PathBuf {
    root().join("crates/kubewake/collector.order")
}

type MakeParts = fn(&str) -> Parts;

fn configurations() -> [(&'static str, MakeParts); 3] {
    [
        ("order-plain", |backend| forward(backend, false)),
        ("order-gzip", |backend| forward(backend, true)),
        ("order-sampling", |backend| sampling::parts(backend, "hash_seed")),
    ]
}

/// How often each instruction of the collector is executed, by its address in the file.
fn profile(name: &str, parts: MakeParts) -> anyhow::Result<HashMap<u64, u64>> {
    let sink = Sink::start("order-sink")?;
    let config = Config::new(name)?;
    config.write(&parts(&sink.address))?;
    let counts = directory().join(format!("{name}.callgrind"));
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--dump-instr=yes"]).arg(format!("--callgrind-out-file={}", counts.display()));
    command.arg(collector()).arg("collector").arg("--config").arg(&config.path);
    let process = Process::start(name, &mut command)?;
    let gzip = name == "order-gzip";
    let load = Load::new(name, &config.grpc).args(&["--requests", &REQUESTS.to_string(), "--timeout", "60"]);
    let sent = load.rate(20_000).gzip(gzip).run()?;
    ensure!(sent.acknowledged() > 0, "the collector under valgrind took nothing: {}", sent.codes());
    process.stop()?;
    profile::parse(&fs::read_to_string(counts)?, "kubewake")
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
