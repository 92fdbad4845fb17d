//! A program under callgrind, which counts the instructions that it executes. Needs `valgrind`.
//!
//! *Guaranteed*: the counts are those of exactly the requests that were asked for. A run in which a request was refused, or a
//! span was lost or arrived twice, is an error.
//!
//! *Assumed*: valgrind runs a program some fifty times slower, and one thread at a time. So nothing that is counted may
//! depend on the clock: with the default timeout of five seconds an exporter gives up on batches that take longer to
//! compress, compresses them again, and drops them when the collector ends. What such a run counts is chance.

use std::{fs, path::Path, process::Command, time::Duration};

use anyhow::ensure;

use super::{
    beside::relay_arguments,
    config::{Config, Parts},
    directory,
    load::{Load, SPANS},
    process::Process,
    sink::Sink,
    workload::Workload,
};

/// Settings of `batch`, whose batches are full in less time than this even under valgrind, so that their number is the same
/// in each run.
const BATCH_SETTINGS: &str = "    timeout: 5s\n";
/// Settings of `otlp` with which no batch is sent a second time; without a timeout, none fails because it is slow.
const EXPORTER_SETTINGS: &str = "    timeout: 0s\n    retry_on_failure:\n      enabled: false\n";
/// How long the last batches may take to arrive: three thousand gzip requests take more than five minutes on a busy machine.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(900);

/// What runs under callgrind.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Program<'a> {
    Collector(&'a Path),
    Relay(&'a Path),
}

/// A run of a program.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    /// What its files are called.
    pub name: &'a str,
    pub program: Program<'a>,
    pub workload: Workload,
    pub requests: u64,
    /// Arguments of callgrind.
    pub options: &'a [&'a str],
}

impl Run<'_> {
    /// Sends the requests, ends the program, and returns what callgrind wrote.
    pub(crate) fn profile(&self) -> anyhow::Result<String> {
        let counts = directory().join(format!("{}.callgrind", self.name));
        let mut command = Command::new("valgrind");
        command.arg("--tool=callgrind").args(self.options).arg(format!("--callgrind-out-file={}", counts.display()));
        let sink = Sink::start(&format!("{}-sink", self.name))?;
        let (process, address) = self.start(command, &sink)?;
        let load = Load::new(self.name, &address).args(&["--requests", &self.requests.to_string(), "--timeout", "60"]);
        let sent = load.rate(20_000).gzip(self.workload.is_gzip()).run()?;
        let (acknowledged, expected) = (sent.acknowledged(), self.requests * SPANS);
        ensure!(acknowledged == expected, "{acknowledged} of {expected} spans are acknowledged: {}", sent.codes());
        if self.workload.keeps_all() {
            let missing = sink.missing(sent.acknowledged_file(), DELIVERY_TIMEOUT)?;
            ensure!(missing == 0, "{missing} of {expected} spans did not arrive");
        }
        process.stop()?;
        let doubled = sink.count("/duplicates")?;
        ensure!(doubled == 0, "{doubled} of {expected} spans arrived twice");
        Ok(fs::read_to_string(&counts)?)
    }

    fn start(&self, mut command: Command, sink: &Sink) -> anyhow::Result<(Process, String)> {
        match self.program {
            Program::Relay(program) => {
                let arguments = relay_arguments(&sink.address, self.workload.is_gzip());
                let process = Process::start(self.name, command.arg(program).args(arguments))?;
                let address = process.address()?;
                Ok((process, address))
            }
            Program::Collector(program) => {
                let config = Config::new(self.name)?;
                config.write(&without_clock(self.workload.parts(&sink.address)))?;
                command.arg(program).args(["collector", "--config"]).arg(&config.path);
                Ok((Process::start(self.name, &mut command)?, config.grpc))
            }
        }
    }
}

/// The same configuration, in which what a request costs does not depend on how long it takes.
fn without_clock(mut parts: Parts) -> Parts {
    parts.processors += BATCH_SETTINGS;
    parts.exporters += EXPORTER_SETTINGS;
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_without_clock_are_those_of_batch_and_exporter() {
        for workload in Workload::ALL {
            let parts = without_clock(workload.parts("127.0.0.1:4317"));
            let owner = |text: &str, settings: &str| {
                let before = text.strip_suffix(settings).unwrap();
                before.lines().rfind(|line| !line.starts_with("   ")).unwrap().to_owned()
            };
            assert_eq!(owner(&parts.processors, BATCH_SETTINGS), "  batch:");
            assert_eq!(owner(&parts.exporters, EXPORTER_SETTINGS), "  otlp:");
        }
    }
}
