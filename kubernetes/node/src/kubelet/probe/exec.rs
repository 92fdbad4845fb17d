//! Commands in a container's environment, for exec probes and hooks.
//!
//! The command has a process group of its own. After its timeout, or when it is dropped, the whole group is
//! killed. Background processes of a finished command keep running, as in a container.

use std::{io, path::Path, process::Stdio, time::Duration};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    net::unix::pipe::Receiver,
    process::{Child, Command},
    time::timeout,
};

use super::{MAX_RESPONSE_BYTES, ProbeError, ProbeTarget};
use crate::kubelet::process;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandExit {
    /// The exit code; 128 plus the number of the signal that killed the command, as in shells.
    pub code: i32,
    /// The start of standard output and error.
    pub output: String,
}

/// Whether the command exits with 0; the error contains its output.
pub(super) async fn check_command(command: &[String], target: &ProbeTarget, limit: Duration) -> Result<(), ProbeError> {
    let exit = run_command(command, target, limit).await?;
    match (exit.code, exit.output.trim_end()) {
        (0, _) => Ok(()),
        (code, "") => Err(format!("command {:?} exited with code {code} and no output", command.join(" ")).into()),
        (_, output) => Err(output.to_owned().into()),
    }
}

/// Runs a command to its end in the container's environment and directory.
pub async fn run_command(command: &[String], target: &ProbeTarget, limit: Duration) -> Result<CommandExit, ProbeError> {
    let [program, arguments @ ..] = command else { return Err(ProbeError::Errored("the command is empty".to_owned())) };
    let path = process::find_program(Path::new(program), &target.dir, &target.env);
    let path = path.map_err(|error| ProbeError::Errored(error.to_string()))?;
    let started = spawn_command(&path, arguments, target);
    let (mut group, output) =
        started.map_err(|error| ProbeError::Errored(format!("failed to run {program:?}: {error}")))?;
    match timeout(limit, collect_exit(&mut group, &output)).await {
        Ok(exit) => exit.map_err(|error| ProbeError::Errored(format!("failed to wait for {program:?}: {error}"))),
        Err(_) => Err(format!("command timed out: {:?} timed out after {limit:?}", command.join(" ")).into()),
    }
}

fn spawn_command(program: &Path, arguments: &[String], target: &ProbeTarget) -> io::Result<(ProcessGroup, Receiver)> {
    let (reader, writer) = io::pipe()?;
    let child = Command::from(target.tag.tagged_command(program))
        .args(arguments)
        .env_clear()
        .envs(target.env.iter().map(|(name, value)| (name, value)))
        .current_dir(&target.dir)
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .process_group(0)
        .spawn()?;
    Ok((ProcessGroup(child), Receiver::from_owned_fd(reader.into())?))
}

async fn collect_exit(group: &mut ProcessGroup, output: &Receiver) -> io::Result<CommandExit> {
    let mut said = Vec::new();
    let mut open = true;
    let status = loop {
        tokio::select! {
            status = group.0.wait() => break status?,
            ready = output.readable(), if open => {
                ready?;
                open = read_available(output, &mut said)?;
            }
        }
    };
    read_available(output, &mut said)?;
    use std::os::unix::process::ExitStatusExt;
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    Ok(CommandExit { code, output: String::from_utf8_lossy(&said).into_owned() })
}

/// Reads the available data and keeps the start of it. Returns whether more may follow.
fn read_available(output: &Receiver, said: &mut Vec<u8>) -> io::Result<bool> {
    let mut buffer = [0; 4096];
    // A pipe holds 64 KiB; the loop is bounded in case of an endless writer.
    for _ in 0..16 {
        match output.try_read(&mut buffer) {
            Ok(0) => return Ok(false),
            Ok(count) => said.extend(buffer.iter().take(count.min(MAX_RESPONSE_BYTES - said.len()))),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// A process and its group; killed on drop.
struct ProcessGroup(Child);

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        // The id is valid until the process is reaped: no other process can have it before.
        let id = self.0.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(id) = id {
            // An error means that no process is left.
            let _ = kill_process_group(id, Signal::KILL);
        }
    }
}
