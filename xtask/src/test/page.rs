//! Tests of the viewer's page that need no browser: its modules, under Node's own runner.

use std::{fs, process::Command};

use anyhow::{Context, ensure};

use crate::{root, steps::run};

/// Where they are.
const FOLDER: &str = "crates/viewer/tests/page";

/// Runs all of them.
pub(crate) fn test() -> anyhow::Result<()> {
    let entries = fs::read_dir(root().join(FOLDER)).with_context(|| format!("cannot list {FOLDER}"))?;
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    // Named one by one: what a folder means to the runner differs from version to version.
    let mut tests: Vec<_> = paths.into_iter().filter(|path| path.to_string_lossy().ends_with(".test.js")).collect();
    tests.sort();
    ensure!(!tests.is_empty(), "{FOLDER} has no tests");
    run(Command::new("node").arg("--test").args(tests))
}
