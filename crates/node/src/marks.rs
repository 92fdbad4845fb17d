//! Marks by which the processes of a cluster, and of one container, are known, whatever became of their parents.
//!
//! A mark is a variable in the environment that a process was started with, which it hands on to what it starts. The value is
//! random, so that nothing else has it. *Not done*: a program that starts another with a new environment hides it, unless it stays in
//! the process group of somebody who is known.

use std::{collections::HashSet, fmt, fs, time::Duration};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::sync::{mpsc, oneshot};

/// Marks every process of a cluster.
pub const CLUSTER: &str = "KUBEWAKE_CLUSTER";
/// Marks every process of one run of a container.
pub const CONTAINER: &str = "KUBEWAKE_CONTAINER";

/// For so many it is looked in one go.
const AT_ONCE: usize = 128;
/// So often nothing must be found, with a pause in between in which a process gets on.
const LOOKS: u32 = 2;
const PAUSE: Duration = Duration::from_millis(2);

/// A variable with a value that nobody else has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    name: &'static str,
    value: String,
}

impl Mark {
    /// A new one.
    pub fn new(name: &'static str) -> Self {
        Self { name, value: random() }
    }

    /// The random part.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// As a variable.
    pub fn variable(&self) -> (String, String) {
        (self.name.to_owned(), self.value.clone())
    }
}

/// Kills every process that carries one of these, until none is left or it was tried often enough. It reads all of /proc: call it
/// where one may block.
pub fn kill_all(marks: &[Mark]) {
    let marks: HashSet<Vec<u8>> = marks.iter().map(|mark| mark.to_string().into_bytes()).collect();
    let mut quiet = 0;
    // A process may start another while it is looked for, and shows no environment while it becomes another program: one look is
    // not enough.
    for _ in 0..100 {
        quiet = if kill_once(&marks) { 0 } else { quiet + 1 };
        if quiet == LOOKS {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Whether there was any.
fn kill_once(marks: &HashSet<Vec<u8>>) -> bool {
    let Ok(entries) = fs::read_dir("/proc") else { return false };
    let ids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter_map(Pid::from_raw).filter(|pid| kill_if_marked(marks, *pid)).count() > 0
}

/// It is looked at again once there is a descriptor: if the process ends and its id goes to another, that one is not hit.
fn kill_if_marked(marks: &HashSet<Vec<u8>>, pid: Pid) -> bool {
    if !is_marked(marks, pid) {
        return false;
    }
    let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
    is_marked(marks, pid) && pidfd_send_signal(pidfd, Signal::KILL).is_ok()
}

fn is_marked(marks: &HashSet<Vec<u8>>, pid: Pid) -> bool {
    let environment = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero()));
    environment.is_ok_and(|all| all.split(|byte| *byte == 0).any(|variable| marks.contains(variable)))
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

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.value)
    }
}

/// 128 bits in hexadecimal digits.
fn random() -> String {
    format!("{:032x}", fastrand::u128(..))
}

#[cfg(test)]
mod tests;
