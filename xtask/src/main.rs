//! The project's own tasks: `cargo xtask test`, `bench`, `fuzz`, `tidy`, `ci`, `crds`, `features`, `image`,
//! `order`, `recipe`, `schemas`, `protobuf`.

mod bench;
mod ci;
mod crds;
mod features;
mod fuzz;
mod image;
mod protobuf;
mod recipe;
mod schemas;
mod steps;
mod test;
mod tidy;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// Development tasks of the project
#[derive(Debug, Parser)]
#[command(name = "cargo xtask")]
struct XtaskCli {
    #[command(subcommand)]
    task: XtaskCommand,
}

#[derive(Debug, Subcommand)]
enum XtaskCommand {
    /// Installs what the tests need and runs every test
    Test(test::TestArgs),
    /// Measures the collector beside a bare relay, and under stress
    Bench(bench::BenchArgs),
    /// Fuzzes all parsers of untrusted input
    Fuzz(fuzz::FuzzArgs),
    /// Checks the project's own rules for sources and documents
    Tidy,
    /// Builds an image of one program, without a container runtime
    Image(image::ImageArgs),
    /// Lists the functions that every request to a collector runs, as the order for the linker
    Order,
    /// Writes the API server's table of protobuf messages from Kubernetes' sources
    Protobuf(protobuf::ProtobufArgs),
    /// Writes the definitions of the telemetry resources into deploy/crds
    Crds,
    /// Checks that builds with fewer components compile without warnings
    Features(FeaturesArgs),
    /// Follows docs/adding-a-component.md and runs the tests of the component
    Recipe,
    /// Runs the steps of continuous integration: format, lints, tests, fuzzing
    Ci,
    /// Writes the API server's table of built-in types from a cluster's OpenAPI
    Schemas(schemas::SchemasArgs),
}

/// Arguments of `cargo xtask features`.
#[derive(Debug, clap::Args)]
struct FeaturesArgs {
    /// Check each feature alone
    #[arg(long)]
    each: bool,
}

impl FeaturesArgs {
    fn run(&self) -> anyhow::Result<()> {
        if self.each { features::check_each(&mut steps::TimedSteps::default()) } else { features::check_images() }
    }
}

fn main() -> anyhow::Result<()> {
    match XtaskCli::parse().task {
        XtaskCommand::Test(args) => test::run(&args),
        XtaskCommand::Bench(args) => bench::run(&args),
        XtaskCommand::Fuzz(args) => fuzz::run(&args),
        XtaskCommand::Tidy => tidy::run(),
        XtaskCommand::Image(args) => image::run(&args),
        XtaskCommand::Order => bench::order::run(),
        XtaskCommand::Protobuf(args) => protobuf::run(&args),
        XtaskCommand::Features(args) => args.run(),
        XtaskCommand::Recipe => recipe::run(&mut steps::TimedSteps::default()),
        XtaskCommand::Ci => ci::run(),
        XtaskCommand::Crds => crds::run(),
        XtaskCommand::Schemas(args) => schemas::run(&args),
    }
}

/// The root of the workspace.
fn workspace_root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Where cargo puts what it builds.
fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace_root().join("target"), PathBuf::from)
}
