//! The cleanup guard removes the processes and files of a cluster after its end, in whatever way it ended.
//!
//! The guard is a small shell that is started before anything else and waits for the end of a pipe that the
//! cluster holds. The pipe closes when the cluster ends in any way, including `kill -9`. Then the guard kills
//! every process with the cluster's [tag](crate::process_tags), until none is left, and removes the cluster's
//! directory. An orderly stop uses the same path, so that there is only one.
//!
//! *Guaranteed*: only processes with the tag are killed. *Assumed*: `/bin/sh`, `grep`, `sleep` and `rm`. *Not
//! done*: cleanup after a crash if the guard itself was killed.

use std::{
    io,
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Stdio},
};

use crate::process_tags::ClusterTag;

/// The arguments are the tag and the directory. The guard has a process group of its own, so that it gets
/// neither the terminal's Ctrl-C nor the signals that a service manager sends to the group.
const CLEANUP_SCRIPT: &str = r#"
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

/// The guard of a cluster. Dropping it starts the cleanup without waiting for it.
#[derive(Debug)]
pub struct CleanupGuard {
    tag: ClusterTag,
    child: Child,
}

impl CleanupGuard {
    /// Starts a guard that will remove this directory.
    ///
    /// # Errors
    /// If there is no shell, no way to tag processes, or the guard cannot be started.
    pub fn start(directory: &Path) -> io::Result<Self> {
        let mark = ClusterTag::new()?;
        let mut command = mark.untagged_command(Path::new("/bin/sh"));
        command
            .args(["-c", CLEANUP_SCRIPT, "kubewake-guard", &mark.number().to_string()])
            .arg(std::path::absolute(directory)?);
        command.env_clear().env("PATH", "/usr/bin:/bin").current_dir("/").process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Self { tag: mark, child: command.spawn()? })
    }

    /// The tag for every process of the cluster.
    pub fn cluster_tag(&self) -> &ClusterTag {
        &self.tag
    }

    /// Cleans up, and returns when everything is gone. Blocks for a moment.
    ///
    /// # Errors
    /// If the result of the guard is unknown.
    pub fn stop(mut self) -> io::Result<()> {
        drop(self.child.stdin.take());
        self.child.wait().map(drop)
    }
}

#[cfg(test)]
mod tests;
