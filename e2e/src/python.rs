//! The OpenTelemetry SDK for Python.

use std::{path::PathBuf, process::Command};

use serde_json::Value;

/// Runs a script of `e2e/python`, which prints JSON.
///
/// `$KUBEWAKE_PYTHON` is a Python that has what `e2e/requirements.txt` names.
pub fn run(script: &str, args: &[&str]) -> Value {
    let python = std::env::var_os("KUBEWAKE_PYTHON");
    let python = python.map(PathBuf::from).unwrap_or_else(|| {
        panic!("KUBEWAKE_PYTHON is not set: run `cargo xtask test`, or name a Python with e2e/requirements.txt")
    });
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("python").join(script);
    let mut command = Command::new(python);
    // Only what the test says counts, not what the machine is set up for.
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("OTEL_")) {
        command.env_remove(name);
    }
    command.env("NO_PROXY", "*").env("no_proxy", "*").env("PYTHONDONTWRITEBYTECODE", "1");
    let output = command.arg(&script).args(args).output().expect("Python starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} failed:\n{stderr}", script.display());
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}\n{stderr}"))
}
