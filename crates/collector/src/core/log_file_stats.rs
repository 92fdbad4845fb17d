//! Counters of a receiver of log files.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
};

use kubewake_config::{ComponentId, PipelineId};
use kubewake_runtime::lock::Mutex;

/// Counters of a receiver of log files, and how far each of its outputs is.
#[derive(Debug, Default)]
pub struct LogFileStats {
    /// Bytes that were read, more than once where outputs read apart.
    pub read_bytes: AtomicU64,
    /// Records that were submitted, more than once where outputs read apart or read again.
    pub records: AtomicU64,
    /// Logs that are followed.
    pub logs: AtomicU64,
    /// How often something was wrong with a file, by kind.
    problems: Mutex<BTreeMap<&'static str, u64>>,
    outputs: Mutex<Vec<LogOutputProgress>>,
}

/// How far an output is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogOutputProgress {
    pub pipeline: PipelineId,
    pub exporter: ComponentId,
    /// Bytes of the logs that it has not dealt with.
    pub lag_bytes: u64,
    /// The age in seconds of the last line that it has dealt with; 0 if none is left.
    pub lag_seconds: u64,
    /// Bytes that were removed before it had dealt with them.
    pub lost_bytes: u64,
    /// Requests that it returned, which are read again.
    pub returned_requests: u64,
}

impl LogFileStats {
    /// Sets how often something was wrong, by kind.
    pub fn set_problems(&self, problems: impl IntoIterator<Item = (&'static str, u64)>) {
        *self.problems.lock() = problems.into_iter().collect();
    }

    pub fn problems(&self) -> BTreeMap<&'static str, u64> {
        self.problems.lock().clone()
    }

    pub fn set_outputs(&self, outputs: Vec<LogOutputProgress>) {
        *self.outputs.lock() = outputs;
    }

    pub fn outputs(&self) -> Vec<LogOutputProgress> {
        self.outputs.lock().clone()
    }

    pub fn read_bytes(&self) -> u64 {
        self.read_bytes.load(Ordering::Relaxed)
    }
}
