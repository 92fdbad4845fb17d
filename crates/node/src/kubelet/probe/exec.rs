//! A command in a container's environment: exec probes and hooks.
//!
//! The command is a process group of its own. When the time is up, or nobody waits any more, all of the group is killed. What the
//! command leaves in the background is let live, as it would in a container.

use std::{io, path::Path, process::Stdio, time::Duration};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    net::unix::pipe::Receiver,
    process::{Child, Command},
    time::timeout,
};

use super::{ANSWER, Fault, Target};
use crate::kubelet::process;

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Its exit code; 128 and the signal's number if one killed it, as shells say it.
    pub code: i32,
    /// The beginning of what it wrote to standard output and error.
    pub output: String,
}

/// Whether the command exits with 0; if not, what it said.
pub(super) async fn check(command: &[String], target: &Target, limit: Duration) -> Result<(), Fault> {
    let exit = run(command, target, limit).await?;
    match (exit.code, exit.output.trim_end()) {
        (0, _) => Ok(()),
        (code, "") => Err(format!("command {:?} exited with code {code} and said nothing", command.join(" ")).into()),
        (_, output) => Err(output.to_owned().into()),
    }
}

/// Runs a command in the container's environment and directory to its end. The error says why there is none.
pub async fn run(command: &[String], target: &Target, limit: Duration) -> Result<Exit, Fault> {
    let [program, arguments @ ..] = command else { return Err(Fault::Errored("the command is empty".to_owned())) };
    let path = process::find(Path::new(program), &target.dir, &target.env);
    let path = path.map_err(|error| Fault::Errored(error.to_string()))?;
    let started = start(&path, arguments, target);
    let (mut group, output) = started.map_err(|error| Fault::Errored(format!("cannot run {program:?}: {error}")))?;
    match timeout(limit, finish(&mut group, &output)).await {
        Ok(exit) => exit.map_err(|error| Fault::Errored(format!("cannot wait for {program:?}: {error}"))),
        Err(_) => Err(format!("command timed out: {:?} timed out after {limit:?}", command.join(" ")).into()),
    }
}

fn start(program: &Path, arguments: &[String], target: &Target) -> io::Result<(Group, Receiver)> {
    let (reader, writer) = io::pipe()?;
    let child = Command::from(target.mark.command(program))
        .args(arguments)
        .env_clear()
        .envs(target.env.iter().map(|(name, value)| (name, value)))
        .current_dir(&target.dir)
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .process_group(0)
        .spawn()?;
    Ok((Group(child), Receiver::from_owned_fd(reader.into())?))
}

async fn finish(group: &mut Group, output: &Receiver) -> io::Result<Exit> {
    let (mut said, mut open) = (Vec::new(), true);
    let status = loop {
        tokio::select! {
            status = group.0.wait() => break status?,
            ready = output.readable(), if open => {
                ready?;
                open = read(output, &mut said)?;
            }
        }
    };
    read(output, &mut said)?;
    use std::os::unix::process::ExitStatusExt;
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    Ok(Exit { code, output: String::from_utf8_lossy(&said).into_owned() })
}

/// Takes what is in the pipe, and keeps the beginning. Whether more may come.
fn read(output: &Receiver, said: &mut Vec<u8>) -> io::Result<bool> {
    let mut buffer = [0; 4096];
    // A pipe holds 64 KiB; somebody who goes on writing does not keep us here.
    for _ in 0..16 {
        match output.try_read(&mut buffer) {
            Ok(0) => return Ok(false),
            Ok(count) => said.extend(buffer.iter().take(count.min(ANSWER - said.len()))),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// A process and those that it started.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        // The id is there until the process has been waited for: until then nobody else can have it.
        let id = self.0.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(id) = id {
            // It fails if all are gone, which is as good.
            let _ = kill_process_group(id, Signal::KILL);
        }
    }
}
