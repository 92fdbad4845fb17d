//! `cargo xtask ci`: everything that continuous integration runs, in one command.

use crate::{
    fuzz,
    steps::{TimedSteps, cargo, run as run_command},
    test,
};

/// Links to private modules are for readers of the sources.
const RUSTDOC_FLAGS: &str = "-D warnings -A rustdoc::private_intra_doc_links";

pub(crate) fn run() -> anyhow::Result<()> {
    let mut steps = TimedSteps::default();
    steps.step("format", || run_command(cargo().args(["fmt", "--check"])))?;
    let clippy = ["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];
    steps.step("lints", || run_command(cargo().args(clippy)))?;
    let documentation = ["doc", "--workspace", "--no-deps", "--locked"];
    steps.step("documentation", || run_command(cargo().args(documentation).env("RUSTDOCFLAGS", RUSTDOC_FLAGS)))?;
    test::run_steps(&mut steps)?;
    steps.step("fuzzing", fuzz::run_in_ci)
}
