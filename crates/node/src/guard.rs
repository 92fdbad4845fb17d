//! Who cleans up when the cluster is gone, however it went.
//!
//! A small shell, started before anything else, waits for the end of a pipe that the cluster holds. It comes when the cluster ends in
//! any way, `kill -9` included. Then the guard kills every process that carries the cluster's [mark](crate::marks), until none is left,
//! and removes the cluster's directory. An orderly stop goes the same way, so that there is only one.
//!
//! *Guarantees.* Nothing is killed that does not carry the mark. *Assumes* `/bin/sh`, `grep`, `sleep` and `rm`. *Not done*: if somebody
//! kills the guard itself, nobody cleans up after a crash.

use std::{
    io,
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Stdio},
};

use crate::marks::ClusterMark;

/// Its arguments are the mark and the directory. It sees neither the terminal's Ctrl-C, being in a group of its own, nor the
/// signals that a service manager sends to all.
const SCRIPT: &str = r#"
trap '' INT TERM HUP
while read -r _; do :; done
tries=0
quiet=0
# A process may start another while it is looked for: one look is not enough. Who is about to get the mark has it in its arguments.
while [ $tries -lt 500 ] && [ $quiet -lt 3 ]; do
    tries=$((tries + 1))
    quiet=$((quiet + 1))
    for file in $(grep -lsae " $1 " -e "--rttime=[0-9]*:$1" /proc/[0-9]*/limits /proc/[0-9]*/cmdline); do
        pid=${file#/proc/}
        pid=${pid%/*}
        read -r stat 2>/dev/null <"/proc/$pid/stat" || continue
        # After the name in parentheses: whether it has ended, and only its parent has to hear of it.
        case ${stat##*) } in Z* | X*) continue ;; esac
        quiet=0
        kill -9 "$pid"
    done
    sleep 0.02
done
rm -rf -- "$2"
"#;

/// The guard of a cluster. Dropped, it starts to clean up, and nobody waits for it.
#[derive(Debug)]
pub struct Guard {
    mark: ClusterMark,
    child: Child,
}

impl Guard {
    /// Starts one, that removes this directory in the end.
    ///
    /// # Errors
    /// If there is no shell or no way to mark processes, or if the system starts no process.
    pub fn start(directory: &Path) -> io::Result<Self> {
        let mark = ClusterMark::new()?;
        let mut command = mark.unmarked(Path::new("/bin/sh"));
        command.args(["-c", SCRIPT, "kubewake-guard", &mark.number().to_string()]).arg(std::path::absolute(directory)?);
        command.env_clear().env("PATH", "/usr/bin:/bin").current_dir("/").process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Self { mark, child: command.spawn()? })
    }

    /// What every process of the cluster has to carry.
    pub fn mark(&self) -> &ClusterMark {
        &self.mark
    }

    /// Cleans up, and returns when all is gone. It blocks for a moment.
    ///
    /// # Errors
    /// If nobody knows what became of the guard.
    pub fn stop(mut self) -> io::Result<()> {
        drop(self.child.stdin.take());
        self.child.wait().map(drop)
    }
}

#[cfg(test)]
mod tests;
