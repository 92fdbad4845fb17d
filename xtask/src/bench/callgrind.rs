//! Runs a program under callgrind, which counts executed instructions. Needs `valgrind`.
//!
//! *Guaranteed*: the counts cover exactly the given requests. A run in which a request was refused, or a span
//! was lost or duplicated, is an error.
//!
//! *Assumed*: valgrind runs a program some fifty times slower, and one thread at a time. So the counted work
//! must not depend on the clock: with the default timeout of five seconds an exporter gives up on batches that
//! take longer to compress, compresses them again, and drops them when the collector ends. The counts of such a
//! run are random.

use std::{fs, path::Path, process::Command, time::Duration};

use anyhow::ensure;

use super::{
    config::{CollectorFile, DocumentParts},
    directory,
    load::{LoadCommand, SPANS_PER_REQUEST},
    process::BenchProcess,
    side_by_side::relay_arguments,
    sink::BenchSink,
    workload::BenchWorkload,
};

/// Settings of `batch`. Batches are full before the timeout even under valgrind, so that their number is the
/// same in each run.
const BATCH_SETTINGS: &str = "    timeout: 5s\n";
/// Settings of `otlp` without retries, and without a timeout that a slow export could exceed.
const EXPORTER_SETTINGS: &str = "    timeout: 0s\n    retry_on_failure:\n      enabled: false\n";
/// How long the last batches may take to arrive: three thousand gzip requests take more than five minutes on a
/// busy machine.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(900);

#[derive(Clone, Copy, Debug)]
pub(crate) enum ProfiledProgram<'a> {
    Collector(&'a Path),
    Relay(&'a Path),
}

/// A program run under callgrind.
#[derive(Debug)]
pub(crate) struct CallgrindRun<'a> {
    /// The name of its files.
    pub name: &'a str,
    pub program: ProfiledProgram<'a>,
    pub workload: BenchWorkload,
    pub requests: u64,
    pub options: &'a [&'a str],
}

impl CallgrindRun<'_> {
    /// Sends the requests, ends the program, and returns callgrind's output.
    pub(crate) fn profile(&self) -> anyhow::Result<String> {
        let counts = directory().join(format!("{}.callgrind", self.name));
        let mut command = Command::new("valgrind");
        command.arg("--tool=callgrind").args(self.options).arg(format!("--callgrind-out-file={}", counts.display()));
        let sink = BenchSink::start(&format!("{}-sink", self.name))?;
        let (process, address) = self.start(command, &sink)?;
        let load =
            LoadCommand::new(self.name, &address).args(&["--requests", &self.requests.to_string(), "--timeout", "60"]);
        let sent = load.rate(20_000).gzip(self.workload.is_gzip()).run()?;
        let acknowledged = sent.acknowledged();
        let expected = self.requests * SPANS_PER_REQUEST;
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

    fn start(&self, mut command: Command, sink: &BenchSink) -> anyhow::Result<(BenchProcess, String)> {
        match self.program {
            ProfiledProgram::Relay(program) => {
                let arguments = relay_arguments(&sink.address, self.workload.is_gzip());
                let process = BenchProcess::start(self.name, command.arg(program).args(arguments))?;
                let address = process.address()?;
                Ok((process, address))
            }
            ProfiledProgram::Collector(program) => {
                let config = CollectorFile::new(self.name)?;
                config.write(&without_clock(self.workload.parts(&sink.address)))?;
                command.arg(program).args(["collector", "--config"]).arg(&config.path);
                Ok((BenchProcess::start(self.name, &mut command)?, config.grpc))
            }
        }
    }
}

/// The same configuration with settings that make the cost of a request independent of its duration.
fn without_clock(mut parts: DocumentParts) -> DocumentParts {
    parts.processors += BATCH_SETTINGS;
    parts.exporters += EXPORTER_SETTINGS;
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_without_clock_are_those_of_batch_and_exporter() {
        for workload in BenchWorkload::ALL {
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
