//! Tags that identify the processes of a cluster, and of one container, whatever became of their parents.
//!
//! A tag has to be a property that a process passes on to all its children and does not lose by accident:
//! environment, session, parent and open files are all changed by programs that become daemons. The *limit on
//! realtime CPU time* (`ulimit -R`) is not. It only affects programs with a realtime priority, and not with the
//! values used here, which are thousands of years. The hard limit, which only root can raise again, is the
//! cluster's tag; the soft limit is the container's. Both are random, so that no other process has them.
//!
//! *Guaranteed*: a program carries its tags from its first instruction on. *Assumed*: `prlimit` of util-linux,
//! which every distribution has. *Not done*: a program that changes this very limit hides itself and its
//! children.

use std::{
    collections::HashSet,
    fs, io,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::Duration,
};

use rustix::process::{Pid, PidfdFlags, Resource, Signal, getrlimit, pidfd_open, pidfd_send_signal};
use tokio::sync::{mpsc, oneshot};

/// The largest tag: a hundred thousand years in microseconds.
const MAX_TAG_NUMBER: u64 = 1 << 62;
/// The smallest tag; below it random numbers would collide.
const MIN_TAG_NUMBER: u64 = 1 << 40;
/// Directories of the tool, besides those of `PATH`.
const FALLBACK_PATH: &str = "/usr/bin:/bin:/usr/sbin:/sbin:/usr/local/bin";

/// The number of tags that one sweep handles.
const MAX_TAGS_PER_SWEEP: usize = 128;
/// The number of consecutive scans without a match, with a pause in between, after which a sweep is complete.
const EMPTY_SCANS_BEFORE_DONE: u32 = 2;
const SCAN_PAUSE: Duration = Duration::from_millis(2);

/// The tag of a cluster.
#[derive(Clone, Debug)]
pub struct ClusterTag {
    prlimit_path: Arc<Path>,
    number: u64,
}

/// The tag of one run of a container. Its processes also carry the tag of the cluster.
#[derive(Clone, Debug)]
pub struct ContainerTag {
    cluster: ClusterTag,
    number: u64,
}

impl ClusterTag {
    /// Creates a tag.
    ///
    /// # Errors
    /// If `prlimit` is not installed, or if a limit of this process is too low.
    pub fn new() -> io::Result<Self> {
        let most = getrlimit(Resource::Rttime).maximum.unwrap_or(MAX_TAG_NUMBER).min(MAX_TAG_NUMBER);
        if most < MIN_TAG_NUMBER {
            let message = format!("the limit on realtime CPU time (ulimit -H -R) is {most} µs: set it to unlimited");
            return Err(io::Error::other(message));
        }
        Ok(Self { prlimit_path: find_prlimit()?.into(), number: fastrand::u64(most / 2..most) })
    }

    /// Creates a tag for a run of a container.
    #[must_use]
    pub fn new_container_tag(&self) -> ContainerTag {
        ContainerTag { cluster: self.clone(), number: fastrand::u64(self.number / 4..self.number / 2) }
    }

    /// The value in `/proc/PID/limits`.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// A command for a program without tags, neither of this cluster nor of one that this process may be part
    /// of.
    #[must_use]
    pub fn untagged_command(&self, program: &Path) -> Command {
        self.command_with_limits(self.number / 8, self.number / 8, program)
    }

    fn command_with_limits(&self, soft: u64, hard: u64, program: &Path) -> Command {
        let mut command = Command::new(&*self.prlimit_path);
        command.arg(format!("--rttime={soft}:{hard}")).arg(program);
        command
    }
}

impl ContainerTag {
    /// The number of the run's tag.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// A command for a program with this tag. Its path must be absolute.
    #[must_use]
    pub fn tagged_command(&self, program: &Path) -> Command {
        self.cluster.command_with_limits(self.number, self.cluster.number, program)
    }
}

fn find_prlimit() -> io::Result<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let mut all =
        std::env::split_paths(&paths).chain(std::env::split_paths(FALLBACK_PATH)).map(|dir| dir.join("prlimit"));
    all.find(|path| path.is_absolute() && path.is_file())
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the program prlimit is missing: install util-linux"))
}

/// Kills every process with one of these tags, until none is left or the attempts are used up. It reads all of
/// /proc, so it must run on a blocking thread.
pub fn kill_tagged(marks: &[ContainerTag]) {
    let marks: HashSet<u64> = marks.iter().map(ContainerTag::number).collect();
    let mut quiet = 0;
    // A process may start another one during a scan, so one scan is not enough.
    for _ in 0..100 {
        quiet = if kill_tagged_once(&marks) { 0 } else { quiet + 1 };
        if quiet == EMPTY_SCANS_BEFORE_DONE {
            return;
        }
        std::thread::sleep(SCAN_PAUSE);
    }
}

fn kill_tagged_once(marks: &HashSet<u64>) -> bool {
    let Ok(entries) = fs::read_dir("/proc") else { return false };
    let ids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter_map(Pid::from_raw).filter(|pid| kill_if_tagged(marks, *pid)).count() > 0
}

/// The tag is checked again after the pidfd is opened: if the process has ended and its id was reused, the
/// other process is not hit.
fn kill_if_tagged(marks: &HashSet<u64>, pid: Pid) -> bool {
    if !is_tagged(marks, pid) || has_ended(pid) {
        return false;
    }
    let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
    is_tagged(marks, pid) && pidfd_send_signal(pidfd, Signal::KILL).is_ok()
}

fn is_tagged(marks: &HashSet<u64>, pid: Pid) -> bool {
    let limits = fs::read_to_string(format!("/proc/{}/limits", pid.as_raw_nonzero()));
    limits.is_ok_and(|limits| parse_soft_limit(&limits).is_some_and(|number| marks.contains(&number)))
}

/// Parses `Max realtime timeout      SOFT                 HARD                 us`.
fn parse_soft_limit(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max realtime timeout"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Whether the process is a zombie. It still has limits.
fn has_ended(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    // The state follows the name, which is in parentheses and may contain anything.
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']))
}

/// Combines concurrent sweeps into one. Clones share their state.
#[derive(Clone, Debug)]
pub struct ProcessSweeper(mpsc::Sender<(ContainerTag, oneshot::Sender<()>)>);

impl ProcessSweeper {
    /// Starts the task, which ends after all clones are dropped. Must be called within a runtime.
    pub fn start() -> Self {
        let (sender, mut receiver) = mpsc::channel::<(ContainerTag, oneshot::Sender<()>)>(MAX_TAGS_PER_SWEEP);
        tokio::spawn(async move {
            let mut asked = Vec::new();
            while receiver.recv_many(&mut asked, MAX_TAGS_PER_SWEEP).await > 0 {
                let (marks, waiting): (Vec<_>, Vec<_>) = asked.drain(..).unzip();
                let _ = tokio::task::spawn_blocking(move || kill_tagged(&marks)).await;
                for one in waiting {
                    // The caller may have given up.
                    let _ = one.send(());
                }
            }
        });
        Self(sender)
    }

    /// Returns when no process with this tag is left.
    pub async fn sweep(&self, mark: ContainerTag) {
        let (done, waiting) = oneshot::channel();
        if self.0.send((mark, done)).await.is_ok() {
            let _ = waiting.await;
        }
    }
}

#[cfg(test)]
mod tests;
