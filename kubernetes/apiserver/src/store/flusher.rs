//! The thread that makes writes durable: it takes the queued writes, appends them as one frame, syncs once, and
//! publishes them.

use std::{
    fs::File,
    io,
    sync::Arc,
    thread::{self, JoinHandle},
};

use super::{
    WriteError,
    disk::{WalFrame, WalSnapshot, WriteAheadLog},
    shared::{PendingWrite, SharedStore},
};

/// The limit of one frame: a larger one would make the first writers wait for the last, and be a large part of
/// the history.
const MAX_BATCH_BYTES: usize = 4 << 20;

struct Flusher {
    shared: Arc<SharedStore>,
    log: WriteAheadLog,
    /// The log may exceed twice the live data by this many bytes.
    slack: u64,
    /// The running compaction, and the length of the log when it began.
    compaction: Option<(JoinHandle<io::Result<File>>, u64)>,
    /// The log length before which no compaction starts, since one has failed.
    not_before: u64,
}

/// Marks the store as closed when the thread ends, however it ends, so that no writer waits for ever.
struct CloseGuard(Arc<SharedStore>);

/// Starts the thread. It ends when the queue is closed and every accepted write is durable.
pub(super) fn start(shared: Arc<SharedStore>, log: WriteAheadLog, slack: u64) -> io::Result<JoinHandle<()>> {
    let flusher = Flusher { shared, log, slack, compaction: None, not_before: 0 };
    thread::Builder::new().name("store-flusher".into()).spawn(|| {
        let _closing = CloseGuard(Arc::clone(&flusher.shared));
        flusher.run();
    })
}

impl Flusher {
    fn run(mut self) {
        while let Some((batch, compacted)) = self.next_batch() {
            if !batch.is_empty() {
                self.flush(batch);
            }
            if compacted && let Some((thread, from)) = self.compaction.take() {
                self.finish_compaction(thread, from);
            } else if self.compaction.is_none() && self.is_compaction_due() {
                self.start_compaction();
            }
        }
        if let Some((thread, _)) = self.compaction.take() {
            // Its file is left behind: the next start removes it.
            let _ = thread.join();
        }
    }

    /// Waits for work: writes, and whether a compaction has ended. None when the store is closed.
    fn next_batch(&self) -> Option<(Vec<PendingWrite>, bool)> {
        let mut writer = self.shared.lock_write_queue();
        while writer.queue.is_empty() && !writer.closed && !writer.compacted {
            writer = self.shared.wait_for_writes(writer);
        }
        if writer.queue.is_empty() && writer.closed {
            return None;
        }
        let compacted = std::mem::take(&mut writer.compacted);
        let mut bytes = 0;
        let mut fits = |write: &PendingWrite| {
            bytes += write.object.body.len();
            bytes <= MAX_BATCH_BYTES
        };
        let count = 1 + writer.queue.iter().skip(1).take_while(|write| fits(write)).count();
        let count = count.min(writer.queue.len());
        Some((writer.queue.drain(..count).collect(), compacted))
    }

    fn flush(&mut self, batch: Vec<PendingWrite>) {
        let mut frame = WalFrame::new();
        for write in &batch {
            frame.push(write.kind, &write.object);
        }
        frame.seal();
        let revision = batch.last().map_or(0, |write| write.object.revision);
        match self.log.append(&frame, revision) {
            Ok(()) => self.shared.publish(batch),
            Err(error) => {
                tracing::error!(%error, writes = batch.len(), "failed to write the store's log, refusing the writes");
                self.shared.fail_writes(batch, &WriteError::Disk(Arc::new(error)));
            }
        }
    }

    fn is_compaction_due(&self) -> bool {
        let live = self.shared.state().bytes as u64;
        self.log.len() > self.not_before && self.log.len() > 2 * live + self.slack
    }

    /// Every write in the log is published when this is called, so that the snapshot includes it.
    fn start_compaction(&mut self) {
        let snapshot = WalSnapshot::capture(&self.shared.state());
        let dir = self.log.dir().to_owned();
        let shared = Arc::clone(&self.shared);
        let work = move || {
            let file = snapshot.write(&dir);
            shared.lock_write_queue().compacted = true;
            shared.work.notify_one();
            file
        };
        match thread::Builder::new().name("store-compaction".into()).spawn(work) {
            Ok(thread) => self.compaction = Some((thread, self.log.len())),
            Err(error) => self.abort_compaction(&error),
        }
    }

    fn finish_compaction(&mut self, thread: JoinHandle<io::Result<File>>, from: u64) {
        let written = thread.join().unwrap_or_else(|_| Err(io::Error::other("the compaction thread panicked")));
        let before = self.log.len();
        match written.and_then(|file| self.log.replace_file(file, from)) {
            Ok(()) => {
                self.not_before = 0;
                tracing::debug!(before, after = self.log.len(), "compacted the store's log");
            }
            Err(error) => self.abort_compaction(&error),
        }
    }

    /// Keeps the old log. The next attempt is made when it has grown by half.
    fn abort_compaction(&mut self, error: &io::Error) {
        self.not_before = self.log.len() + self.log.len() / 2;
        // The new file may be what fills the disk.
        self.log.discard_new();
        tracing::warn!(%error, "failed to compact the store's log");
    }
}

impl Drop for CloseGuard {
    fn drop(&mut self) {
        let mut writer = self.0.lock_write_queue();
        writer.closed = true;
        let left: Vec<PendingWrite> = writer.queue.drain(..).collect();
        drop(writer);
        self.0.fail_writes(left, &WriteError::Closed);
    }
}
