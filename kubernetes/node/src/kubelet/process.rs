//! A process of a container with its process group.
//!
//! *Guaranteed*: a process leads a group of its own. When it ends, the rest of its group is killed before its
//! id can be reused, so that no other process is ever hit. Dropping a process kills it with its group. It
//! carries its [tag](crate::process_tags), by which processes that left the group are found. *Not done*: errors
//! that the system detects only on exec, such as a script without its interpreter, are reported by `prlimit` in
//! the program's place, which exits with 126 or 127.

use std::{
    io,
    os::{
        fd::OwnedFd,
        unix::process::{CommandExt, ExitStatusExt},
    },
    path::{Path, PathBuf},
    process::{Child, ExitStatus, Stdio},
};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};
use tokio::{
    net::unix::pipe::Receiver,
    signal::unix::{self, SignalKind, signal},
};

use super::env::ProcessSpec;
use crate::process_tags::ContainerTag;

#[derive(Debug)]
pub struct ContainerProcess {
    /// None once the process is reaped, as its id may then be reused.
    child: Option<Child>,
    group: Pid,
    /// Signals the end of any child process.
    child_signals: unix::Signal,
}

#[derive(Debug)]
pub struct ProcessOutput {
    pub stdout: Receiver,
    pub stderr: Receiver,
}

/// The reason why a process does not start.
#[derive(Debug, thiserror::Error)]
pub enum ProcessStartError {
    #[error("exec: {0:?}: executable file not found in $PATH")]
    NotInPath(PathBuf),
    #[error("exec: {0:?}: stat: no such file or directory")]
    NoFile(PathBuf),
    #[error("chdir to {0:?}: no such directory")]
    NoDirectory(PathBuf),
    #[error("exec: {0:?}: {1}")]
    Exec(PathBuf, io::Error),
    #[error("failed to supervise the process: {0}")]
    Setup(#[from] io::Error),
}

impl ProcessStartError {
    /// The same error with the program's name as in the pod.
    fn with_program(self, program: &Path) -> Self {
        let program = program.to_owned();
        match self {
            Self::NotInPath(_) => Self::NotInPath(program),
            Self::NoFile(_) => Self::NoFile(program),
            Self::Exec(_, error) => Self::Exec(program, error),
            Self::NoDirectory(_) | Self::Setup(_) => self,
        }
    }
}

/// Starts a process in a group of its own, with exactly this environment and this tag.
///
/// # Errors
/// If the program or its directory does not exist or is not usable.
pub fn start_process(
    launch: &ProcessSpec,
    mark: &ContainerTag,
) -> Result<(ContainerProcess, ProcessOutput), ProcessStartError> {
    if !launch.dir.is_dir() {
        return Err(ProcessStartError::NoDirectory(launch.dir.clone()));
    }
    let program = find_program(&launch.program, &launch.dir, &launch.env)
        .map_err(|error| error.with_program(&launch.displayed_program))?;
    let mut command = mark.tagged_command(&program);
    command.args(&launch.args).env_clear().envs(launch.env.iter().map(|(name, value)| (name, value)));
    command.current_dir(&launch.dir).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Before the start, so that the end is not missed.
    let ends = signal(SignalKind::child())?;
    let child = command.spawn().map_err(|error| ProcessStartError::Exec(launch.displayed_program.clone(), error))?;
    Ok(ContainerProcess::from_child(child, ends)?)
}

/// Resolves a program for this directory and environment.
///
/// # Errors
/// If there is no such executable.
pub fn find_program(program: &Path, dir: &Path, env: &[(String, String)]) -> Result<PathBuf, ProcessStartError> {
    if program.components().count() > 1 || program.is_absolute() {
        let path = dir.join(program);
        return match path.exists() {
            true if is_executable(&path) => Ok(path),
            true => Err(ProcessStartError::Exec(program.to_owned(), rustix::io::Errno::ACCESS.into())),
            false => Err(ProcessStartError::NoFile(program.to_owned())),
        };
    }
    let paths = env.iter().rev().find(|(name, _)| name == "PATH").map_or("", |(_, paths)| paths);
    std::env::split_paths(paths)
        .map(|folder| dir.join(folder).join(program))
        .find(|path| is_executable(path))
        .ok_or_else(|| ProcessStartError::NotInPath(program.to_owned()))
}

/// Whether the path is an executable file.
pub fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

impl ContainerProcess {
    fn from_child(mut child: Child, ends: unix::Signal) -> io::Result<(Self, ProcessOutput)> {
        let stdout = child.stdout.take();
        let stderr = child.stderr.take();
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let group = group.ok_or_else(|| io::Error::other("a process has no id"))?;
        // From here on the process is killed on any error.
        let process = Self { child: Some(child), group, child_signals: ends };
        let missing = || io::Error::other("a process has no output");
        let stdout = Receiver::from_owned_fd(OwnedFd::from(stdout.ok_or_else(missing)?))?;
        let stderr = Receiver::from_owned_fd(OwnedFd::from(stderr.ok_or_else(missing)?))?;
        Ok((process, ProcessOutput { stdout, stderr }))
    }

    /// The id of the process and of its group.
    pub fn id(&self) -> i32 {
        self.group.as_raw_nonzero().get()
    }

    /// Waits until the process has ended; its group is killed then. Cancel safe.
    pub async fn wait_for_exit(&mut self) -> io::Result<ProcessExit> {
        while self.child.is_some() && !self.has_ended()? {
            self.child_signals.recv().await;
        }
        // The process is not reaped yet, so its id is still valid.
        self.kill();
        let Some(mut child) = self.child.take() else { return Err(io::Error::other("the process has already ended")) };
        // The process has ended, so this does not block.
        child.wait().map(ProcessExit::from)
    }

    /// Does not reap the process.
    fn has_ended(&self) -> io::Result<bool> {
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        Ok(waitid(WaitId::Pid(self.group), how)?.is_some())
    }

    /// Asks the process, not its group, to terminate.
    pub fn terminate(&self) {
        self.send_signal(Signal::TERM);
    }

    /// Sends a signal to the process, if it exists.
    pub fn send_signal(&self, signal: Signal) {
        if self.child.is_some() {
            let _ = kill_process(self.group, signal);
        }
    }

    /// Kills the process and its group.
    pub fn kill(&self) {
        if self.child.is_some() {
            let _ = kill_process_group(self.group, Signal::KILL);
        }
    }
}

impl Drop for ContainerProcess {
    fn drop(&mut self) {
        self.kill();
        if let Some(mut child) = self.child.take() {
            // The process is dead or about to be; reaping it may take a moment.
            std::thread::spawn(move || child.wait());
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessExit {
    /// As in shells and Kubernetes: 128 plus the number of the signal that killed it.
    pub code: i32,
}

impl From<ExitStatus> for ProcessExit {
    fn from(status: ExitStatus) -> Self {
        let signal = status.signal().map(|signal| 128 + signal);
        Self { code: status.code().or(signal).unwrap_or(255) }
    }
}

#[cfg(test)]
mod tests;
