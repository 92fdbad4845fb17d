//! The thread that makes writes durable: it takes what is waiting, appends it as one frame, syncs once, and publishes it.

use std::{
    fs::File,
    io,
    sync::Arc,
    thread::{self, JoinHandle},
};

use super::{
    WriteError,
    disk::{Frame, Log, Snapshot},
    shared::{Shared, Write},
};

/// As much goes into one frame: more would make the first writers wait for the last, and be a large part of the history.
const BATCH: usize = 4 << 20;

/// The thread's own things.
struct Flusher {
    shared: Arc<Shared>,
    log: Log,
    /// The log may be as much larger than twice the live data.
    slack: u64,
    /// The compaction that is going on, and the length of the log when it began.
    compaction: Option<(JoinHandle<io::Result<File>>, u64)>,
    /// No compaction before the log is as long: one has failed.
    not_before: u64,
}

/// Marks the store as closed when the thread ends, however it ends: nobody waits for a flush that never comes.
struct Closing(Arc<Shared>);

/// Starts the thread. It ends when the writer is closed and everything that was accepted is durable.
pub(super) fn start(shared: Arc<Shared>, log: Log, slack: u64) -> io::Result<JoinHandle<()>> {
    let flusher = Flusher { shared, log, slack, compaction: None, not_before: 0 };
    thread::Builder::new().name("store-flusher".into()).spawn(|| {
        let _closing = Closing(Arc::clone(&flusher.shared));
        flusher.run();
    })
}

impl Flusher {
    fn run(mut self) {
        while let Some((batch, compacted)) = self.take() {
            if !batch.is_empty() {
                self.flush(batch);
            }
            if compacted && let Some((thread, from)) = self.compaction.take() {
                self.finish(thread, from);
            } else if self.compaction.is_none() && self.is_due() {
                self.begin();
            }
        }
        if let Some((thread, _)) = self.compaction.take() {
            // Its file is left where it is: the next start removes it.
            let _ = thread.join();
        }
    }

    /// Waits for work: writes, and whether a compaction has ended. None when the store was closed.
    fn take(&self) -> Option<(Vec<Write>, bool)> {
        let mut writer = self.shared.writer();
        while writer.queue.is_empty() && !writer.closed && !writer.compacted {
            writer = self.shared.wait(writer);
        }
        if writer.queue.is_empty() && writer.closed {
            return None;
        }
        let compacted = std::mem::take(&mut writer.compacted);
        let mut bytes = 0;
        let mut fits = |write: &Write| {
            bytes += write.object.body.len();
            bytes <= BATCH
        };
        let count = 1 + writer.queue.iter().skip(1).take_while(|write| fits(write)).count();
        let count = count.min(writer.queue.len());
        Some((writer.queue.drain(..count).collect(), compacted))
    }

    fn flush(&mut self, batch: Vec<Write>) {
        let mut frame = Frame::new();
        for write in &batch {
            frame.push(write.kind, &write.object);
        }
        frame.seal();
        let revision = batch.last().map_or(0, |write| write.object.revision);
        match self.log.append(&frame, revision) {
            Ok(()) => self.shared.publish(batch),
            Err(error) => {
                tracing::error!(%error, writes = batch.len(), "writes failed: the log cannot be written");
                self.shared.refuse(batch, &WriteError::Disk(Arc::new(error)));
            }
        }
    }

    fn is_due(&self) -> bool {
        let live = self.shared.state().bytes as u64;
        self.log.len() > self.not_before && self.log.len() > 2 * live + self.slack
    }

    /// Everything in the log is published when this is called: the snapshot holds it.
    fn begin(&mut self) {
        let snapshot = Snapshot::take(&self.shared.state());
        let (dir, shared) = (self.log.dir().to_owned(), Arc::clone(&self.shared));
        let work = move || {
            let file = snapshot.write(&dir);
            shared.writer().compacted = true;
            shared.work.notify_one();
            file
        };
        match thread::Builder::new().name("store-compaction".into()).spawn(work) {
            Ok(thread) => self.compaction = Some((thread, self.log.len())),
            Err(error) => self.give_up(&error),
        }
    }

    fn finish(&mut self, thread: JoinHandle<io::Result<File>>, from: u64) {
        let written = thread.join().unwrap_or_else(|_| Err(io::Error::other("the compaction's thread died")));
        let before = self.log.len();
        match written.and_then(|file| self.log.replace(file, from)) {
            Ok(()) => {
                self.not_before = 0;
                tracing::debug!(before, after = self.log.len(), "compacted the log");
            }
            Err(error) => self.give_up(&error),
        }
    }

    /// The old log goes on. Another try when it has grown by half.
    fn give_up(&mut self, error: &io::Error) {
        self.not_before = self.log.len() + self.log.len() / 2;
        // It may be what fills the disk.
        self.log.discard_new();
        tracing::warn!(%error, "could not compact the log");
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        let mut writer = self.0.writer();
        writer.closed = true;
        let left: Vec<Write> = writer.queue.drain(..).collect();
        drop(writer);
        self.0.refuse(left, &WriteError::Closed);
    }
}
