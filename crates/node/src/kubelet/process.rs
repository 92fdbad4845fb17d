//! One process of a container, with whatever it starts.
//!
//! *Guarantees.* A process leads a group of its own. When it ends, the rest of its group is killed before its id can be given to
//! anybody else, so that nothing else is ever hit. A process that is dropped is killed with its group. It carries its
//! [mark](crate::marks), by which what has left the group is found. *Not done*: what the system only finds out when it starts a program, such as a script
//! without its interpreter, is said by `prlimit` in the program's place, which ends with 126 or 127.

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

use super::env::Launch;
use crate::marks::Mark;

/// A running process.
#[derive(Debug)]
pub struct Process {
    /// Not there once it is reaped: then its id may be another's.
    child: Option<Child>,
    group: Pid,
    /// Some child of ours has ended.
    ends: unix::Signal,
}

/// What it says.
#[derive(Debug)]
pub struct Output {
    /// Its standard output.
    pub stdout: Receiver,
    /// Its standard error.
    pub stderr: Receiver,
}

/// Why a process does not start.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum StartError {
    #[error("exec: {0:?}: executable file not found in $PATH")]
    NotInPath(PathBuf),
    #[error("exec: {0:?}: stat: no such file or directory")]
    NoFile(PathBuf),
    #[error("chdir to {0:?}: no such directory")]
    NoDirectory(PathBuf),
    #[error("exec: {0:?}: {1}")]
    Exec(PathBuf, io::Error),
    #[error("the process cannot be looked after: {0}")]
    Setup(#[from] io::Error),
}

impl StartError {
    /// The same of a program that is called so.
    fn about(self, program: &Path) -> Self {
        let program = program.to_owned();
        match self {
            Self::NotInPath(_) => Self::NotInPath(program),
            Self::NoFile(_) => Self::NoFile(program),
            Self::Exec(_, error) => Self::Exec(program, error),
            Self::NoDirectory(_) | Self::Setup(_) => self,
        }
    }
}

/// Starts a process in a group of its own, with exactly this environment and this mark.
///
/// # Errors
/// If the program or its directory is not there or cannot be used.
pub fn start(launch: &Launch, mark: &Mark) -> Result<(Process, Output), StartError> {
    if !launch.dir.is_dir() {
        return Err(StartError::NoDirectory(launch.dir.clone()));
    }
    let program = find(&launch.program, &launch.dir, &launch.env).map_err(|error| error.about(&launch.written))?;
    let mut command = mark.command(&program);
    command.args(&launch.args).env_clear().envs(launch.env.iter().map(|(name, value)| (name, value)));
    command.current_dir(&launch.dir).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Before it starts, so that its end is not missed.
    let ends = signal(SignalKind::child())?;
    let child = command.spawn().map_err(|error| StartError::Exec(launch.written.clone(), error))?;
    Ok(Process::of(child, ends)?)
}

/// The file of a program that is started in this directory with this environment.
///
/// # Errors
/// If there is none that can be started.
pub fn find(program: &Path, dir: &Path, env: &[(String, String)]) -> Result<PathBuf, StartError> {
    if program.components().count() > 1 || program.is_absolute() {
        let path = dir.join(program);
        return match path.exists() {
            true if is_executable(&path) => Ok(path),
            true => Err(StartError::Exec(program.to_owned(), rustix::io::Errno::ACCESS.into())),
            false => Err(StartError::NoFile(program.to_owned())),
        };
    }
    let paths = env.iter().rev().find(|(name, _)| name == "PATH").map_or("", |(_, paths)| paths);
    std::env::split_paths(paths)
        .map(|folder| dir.join(folder).join(program))
        .find(|path| is_executable(path))
        .ok_or_else(|| StartError::NotInPath(program.to_owned()))
}

/// Whether it is a file that may be started.
pub fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

impl Process {
    fn of(mut child: Child, ends: unix::Signal) -> io::Result<(Self, Output)> {
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let group = group.ok_or_else(|| io::Error::other("a process has no id"))?;
        // From here on the process is killed if anything fails.
        let process = Self { child: Some(child), group, ends };
        let missing = || io::Error::other("a process has no output");
        let stdout = Receiver::from_owned_fd(OwnedFd::from(stdout.ok_or_else(missing)?))?;
        let stderr = Receiver::from_owned_fd(OwnedFd::from(stderr.ok_or_else(missing)?))?;
        Ok((process, Output { stdout, stderr }))
    }

    /// Its id, which is that of its group too.
    pub fn id(&self) -> i32 {
        self.group.as_raw_nonzero().get()
    }

    /// Waits until it has ended; by then its group is gone too. It may be given up and called again.
    pub async fn ended(&mut self) -> io::Result<Exit> {
        while self.child.is_some() && !self.has_ended()? {
            self.ends.recv().await;
        }
        // It is not reaped yet, so the id is still its own.
        self.kill();
        let Some(mut child) = self.child.take() else { return Err(io::Error::other("it has ended before")) };
        // It has ended: this does not wait.
        child.wait().map(Exit::from)
    }

    /// Leaves it to be reaped.
    fn has_ended(&self) -> io::Result<bool> {
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        Ok(waitid(WaitId::Pid(self.group), how)?.is_some())
    }

    /// Asks it, and not what it started, to end.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Sends it a signal, if it is there.
    pub fn signal(&self, signal: Signal) {
        if self.child.is_some() {
            let _ = kill_process(self.group, signal);
        }
    }

    /// Ends it and its group at once.
    pub fn kill(&self) {
        if self.child.is_some() {
            let _ = kill_process_group(self.group, Signal::KILL);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        if let Some(mut child) = self.child.take() {
            // It is dead or about to be, but the system may take a moment to say so.
            std::thread::spawn(move || child.wait());
        }
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// As a shell and Kubernetes count: 128 and the signal, if one ended it.
    pub code: i32,
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Self {
        let signal = status.signal().map(|signal| 128 + signal);
        Self { code: status.code().or(signal).unwrap_or(255) }
    }
}

#[cfg(test)]
mod tests;
