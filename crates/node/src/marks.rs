//! Marks by which the processes of a cluster, and of one container, are known, whatever became of their parents.
//!
//! A mark has to be something that a process hands on to all that it starts and does not lose by accident: its environment, its
//! session, its parent and its open files are all changed by programs that become daemons. The *limit on realtime CPU time*
//! (`ulimit -R`) is not. It only matters to programs with a realtime priority, and not at the numbers that are used here, which are
//! thousands of years. Its hard value, which only root can raise again, is the cluster's mark; its soft value is the container's.
//! Both are random, so that nobody else has them.
//!
//! *Guarantees.* A program carries its marks from its first instruction on. *Assumes* `prlimit` of util-linux, which every
//! distribution has. *Not done*: a program that changes this very limit hides itself and what it starts.

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

/// The largest number that is used: a hundred thousand years in microseconds.
const MOST: u64 = 1 << 62;
/// Below it, random numbers would meet.
const LEAST: u64 = 1 << 40;
/// Where the tool may be, beside the directories of `PATH`.
const USUAL: &str = "/usr/bin:/bin:/usr/sbin:/sbin:/usr/local/bin";

/// For so many it is looked in one go.
const AT_ONCE: usize = 128;
/// So often nothing must be found, with a pause in between in which a process gets on.
const LOOKS: u32 = 2;
const PAUSE: Duration = Duration::from_millis(2);

/// The mark of a cluster.
#[derive(Clone, Debug)]
pub struct ClusterMark {
    tool: Arc<Path>,
    number: u64,
}

/// The mark of one run of a container. Who carries it carries its cluster's, too.
#[derive(Clone, Debug)]
pub struct Mark {
    cluster: ClusterMark,
    number: u64,
}

impl ClusterMark {
    /// A new one.
    ///
    /// # Errors
    /// If `prlimit` is not there, or if a limit of this process leaves no room.
    pub fn new() -> io::Result<Self> {
        let most = getrlimit(Resource::Rttime).maximum.unwrap_or(MOST).min(MOST);
        if most < LEAST {
            let message = format!("the limit on realtime CPU time (ulimit -H -R) is {most} µs: let it be unlimited");
            return Err(io::Error::other(message));
        }
        Ok(Self { tool: tool()?.into(), number: fastrand::u64(most / 2..most) })
    }

    /// A new one of a container.
    #[must_use]
    pub fn container(&self) -> Mark {
        Mark { cluster: self.clone(), number: fastrand::u64(self.number / 4..self.number / 2) }
    }

    /// As it stands in `/proc/PID/limits`.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Starts a program that is not part of this cluster, nor of one that this process may be a part of.
    #[must_use]
    pub fn unmarked(&self, program: &Path) -> Command {
        self.command(self.number / 8, self.number / 8, program)
    }

    fn command(&self, soft: u64, hard: u64, program: &Path) -> Command {
        let mut command = Command::new(&*self.tool);
        command.arg(format!("--rttime={soft}:{hard}")).arg(program);
        command
    }
}

impl Mark {
    /// What a run is called by.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Starts a program that carries the mark. Its path must be absolute.
    #[must_use]
    pub fn command(&self, program: &Path) -> Command {
        self.cluster.command(self.number, self.cluster.number, program)
    }
}

/// Where `prlimit` is.
fn tool() -> io::Result<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let mut all = std::env::split_paths(&paths).chain(std::env::split_paths(USUAL)).map(|dir| dir.join("prlimit"));
    all.find(|path| path.is_absolute() && path.is_file())
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the program prlimit is missing: install util-linux"))
}

/// Kills every process that carries one of these, until none is left or it was tried often enough. It reads all of /proc: call it
/// where one may block.
pub fn kill_all(marks: &[Mark]) {
    let marks: HashSet<u64> = marks.iter().map(Mark::number).collect();
    let mut quiet = 0;
    // A process may start another while it is looked for: one look is not enough.
    for _ in 0..100 {
        quiet = if kill_once(&marks) { 0 } else { quiet + 1 };
        if quiet == LOOKS {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Whether there was any.
fn kill_once(marks: &HashSet<u64>) -> bool {
    let Ok(entries) = fs::read_dir("/proc") else { return false };
    let ids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter_map(Pid::from_raw).filter(|pid| kill_if_marked(marks, *pid)).count() > 0
}

/// It is looked at again once there is a descriptor: if the process ends and its id goes to another, that one is not hit.
fn kill_if_marked(marks: &HashSet<u64>, pid: Pid) -> bool {
    if !is_marked(marks, pid) || has_ended(pid) {
        return false;
    }
    let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
    is_marked(marks, pid) && pidfd_send_signal(pidfd, Signal::KILL).is_ok()
}

fn is_marked(marks: &HashSet<u64>, pid: Pid) -> bool {
    let limits = fs::read_to_string(format!("/proc/{}/limits", pid.as_raw_nonzero()));
    limits.is_ok_and(|limits| soft(&limits).is_some_and(|number| marks.contains(&number)))
}

/// `Max realtime timeout      SOFT                 HARD                 us`
fn soft(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max realtime timeout"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Whether only its parent has to hear of it. Such a process has limits still.
fn has_ended(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    // After the name, which may hold anything, in parentheses.
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']))
}

/// Kills for many who ask at the same time, in one go. Clones are the same.
#[derive(Clone, Debug)]
pub struct Sweeper(mpsc::Sender<(Mark, oneshot::Sender<()>)>);

impl Sweeper {
    /// It works until all clones are dropped. It must be made within a runtime.
    pub fn start() -> Self {
        let (sender, mut receiver) = mpsc::channel::<(Mark, oneshot::Sender<()>)>(AT_ONCE);
        tokio::spawn(async move {
            let mut asked = Vec::new();
            while receiver.recv_many(&mut asked, AT_ONCE).await > 0 {
                let (marks, waiting): (Vec<_>, Vec<_>) = asked.drain(..).unzip();
                let _ = tokio::task::spawn_blocking(move || kill_all(&marks)).await;
                for one in waiting {
                    // Who asked may have gone.
                    let _ = one.send(());
                }
            }
        });
        Self(sender)
    }

    /// Returns when nothing that carries this mark is left.
    pub async fn sweep(&self, mark: Mark) {
        let (done, waiting) = oneshot::channel();
        if self.0.send((mark, done)).await.is_ok() {
            let _ = waiting.await;
        }
    }
}

#[cfg(test)]
mod tests;
