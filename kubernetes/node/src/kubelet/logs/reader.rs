//! Reads a log with the options of `kubectl logs`.

use std::{fs::File, io, os::unix::fs::FileExt, sync::Arc};

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use kubewake_apiserver::kubelet_client::{LogOptions, LogSince};
use tokio::sync::watch;

use super::{
    line::{LogEntry, format_time},
    run_log::{LogPosition, READ_BLOCK_BYTES, RunLog, WriteProgress},
};

pub(super) struct LogReader {
    log: Arc<RunLog>,
    progress: watch::Receiver<WriteProgress>,
    file: File,
    position: LogPosition,
    /// The start of an incomplete entry.
    rest: Vec<u8>,
    filter: EntryFilter,
    /// The end of the log when the reading began; none when following.
    until: Option<LogPosition>,
    done: bool,
}

impl LogReader {
    pub(super) fn new(log: Arc<RunLog>, options: &LogOptions, now: Timestamp) -> io::Result<Self> {
        let progress = log.progress();
        let here = *progress.borrow();
        let until = (!options.follow).then_some(LogPosition { part: here.part, offset: here.length });
        let at = match options.tail_lines {
            Some(lines) => log.position_before_last(lines)?,
            None => LogPosition { part: 0, offset: 0 },
        };
        let (part, file) = log.open(at.part)?;
        // The requested part may have been rotated away.
        let at = if part == at.part { at } else { LogPosition { part, offset: 0 } };
        let filter = EntryFilter::new(options, now);
        Ok(Self { log, progress, file, position: at, rest: Vec::new(), filter, until, done: false })
    }

    /// The next chunk; none at the end.
    pub(super) async fn next(mut self) -> Option<(Bytes, Self)> {
        while !self.done {
            match self.read_more().await {
                Ok(out) if out.is_empty() => {}
                Ok(out) => return Some((Bytes::from(out), self)),
                Err(error) => {
                    tracing::warn!(%error, "failed to continue reading a log");
                    self.done = true;
                }
            }
        }
        None
    }

    async fn read_more(&mut self) -> io::Result<Vec<u8>> {
        let WriteProgress { part, length, ended } = *self.progress.borrow_and_update();
        let last = self.position.part == part;
        let mut end = if last { length } else { self.file.metadata()?.len() };
        if let Some(until) = self.until.filter(|until| until.part == self.position.part) {
            end = end.min(until.offset);
        }
        if self.position.offset < end {
            return self.read(end);
        }
        if self.until.is_some_and(|until| self.position.part >= until.part) || (last && ended) {
            self.done = true;
        } else if !last {
            let (part, file) = self.log.open(self.position.part + 1)?;
            self.file = file;
            self.position = LogPosition { part, offset: 0 };
            self.rest.clear();
        } else if self.progress.changed().await.is_err() {
            self.done = true;
        }
        Ok(Vec::new())
    }

    fn read(&mut self, end: u64) -> io::Result<Vec<u8>> {
        let length = usize::try_from(end - self.position.offset).unwrap_or(READ_BLOCK_BYTES).min(READ_BLOCK_BYTES);
        let begun = self.rest.len();
        self.rest.resize(begun + length, 0);
        self.file.read_exact_at(self.rest.get_mut(begun..).unwrap_or_default(), self.position.offset)?;
        self.position.offset += length as u64;
        let whole = self.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let mut out = Vec::new();
        for line in self.rest.get(..whole).unwrap_or_default().split_inclusive(|byte| *byte == b'\n') {
            self.filter.push_entry(line.strip_suffix(b"\n").unwrap_or(line), &mut out);
        }
        self.rest.drain(..whole);
        self.done |= self.filter.is_full();
        Ok(out)
    }
}

/// Selects and formats entries.
struct EntryFilter {
    since: Option<String>,
    timestamps: bool,
    /// The remaining bytes of `limitBytes`.
    remaining_bytes: Option<u64>,
    /// Whether the last entry was incomplete, so that the next one gets no timestamp.
    within_line: bool,
}

impl EntryFilter {
    fn new(options: &LogOptions, now: Timestamp) -> Self {
        let since = options.since.and_then(|since| match since {
            LogSince::Time(time) => Some(time),
            // Earlier than the first representable time: everything.
            LogSince::Seconds(seconds) => now.checked_sub(SignedDuration::from_secs(i64::try_from(seconds).ok()?)).ok(),
        });
        Self {
            since: since.map(format_time),
            timestamps: options.timestamps,
            remaining_bytes: options.limit_bytes,
            within_line: false,
        }
    }

    fn push_entry(&mut self, line: &[u8], out: &mut Vec<u8>) {
        let Some(entry) = LogEntry::parse(line) else { return };
        let early = self.since.as_ref().is_some_and(|since| entry.time < since.as_bytes());
        if early {
            return;
        }
        let from = out.len();
        if self.timestamps && !self.within_line {
            out.extend_from_slice(entry.time);
            out.push(b' ');
        }
        out.extend_from_slice(entry.text);
        if entry.full {
            out.push(b'\n');
        }
        self.within_line = !entry.full;
        if let Some(room) = &mut self.remaining_bytes {
            let length = (out.len() - from) as u64;
            out.truncate(from + usize::try_from(length.min(*room)).unwrap_or(0));
            *room = room.saturating_sub(length);
        }
    }

    fn is_full(&self) -> bool {
        self.remaining_bytes == Some(0)
    }
}
