//! What continuous integration runs, in one command.

use crate::{
    fuzz,
    steps::{Steps, cargo, run as run_command},
    test,
};

/// Format, lints, tests, fuzzing.
pub(crate) fn run() -> anyhow::Result<()> {
    let mut steps = Steps::default();
    steps.step("format", || run_command(cargo().args(["fmt", "--check"])))?;
    let clippy = ["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];
    steps.step("lints", || run_command(cargo().args(clippy)))?;
    test::run_in(&mut steps)?;
    steps.step("fuzzing", fuzz::run_in_ci)
}
