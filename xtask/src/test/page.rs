//! Tests of the viewer's page without a browser: its modules, in Node's test runner.

use std::{fs, process::Command};

use anyhow::{Context, ensure};

use crate::{steps::run, workspace_root};

const PAGE_TESTS_DIR: &str = "crates/viewer/tests/page";

pub(crate) fn test() -> anyhow::Result<()> {
    let entries = fs::read_dir(workspace_root().join(PAGE_TESTS_DIR))
        .with_context(|| format!("failed to list {PAGE_TESTS_DIR}"))?;
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    // Files are passed one by one: the meaning of a folder differs between versions of the runner.
    let mut tests: Vec<_> = paths.into_iter().filter(|path| path.to_string_lossy().ends_with(".test.js")).collect();
    tests.sort();
    ensure!(!tests.is_empty(), "{PAGE_TESTS_DIR} has no tests");
    run(Command::new("node").arg("--test").args(tests))
}
