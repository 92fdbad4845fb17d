//! Processes: programs under test, and their helpers.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader},
    process::{Child, ChildStdout, Command, Stdio},
    sync::mpsc,
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};

use super::directory;
use crate::steps::command_output;

/// A program that takes longer to start is stuck.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// The collector drains its queues before it exits.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// A running program. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct BenchProcess {
    name: String,
    child: Child,
    /// The line that reported readiness.
    ready: String,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ResidentMemory {
    pub now: u64,
    pub peak: u64,
    /// Memory of the process alone, without the shared pages of the binary.
    pub own: u64,
}

impl BenchProcess {
    /// Starts a program and waits for its line `ready …`. Its standard error goes to a file.
    pub(crate) fn start(name: &str, command: &mut Command) -> anyhow::Result<Self> {
        let log = directory().join(format!("{name}.log"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(&log)?);
        let mut child = command.spawn().with_context(|| format!("failed to start {command:?}"))?;
        let lines = child.stdout.take().map(watch_output);
        let mut process = Self { name: name.to_owned(), child, ready: String::new() };
        let ready = lines.and_then(|lines| lines.recv_timeout(START_TIMEOUT).ok());
        process.ready = ready.with_context(|| format!("{name} did not become ready: see {}", log.display()))?;
        Ok(process)
    }

    /// The address in the line `ready NAME on ADDRESS`.
    pub(crate) fn address(&self) -> anyhow::Result<String> {
        let word = self.ready.split_whitespace().last().unwrap_or_default();
        ensure!(word.contains(':'), "the ready line of {} has no address: {:?}", self.name, self.ready);
        Ok(word.to_owned())
    }

    /// CPU time used so far by its current threads, in nanoseconds: the resolution of `/proc/PID/stat`, a
    /// hundredth of a second, is coarser than the differences to measure.
    pub(crate) fn cpu_time(&self) -> anyhow::Result<Duration> {
        let mut total = Duration::ZERO;
        for thread in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let times = fs::read_to_string(thread?.path().join("schedstat"))?;
            let spent = times.split_whitespace().next().context("schedstat is empty")?;
            total += Duration::from_nanos(spent.parse()?);
        }
        Ok(total)
    }

    /// Current and peak resident memory.
    pub(crate) fn memory(&self) -> anyhow::Result<ResidentMemory> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let kib = line.and_then(|line| line.split_whitespace().next()).and_then(|kib| kib.parse::<u64>().ok());
            kib.map(|kib| kib * 1024).with_context(|| format!("/proc/PID/status has no {name}"))
        };
        Ok(ResidentMemory { now: field("VmRSS:")?, peak: field("VmHWM:")?, own: field("RssAnon:")? })
    }

    /// Sends a signal by its short name.
    pub(crate) fn signal(&self, name: &str) -> anyhow::Result<()> {
        command_output("kill", &[&format!("-{name}"), &self.child.id().to_string()]).map(drop)
    }

    /// Asks the program to stop and waits until it has exited successfully.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        self.signal("TERM")?;
        let deadline = Instant::now() + STOP_TIMEOUT;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait()? {
                ensure!(status.success(), "{} exited with {status}", self.name);
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        bail!("{} did not exit within {} s after SIGTERM", self.name, STOP_TIMEOUT.as_secs())
    }
}

impl Drop for BenchProcess {
    fn drop(&mut self) {
        // After a successful stop the process does not exist any more.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Drains the output of a program, so that it never blocks on a reader, and passes on the `ready` line.
fn watch_output(stdout: ChildStdout) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if line.starts_with("ready") {
                // An error means that the first line was received and the receiver dropped.
                let _ = sender.send(line);
            }
        }
    });
    receiver
}

/// CPU time that all processes and the kernel have used so far.
pub(crate) fn machine_cpu_time() -> anyhow::Result<Duration> {
    /// The unit of times in `/proc`, independent of the kernel's own clock.
    const TICKS_PER_SECOND: u64 = 100;
    let stat = fs::read_to_string("/proc/stat")?;
    let line = stat.lines().next().context("/proc/stat is empty")?;
    // user nice system idle iowait irq softirq
    let times: Vec<u64> = line.split_whitespace().skip(1).map_while(|number| number.parse().ok()).collect();
    let busy = [0, 1, 2, 5, 6].iter().filter_map(|at| times.get(*at)).sum::<u64>();
    Ok(Duration::from_millis(busy * 1000 / TICKS_PER_SECOND))
}
