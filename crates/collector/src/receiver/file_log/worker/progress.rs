//! How far the outputs are, for metrics.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use super::FileLogWorker;
use crate::{core::LogOutputProgress, receiver::file_log::log_reader::unix_nanoseconds};

/// How often the progress is published.
const PUBLISH_INTERVAL: Duration = Duration::from_secs(1);

impl FileLogWorker {
    /// Publishes how far the outputs are, from time to time.
    pub(super) fn publish_progress(&mut self) {
        let now = Instant::now();
        if now < self.progress_at {
            return;
        }
        self.progress_at = now + PUBLISH_INTERVAL;
        let Some(open) = &self.open else { return };
        let statistics = open.files.statistics();
        self.stats.logs.store(statistics.streams as u64, Ordering::Relaxed);
        self.stats.set_problems(statistics.problems.iter().map(|(kind, count)| (kind.as_str(), *count)));
        let clock = unix_nanoseconds();
        let progress = self.outputs.iter().map(|(id, output)| {
            let lag_bytes = open.files.unread_bytes(id).iter().map(|(_, bytes)| bytes).sum();
            let age = clock.saturating_sub(output.settled_until()) / 1_000_000_000;
            LogOutputProgress {
                pipeline: output.pipeline.clone(),
                exporter: output.receipt.exporter.clone(),
                lag_bytes,
                lag_seconds: if lag_bytes > 0 { age } else { 0 },
                lost_bytes: output.lost_bytes(),
                returned_requests: output.returned_requests(),
            }
        });
        self.stats.set_outputs(progress.collect());
    }

    /// The receiver has ended: nothing lags any more.
    pub(super) fn withdraw_progress(&self) {
        self.stats.logs.store(0, Ordering::Relaxed);
        self.stats.set_outputs(Vec::new());
    }
}
