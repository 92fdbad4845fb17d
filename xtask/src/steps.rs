//! Steps of a task, with their names and durations.

use std::{
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};

/// The finished steps. A drop prints the duration of each, also after a failure.
#[derive(Debug, Default)]
pub(crate) struct TimedSteps(Vec<(String, Duration)>);

impl TimedSteps {
    pub(crate) fn step<T>(&mut self, name: &str, work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
        eprintln!("== {name}");
        let start = Instant::now();
        let result = work().with_context(|| format!("{name} failed"));
        self.0.push((name.to_owned(), start.elapsed()));
        result
    }
}

impl Drop for TimedSteps {
    fn drop(&mut self) {
        let total: Duration = self.0.iter().map(|(_, time)| *time).sum();
        for (name, time) in self.0.iter().map(|(name, time)| (name.as_str(), time)).chain([("together", &total)]) {
            eprintln!("{:>8.1} s  {name}", time.as_secs_f64());
        }
    }
}

/// Runs a command in the root of the workspace, with visible output.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    command.current_dir(crate::workspace_root());
    let status = command.status().with_context(|| format!("failed to run {command:?}"))?;
    ensure!(status.success(), "{command:?} exited with {status}");
    Ok(())
}

/// The cargo that runs this task.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Whether a command succeeds, with its output hidden.
pub(crate) fn command_succeeds(program: impl AsRef<Path>, args: &[&str]) -> bool {
    Command::new(program.as_ref()).args(args).output().is_ok_and(|output| output.status.success())
}

/// The output of a command, trimmed.
pub(crate) fn command_output(program: &str, args: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(program).args(args).output().with_context(|| format!("failed to run {program}"))?;
    ensure!(output.status.success(), "{program} exited with {}", output.status);
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
