//! `cargo xtask test`: from a fresh machine to every test.

mod packages;
mod python;

use crate::{
    steps::{Steps, cargo, run as run_command},
    target, tidy,
};

/// Installs what is needed, builds, tests.
pub(crate) fn run() -> anyhow::Result<()> {
    run_in(&mut Steps::default())
}

/// The same, as steps among others.
pub(crate) fn run_in(steps: &mut Steps) -> anyhow::Result<()> {
    steps.step("tidy", tidy::run)?;
    steps.step("Debian packages", packages::install)?;
    let python = steps.step("Python packages", python::install)?;
    // All targets at once, so that the binary is built with the same features as the tests and nothing twice.
    steps.step("build", || run_command(cargo().args(["build", "--workspace", "--all-targets"])))?;
    steps.step("tests", || {
        let mut test = cargo();
        // All of them, whichever fails first.
        test.args(["test", "--workspace", "--no-fail-fast"]);
        test.env("KUBEWAKE_BIN", target().join("debug/kubewake")).env("KUBEWAKE_PYTHON", &python);
        run_command(&mut test)
    })
}
