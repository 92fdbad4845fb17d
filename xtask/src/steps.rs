//! Steps that say what they do and how long it took.

use std::{
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};

/// The steps done so far. Dropped, it prints the time of each, also when one has failed.
#[derive(Debug, Default)]
pub(crate) struct Steps(Vec<(String, Duration)>);

impl Steps {
    /// Does one step.
    pub(crate) fn step<T>(&mut self, name: &str, work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
        eprintln!("== {name}");
        let start = Instant::now();
        let result = work().with_context(|| format!("{name} failed"));
        self.0.push((name.to_owned(), start.elapsed()));
        result
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        let total: Duration = self.0.iter().map(|(_, time)| *time).sum();
        for (name, time) in self.0.iter().map(|(name, time)| (name.as_str(), time)).chain([("together", &total)]) {
            eprintln!("{:>8.1} s  {name}", time.as_secs_f64());
        }
    }
}

/// Runs a command at the root of the workspace, with its output shown.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    command.current_dir(crate::root());
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}

/// The cargo that runs this.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Whether a command ends well, with its output hidden.
pub(crate) fn succeeds(program: impl AsRef<Path>, args: &[&str]) -> bool {
    Command::new(program.as_ref()).args(args).output().is_ok_and(|output| output.status.success())
}

/// What a command prints, without the white space around it.
pub(crate) fn output(program: &str, args: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(program).args(args).output().with_context(|| format!("cannot run {program}"))?;
    ensure!(output.status.success(), "{program} ended with {}", output.status);
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
