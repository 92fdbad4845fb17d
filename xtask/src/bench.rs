//! `cargo xtask bench`: the collector compared with a relay that decodes nothing, and under stress; the API
//! server; the embedded cluster; a traced operator; the telemetry operator; the viewer; a log agent.
//!
//! Everything runs on this machine in one go, and only the process under test is measured. Promised limits are
//! checked; one that does not hold makes the command fail, after all results are written.

mod apiserver;
mod callgrind;
mod cluster;
mod cluster_stub;
mod compare;
mod config;
mod document;
mod enrich;
mod http;
mod idle;
mod image;
mod isolation;
mod load;
mod logs;
mod machine;
mod operator;
pub(crate) mod order;
mod overload;
mod process;
mod reload;
mod sampling;
mod section;
mod shaping;
mod side_by_side;
mod sink;
mod tail;
mod throughput;
mod tier;
mod trail;
mod viewer;
mod workload;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::ensure;
use clap::ValueEnum;

use self::section::BenchSection;
use crate::{
    steps::{TimedSteps, cargo, run as run_command},
    target_dir,
};

/// Arguments of `cargo xtask bench`.
#[derive(Debug, clap::Args)]
pub(crate) struct BenchArgs {
    /// Benchmarks to run [default: all]
    #[arg(value_enum)]
    scenarios: Vec<Scenario>,
    /// Short runs to test the benchmarks; docs/benchmarks.md stays as it is
    #[arg(long)]
    quick: bool,
    /// Spans per second
    #[arg(long, value_name = "N", default_value_t = 80_000)]
    rate: u64,
    /// Number of rounds of relay and collector side by side
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: usize,
    /// Only compare the collector with that of this program, which was built alone with profile `image`
    #[arg(long, value_name = "PROGRAM", conflicts_with = "scenarios")]
    before: Option<PathBuf>,
    /// Use existing binaries
    #[arg(long)]
    no_build: bool,
    /// Only print the results, and leave docs/benchmarks.md as it is
    #[arg(long)]
    no_write: bool,
}

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scenario {
    /// CPU for each span and memory, beside the relay
    Throughput,
    /// CPU for each span of which one in ten is kept, beside the relay
    Sampling,
    /// Whole traces that wait: CPU for each span and memory, beside the relay
    Tail,
    /// CPU for each span that is matched and changed, beside the relay
    Shaping,
    /// Memory without load
    Idle,
    /// The backend hangs and senders go flat out
    Overload,
    /// One of two backends hangs
    Isolation,
    /// The configuration changes under load
    Reload,
    /// `k8s_attributes` and a filter, beside the relay
    Enrich,
    /// An agent that reads the logs of containers, beside a bare reader
    Logs,
    /// A sticky tier of three peers, one of which is killed while another one comes
    Tier,
    /// The API server: start, memory, CPU for each request, watchers
    Apiserver,
    /// The embedded cluster: time to ready, memory, what a Service costs
    Cluster,
    /// A traced reconcile that records nothing
    Trail,
    /// The operator with two hundred pipelines: a resync, and memory
    Operator,
    /// The viewer with a hundred thousand spans: what questions take, and memory
    Viewer,
    /// All images: how large they are
    Image,
}

/// How long and how hard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BenchPlan {
    pub rate: u64,
    pub rounds: usize,
    /// Sent and not measured, so that caches and pools are as in daily life.
    pub warm_up: Duration,
    pub measured: Duration,
    pub overload: Duration,
    pub isolation: Duration,
    pub reloads: u32,
    pub logs: logs::LogWorkload,
    pub api: apiserver::ApiServerWorkload,
    pub cluster: cluster::ClusterWorkload,
}

impl BenchPlan {
    fn new(args: &BenchArgs) -> Self {
        let seconds = |full, quick| Duration::from_secs(if args.quick { quick } else { full });
        Self {
            rate: args.rate,
            rounds: if args.quick { 1 } else { args.rounds },
            warm_up: seconds(3, 1),
            measured: seconds(20, 5),
            overload: seconds(60, 10),
            isolation: seconds(30, 8),
            reloads: if args.quick { 40 } else { 200 },
            logs: logs::LogWorkload::new(args.quick),
            api: apiserver::ApiServerWorkload::new(args.quick),
            cluster: cluster::ClusterWorkload::new(args.quick),
        }
    }
}

