//! `cargo xtask crds`: the definitions of the telemetry resources, from their types.

use crate::steps;

/// The test that compares them writes them when it is told to, so that this crate need not know the types.
pub(crate) fn run() -> anyhow::Result<()> {
    let mut cargo = steps::cargo();
    steps::run(cargo.args(["test", "--quiet", "--package", "kubewake-api", "--test", "crds"]).env("UPDATE_GOLDEN", "1"))
}
