//! `cargo xtask crds`: the CRDs of the telemetry resources, generated from their types.

use crate::steps;

/// A test compares the CRDs, and writes them on request, so that this crate does not depend on the types.
pub(crate) fn run() -> anyhow::Result<()> {
    let mut cargo = steps::cargo();
    steps::run(cargo.args(["test", "--quiet", "--package", "kubewake-api", "--test", "crds"]).env("UPDATE_GOLDEN", "1"))
}
