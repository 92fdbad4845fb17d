//! `cargo xtask fuzz`: runs every parser of untrusted input under libFuzzer.
//!
//! No nightly compiler is needed: `fuzz/instrument` enables the instrumentation, which is a pass of LLVM. Only
//! the crates of this workspace are instrumented, so that all others come from the ordinary build.

mod catalog;

use std::{
    collections::VecDeque,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Mutex,
    time::Duration,
};

use anyhow::{Context, bail, ensure};

use crate::{
    steps::{cargo, command_output, run as run_command},
    target_dir, workspace_root,
};

/// How long continuous integration fuzzes, all targets together.
pub(crate) const CI_TIME: Duration = Duration::from_secs(180);
/// Continuous integration judges a change, not its luck: it tries the same inputs each time, as far as its time
/// reaches. Long runs look for what is new.
const CI_SEED: u32 = 1;
/// One input may take so long. A loaded machine is slow, and what is wrong takes minutes.
const TIMEOUT_SECONDS: u32 = 30;
/// The process may take so much memory. A single allocation is bounded by the counting allocator of
/// `fuzz/src/memory.rs`.
const RSS_LIMIT_MB: u32 = 1536;
/// Inputs are no longer than this. Seeds are shorter.
const MAX_INPUT_BYTES: u32 = 8 << 10;
/// Fuzzers at once, one for each core of a small machine.
const MAX_CONCURRENT_FUZZERS: usize = 2;

/// Arguments of `cargo xtask fuzz`.
#[derive(Debug, clap::Args)]
pub(crate) struct FuzzArgs {
    /// Targets to run [default: all]. A part (otlp, collector, apiserver, viewer, cluster) stands for all of
    /// its targets
    targets: Vec<String>,
    /// Total duration, over all targets
    #[arg(long, default_value_t = CI_TIME.as_secs())]
    seconds: u64,
    /// Seed of the fuzzers' random numbers; 0 selects another seed each time
    #[arg(long, default_value_t = CI_SEED)]
    seed: u32,
    /// Optimise the fuzzers: the build takes minutes longer, and they try about twice as many inputs per second
    #[arg(long)]
    optimize: bool,
    /// List the targets
    #[arg(long)]
    list: bool,
    /// Run the input of a finding again
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
}

/// A target and the fuzzer that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FuzzTarget {
    part: String,
    name: String,
}

/// An input that broke something.
struct FuzzFinding {
    target: FuzzTarget,
    input: Option<PathBuf>,
    log: PathBuf,
}

/// Builds the fuzzers and runs what is asked for.
pub(crate) fn run(args: &FuzzArgs) -> anyhow::Result<()> {
    let targets = select_targets(&args.targets)?;
    if args.list {
        targets.iter().for_each(|target| println!("{:<12} {}", target.part, target.name));
        return Ok(());
    }
    build(args.optimize)?;
    match (&args.input, targets.as_slice()) {
        (Some(input), [target]) => {
            let input = input.canonicalize().with_context(|| format!("failed to read {}", input.display()))?;
            run_command(fuzzer(target)?.arg(input))
        }
        (Some(_), _) => bail!("--input needs exactly one target: cargo xtask fuzz TARGET --input FILE"),
        (None, _) => fuzz(&targets, Duration::from_secs(args.seconds), args.seed),
    }
}

/// Builds the fuzzers, and fuzzes every target as long as continuous integration does.
pub(crate) fn run_in_ci() -> anyhow::Result<()> {
    build(false)?;
    fuzz(&select_targets(&[])?, CI_TIME, CI_SEED)
}

fn select_targets(names: &[String]) -> anyhow::Result<Vec<FuzzTarget>> {
    let all = catalog::read_targets(&workspace_root().join("fuzz/src"))?;
    for name in names {
        let known = all.iter().any(|target| target.name == *name || target.part == *name);
        ensure!(known, "unknown fuzz target or part {name}: `cargo xtask fuzz --list` lists all");
    }
    let is_chosen =
        |target: &FuzzTarget| names.is_empty() || names.contains(&target.name) || names.contains(&target.part);
    Ok(all.into_iter().filter(is_chosen).collect())
}

/// Examples of the whole workspace: with the features that tests have, so that what is not ours is compiled already.
fn build(optimize: bool) -> anyhow::Result<()> {
    let mut build = cargo();
    build.args(["build", "--workspace", "--features", "kubewake-fuzz/libfuzzer"]);
    for part in catalog::FUZZERS {
        build.args(["--example", &format!("fuzz-{part}")]);
    }
    // Cargo distinguishes builds by the path of the wrapper, so that each has its own.
    let wrapper = if optimize { "fuzz/instrument-optimized" } else { "fuzz/instrument" };
    run_command(build.env("RUSTC_WORKSPACE_WRAPPER", workspace_root().canonicalize()?.join(wrapper)))
}