/// Measures, prints, writes, and fails if a promise does not hold.
pub(crate) fn run(args: &BenchArgs) -> anyhow::Result<()> {
    std::fs::create_dir_all(directory())?;
    let plan = BenchPlan::new(args);
    if let Some(before) = &args.before {
        return compare_builds(before, args, &plan);
    }
    if !args.no_build {
        build(&[BenchProgram::Relay, BenchProgram::Collector, BenchProgram::Operator])?;
    }
    let mut steps = TimedSteps::default();
    let mut broken = 0;
    for scenario in Scenario::value_variants() {
        if !args.scenarios.is_empty() && !args.scenarios.contains(scenario) {
            continue;
        }
        let section = steps.step(&format!("{scenario:?}").to_lowercase(), || scenario.run(&plan))?;
        println!("\n{section}");
        broken += section.broken_promises();
        if !args.quick && !args.no_write {
            document::write(*scenario, &section)?;
        }
    }
    ensure!(broken == 0, "{broken} promises are broken");
    Ok(())
}

/// Measures the collector beside that of another build. What is compared is of one moment: nothing is written.
fn compare_builds(before: &Path, args: &BenchArgs, plan: &BenchPlan) -> anyhow::Result<()> {
    if !args.no_build {
        build_with_tools(&[BenchProgram::Collector])?;
    }
    let section = compare::run(before, plan)?;
    println!("\n{section}");
    ensure!(section.broken_promises() == 0, "{} promises are broken", section.broken_promises());
    Ok(())
}

/// What is measured, built alone and as images are: nothing of the rest of the workspace is in it, and all of
/// it is optimised together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BenchProgram {
    /// Beside which collectors are measured.
    Relay,
    Collector,
    Operator,
}

impl BenchProgram {
    /// Where it is built.
    fn folder(self) -> PathBuf {
        target_dir().join(format!("{self:?}-alone").to_lowercase())
    }

    fn program(self) -> PathBuf {
        let name = if self == Self::Relay { "kubewake-relay" } else { "kubewake" };
        self.folder().join("image").join(name)
    }

    fn build(self) -> anyhow::Result<()> {
        let package: &[&str] = match self {
            Self::Relay => &["-p", "kubewake-relay"],
            Self::Collector => &["-p", "kubewake", "--no-default-features", "--features", "collector"],
            Self::Operator => &["-p", "kubewake", "--no-default-features", "--features", "operator"],
        };
        let mut command = cargo();
        command.args(["build", "--profile", "image", "--locked"]).args(package);
        run_command(command.arg("--target-dir").arg(self.folder()))
    }
}

/// All programs that measure, and these parts.
fn build(parts: &[BenchProgram]) -> anyhow::Result<()> {
    build_packages(&["-p", "kubewake", "-p", "kubewake-apiclient"], parts)
}

/// `load` and `sink`, and these parts. The rest of `kubewake` takes several times as long to build.
fn build_with_tools(parts: &[BenchProgram]) -> anyhow::Result<()> {
    build_packages(&["-p", "kubewake", "--no-default-features", "--features", "tools"], parts)
}

fn build_packages(packages: &[&str], parts: &[BenchProgram]) -> anyhow::Result<()> {
    let mut steps = TimedSteps::default();
    steps.step("build", || run_command(cargo().args(["build", "--release", "--locked"]).args(packages)))?;
    for part in parts {
        steps.step(&format!("build the {part:?} alone").to_lowercase(), || part.build())?;
    }
    Ok(())
}

impl Scenario {
    fn run(self, plan: &BenchPlan) -> anyhow::Result<BenchSection> {
        match self {
            Scenario::Throughput => throughput::run(plan),
            Scenario::Sampling => sampling::run(plan),
            Scenario::Tail => tail::run(plan),
            Scenario::Shaping => shaping::run(plan),
            Scenario::Idle => idle::run(plan),
            Scenario::Overload => overload::run(plan),
            Scenario::Isolation => isolation::run(plan),
            Scenario::Reload => reload::run(plan),
            Scenario::Enrich => enrich::run(plan),
            Scenario::Logs => logs::run(plan),
            Scenario::Tier => tier::run(plan),
            Scenario::Apiserver => apiserver::run(plan),
            Scenario::Cluster => cluster::run(plan),
            Scenario::Trail => trail::run(plan),
            Scenario::Operator => operator::run(plan),
            Scenario::Viewer => viewer::run(plan),
            Scenario::Image => image::run(plan),
        }
    }
}

/// Where configurations, logs and lists of ids go.
fn directory() -> PathBuf {
    target_dir().join("bench")
}

/// A program that was built for the bench.
fn program(name: &str) -> PathBuf {
    target_dir().join("release").join(name)
}
