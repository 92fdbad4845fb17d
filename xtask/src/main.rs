//! The project's own tasks: `cargo xtask test`, `bench`, `fuzz`, `tidy`, `ci`, `crds`, `image`, `order`, `schemas`, `protobuf`.

mod bench;
mod ci;
mod crds;
mod fuzz;
mod image;
mod protobuf;
mod schemas;
mod steps;
mod test;
mod tidy;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// The project's own tasks
#[derive(Debug, Parser)]
#[command(name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Installs what the tests need and runs every test
    Test(test::Args),
    /// Measures the collector beside a relay that does nothing, and under stress
    Bench(bench::Args),
    /// Feeds every parser that strangers reach with inputs that nobody thought of
    Fuzz(fuzz::Args),
    /// Checks the rules of the tree that no other tool knows
    Tidy,
    /// Makes an image of one program, without a container runtime
    Image(image::Args),
    /// Lists the functions that every request to a collector runs, for the linker
    Order,
    /// Makes the table by which the API server reads protobuf
    Protobuf(protobuf::Args),
    /// Writes the definitions of the telemetry resources into deploy/crds
    Crds,
    /// What continuous integration runs: format, lints, tests, fuzzing
    Ci,
    /// Writes the API server's table of built-in types from a cluster's OpenAPI
    Schemas(schemas::Args),
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().task {
        Task::Test(args) => test::run(&args),
        Task::Bench(args) => bench::run(&args),
        Task::Fuzz(args) => fuzz::run(&args),
        Task::Tidy => tidy::run(),
        Task::Image(args) => image::run(&args),
        Task::Order => bench::order::run(),
        Task::Protobuf(args) => protobuf::run(&args),
        Task::Ci => ci::run(),
        Task::Crds => crds::run(),
        Task::Schemas(args) => schemas::run(&args),
    }
}

/// The root of the workspace.
fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Where cargo puts what it builds.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}
