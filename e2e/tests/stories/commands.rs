//! Somebody at a terminal asks how Kubewake is.

mod check;
mod documents;
mod help;
mod status;
mod tail_logs;
mod trace;

use std::{path::Path, process::Output};

use kubewake_e2e::process::{ChildProcess, kubewake};
use serde_json::Value;

#[derive(Debug)]
struct Said {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Said {
    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    /// The lines of a check as JSON with this code.
    fn lines(&self, code: &str) -> Vec<Value> {
        let report = self.json();
        let lines =
            report["sections"].as_array().unwrap().iter().flat_map(|section| section["lines"].as_array().unwrap());
        lines.filter(|line| line["code"] == code).cloned().collect()
    }

    /// How each line with this code went.
    fn results(&self, code: &str) -> Vec<String> {
        self.lines(code).iter().map(|line| line["result"].as_str().unwrap().to_owned()).collect()
    }
}

/// Runs a command as somebody who has this folder and nothing else, and so neither a cluster nor a viewer that
/// nobody names.
fn run(home: &Path, command: &str) -> Said {
    let output: Output = start(home, command).output();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the output is text");
    Said {
        code: output.status.code().expect("the command exits with a code"),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

/// The same, and it goes on.
fn start(home: &Path, command: &str) -> ChildProcess {
    let mut program = kubewake();
    program.env_clear().env("HOME", home).env("NO_PROXY", "*").args(command.split_whitespace());
    ChildProcess::start(&mut program)
}
