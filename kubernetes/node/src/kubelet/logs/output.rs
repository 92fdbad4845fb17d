//! The output of one run of a container, on its way to the log.
//!
//! *Guaranteed*: each stream is written in order, with bounded memory. A program that writes faster than
//! [`MAX_BYTES_PER_SECOND`] has to wait, so that it blocks neither the node nor other containers.

use std::{io, sync::Arc, time::Duration};

use jiff::Timestamp;
use kubewake_apiserver::kubelet_client::LogOptions;
use tokio::{net::unix::pipe::Receiver, time::Instant};

use super::{
    line::{LineSplitter, OutputStream},
    reader::LogReader,
    run_log::RunLog,
};
use crate::kubelet::process::ProcessOutput;

/// The bytes of output that are read at once. Short lines become more than ten times as long in the log.
const READ_CHUNK_BYTES: usize = 32 << 10;
/// The bytes that one stream may add to its log in a second: enough for a container that logs tens of MB/s, and
/// with [`LogRotation`](super::LogRotation) a bound for the size of a file.
pub(super) const MAX_BYTES_PER_SECOND: u32 = 48 << 20;
/// A shorter wait is not worth a timer.
const MIN_PAUSE: Duration = Duration::from_millis(2);
/// How much earlier time counts that was not used, as timers are late.
const MAX_CREDIT: Duration = Duration::from_millis(20);

/// The output of one run. Clones share its log.
#[derive(Clone, Debug)]
pub(in crate::kubelet) struct RunOutput {
    log: Arc<RunLog>,
    number: i32,
}

impl RunOutput {
    pub(super) fn new(log: Arc<RunLog>, number: i32) -> Self {
        Self { log, number }
    }

    /// The restart count in the name of the log.
    pub(in crate::kubelet) fn number(&self) -> i32 {
        self.number
    }

    /// Stores the output until both streams have ended.
    pub(in crate::kubelet) async fn store_output(self, output: ProcessOutput) {
        let out = self.store_stream(output.stdout, OutputStream::Stdout);
        let err = self.store_stream(output.stderr, OutputStream::Stderr);
        tokio::join!(out, err);
        self.log.finish();
    }

    pub(in crate::kubelet) fn finish(&self) {
        self.log.finish();
    }

    async fn store_stream(&self, from: Receiver, stream: OutputStream) {
        let mut splitter = LineSplitter::new(stream);
        let mut pace = WritePace(Instant::now());
        while from.readable().await.is_ok() {
            // Allocated for each read: there may be many containers, and most are silent most of the time.
            let mut block = Vec::with_capacity(READ_CHUNK_BYTES);
            let mut entries = Vec::new();
            match from.try_read_buf(&mut block) {
                Ok(0) => break,
                Ok(_) => splitter.push(&block, Timestamp::now(), &mut entries),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(_) => break,
            }
            drop(block);
            self.append(&entries);
            pace.wait_after(entries.len()).await;
        }
        let mut entries = Vec::new();
        splitter.finish(Timestamp::now(), &mut entries);
        self.append(&entries);
    }

    /// The write goes to the page cache, so it does not need a blocking thread.
    pub(super) fn append(&self, entries: &[u8]) {
        if !entries.is_empty()
            && let Err(error) = self.log.append(entries)
        {
            tracing::warn!(%error, "failed to write a container's log, lines are lost");
        }
    }

    /// The tail of the log, limited in lines and bytes.
    pub(in crate::kubelet) fn tail(&self, lines: u64, bytes: usize) -> String {
        let options = LogOptions { tail_lines: Some(lines), ..LogOptions::default() };
        let reader = LogReader::new(Arc::clone(&self.log), &options, Timestamp::now());
        let text = reader.and_then(LogReader::read_to_end).unwrap_or_default();
        let text = text.get(text.len().saturating_sub(bytes)..).unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    }
}

/// The time from which on a stream may write again.
struct WritePace(Instant);

impl WritePace {
    async fn wait_after(&mut self, written: usize) {
        let now = Instant::now();
        let earliest = now.checked_sub(MAX_CREDIT).unwrap_or(now);
        let bytes = u32::try_from(written).unwrap_or(u32::MAX);
        self.0 =
            self.0.max(earliest) + Duration::from_secs(1).mul_f64(f64::from(bytes) / f64::from(MAX_BYTES_PER_SECOND));
        if self.0 > now + MIN_PAUSE {
            tokio::time::sleep_until(self.0).await;
        }
    }
}