fn fuzzer(target: &FuzzTarget) -> anyhow::Result<Command> {
    let program = crate::target_dir().join(format!("debug/examples/fuzz-{}", target.part));
    let mut fuzzer =
        Command::new(program.canonicalize().with_context(|| format!("failed to find {}", program.display()))?);
    fuzzer.env("KUBEWAKE_FUZZ_TARGET", &target.name).args([
        format!("-timeout={TIMEOUT_SECONDS}"),
        format!("-rss_limit_mb={RSS_LIMIT_MB}"),
        format!("-malloc_limit_mb={RSS_LIMIT_MB}"),
        format!("-max_len={MAX_INPUT_BYTES}"),
    ]);
    Ok(fuzzer)
}

/// Runs all targets, some at once, each for its share of the time. The first input that breaks something ends
/// its target only.
fn fuzz(targets: &[FuzzTarget], time: Duration, seed: u32) -> anyhow::Result<()> {
    let seconds = (time.as_secs() / targets.len().max(1) as u64).max(1);
    println!("fuzzing {} targets for {seconds} s each", targets.len());
    let waiting = Mutex::new(VecDeque::from(targets.to_vec()));
    let next = || waiting.lock().ok()?.pop_front();
    let work = || {
        let mut done = Vec::new();
        while let Some(target) = next() {
            done.push(fuzz_one(target, seconds, seed));
        }
        done
    };
    let results = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..MAX_CONCURRENT_FUZZERS).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect::<anyhow::Result<Vec<_>>>()
    })?;
    let findings: Vec<_> = results.into_iter().flatten().collect();
    findings.iter().for_each(report);
    ensure!(findings.is_empty(), "{} of {} fuzz targets have a finding", findings.len(), targets.len());
    Ok(())
}

/// Where a target's new inputs are kept from run to run, and what it found.
fn findings_dir(target: &FuzzTarget) -> PathBuf {
    target_folder().join(&target.name)
}

fn target_folder() -> PathBuf {
    target_dir().join("fuzz")
}

fn fuzz_one(target: FuzzTarget, seconds: u64, seed: u32) -> anyhow::Result<Option<FuzzFinding>> {
    let folder = findings_dir(&target);
    let inputs = folder.join("inputs");
    fs::create_dir_all(&inputs).with_context(|| format!("failed to make {}", inputs.display()))?;
    let artifact = folder.join("finding");
    let _ = fs::remove_file(&artifact);
    let seeds = workspace_root().join("fuzz/corpus").join(&target.name).canonicalize();
    let seeds = seeds.with_context(|| format!("{} has no seeds in fuzz/corpus", target.name))?;
    let log = folder.join("log");
    let file = fs::File::create(&log).with_context(|| format!("failed to write {}", log.display()))?;
    let mut command = fuzzer(&target)?;
    // The order of inputs must not depend on the duration of others.
    command
        .arg(format!("-seed={seed}"))
        .arg("-entropic=0")
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-exact_artifact_path={}", artifact.display()));
    command.args([&inputs, &seeds]).stdout(file.try_clone()?).stderr(file);
    let status = command.status().with_context(|| format!("failed to run {command:?}"))?;
    println!("{:<18} {}", target.name, last_figures(&log));
    if status.success() {
        return Ok(None);
    }
    let input = artifact.is_file().then_some(artifact);
    Ok(Some(FuzzFinding { target, input, log }))
}

/// libFuzzer's last line of figures: inputs, coverage, speed.
fn last_figures(log: &Path) -> String {
    let text = fs::read(log).map(|text| String::from_utf8_lossy(&text).into_owned()).unwrap_or_default();
    let figures = text.lines().rev().find(|line| line.starts_with('#') && !line.starts_with("##")).unwrap_or_default();
    figures.trim_start_matches('#').split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Says what was found, in a form that a log of continuous integration keeps, and how to keep it as a seed.
fn report(finding: &FuzzFinding) {
    let FuzzFinding { target, input, log } = finding;
    let name = &target.name;
    println!("== fuzz target {name} has a finding");
    let text = fs::read(log).map(|text| String::from_utf8_lossy(&text).into_owned()).unwrap_or_default();
    let lines: Vec<_> = text.lines().collect();
    let from = lines.iter().position(|line| line.contains("panicked at") || line.contains("ERROR: libFuzzer"));
    lines.iter().skip(from.unwrap_or(lines.len().saturating_sub(40))).take(60).for_each(|line| println!("   {line}"));
    let Some(input) = input else { return };
    let encoded = command_output("base64", &["-w0", &input.display().to_string()]).unwrap_or_default();
    println!("   the input in base64: {encoded}");
    println!("   run again: echo {encoded} | base64 -d > input && cargo xtask fuzz {name} --input input");
    println!("   fix the code, and keep the input as fuzz/corpus/{name}/<what it was>: `cargo xtask test` replays it");
}
