//! Reads a log with the options of `kubectl logs`, from its oldest file on.
//!
//! A kubelet reads the current file only. Here a reader gets everything that is stored, across rotations and
//! compressed files.

use std::{
    io::{self, Read},
    sync::Arc,
};

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use kubewake_apiserver::kubelet_client::{LogOptions, LogSince};
use tokio::sync::watch;

use super::{
    line::{LogEntry, MAX_TEXT_BYTES, format_fixed_time},
    log_file::{LogFile, READ_BLOCK_BYTES},
    run_log::{LogPosition, RunLog, WriteProgress},
};

/// The longest entry that is read. Programs can write to the files, too, so that anything may be in them.
const MAX_ENTRY_BYTES: usize = MAX_TEXT_BYTES + (1 << 10);

pub(super) struct LogReader {
    log: Arc<RunLog>,
    progress: watch::Receiver<WriteProgress>,
    file: LogFile,
    position: LogPosition,
    /// The start of an incomplete entry.
    rest: Vec<u8>,
    filter: EntryFilter,
    /// The end of the log when the reading began; none when following.
    until: Option<LogPosition>,
    done: bool,
}

/// The result of one step of a reader.
enum ReadStep {
    /// The text of some entries, or nothing.
    Text(Vec<u8>),
    /// Everything that was written has been read.
    Waits,
}

impl LogReader {
    /// Blocks while it looks for the start.
    pub(super) fn new(log: Arc<RunLog>, options: &LogOptions, now: Timestamp) -> io::Result<Self> {
        let progress = log.progress();
        let here = *progress.borrow();
        let until = (!options.follow).then_some(LogPosition { part: here.part, offset: here.length });
        let at = match options.tail_lines {
            Some(lines) => log.position_before_last(lines)?,
            None => LogPosition { part: 0, offset: 0 },
        };
        let (part, mut file) = log.open(at.part)?;
        // The requested part may have been removed.
        let at = if part == at.part { at } else { LogPosition { part, offset: 0 } };
        file.skip(at.offset)?;
        let filter = EntryFilter::new(options, now);
        Ok(Self { log, progress, file, position: at, rest: Vec::new(), filter, until, done: false })
    }

    /// The next chunk; none at the end.
    pub(super) async fn next(mut self) -> Option<(Bytes, Self)> {
        while !self.done {
            match self.step() {
                Ok(ReadStep::Text(text)) if text.is_empty() => {}
                Ok(ReadStep::Text(text)) => return Some((Bytes::from(text), self)),
                Ok(ReadStep::Waits) => self.done = self.progress.changed().await.is_err(),
                Err(error) => {
                    tracing::warn!(%error, "failed to continue reading a log");
                    self.done = true;
                }
            }
        }
        None
    }

    /// Everything up to the present end.
    pub(super) fn read_to_end(mut self) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        while !self.done
            && let ReadStep::Text(text) = self.step()?
        {
            all.extend_from_slice(&text);
        }
        Ok(all)
    }

    fn step(&mut self) -> io::Result<ReadStep> {
        let WriteProgress { part, length, ended } = *self.progress.borrow_and_update();
        let is_last = self.position.part == part;
        let end = match self.until.filter(|until| until.part == self.position.part) {
            Some(until) => Some(until.offset),
            // A rotated file has its own end.
            None => is_last.then_some(length),
        };
        let room = end.map_or(u64::MAX, |end| end.saturating_sub(self.position.offset));
        if room > 0
            && let Some(text) = self.read(room)?
        {
            return Ok(ReadStep::Text(text));
        }
        if self.until.is_some_and(|until| self.position.part >= until.part) || (is_last && ended) {
            self.done = true;
        } else if is_last {
            return Ok(ReadStep::Waits);
        } else {
            let (part, file) = self.log.open(self.position.part + 1)?;
            self.file = file;
            self.position = LogPosition { part, offset: 0 };
            self.rest.clear();
            self.done = self.until.is_some_and(|until| part > until.part);
        }
        Ok(ReadStep::Text(Vec::new()))
    }

    /// Reads at most `room` bytes; none at the end of the file.
    fn read(&mut self, room: u64) -> io::Result<Option<Vec<u8>>> {
        let length = usize::try_from(room).unwrap_or(READ_BLOCK_BYTES).min(READ_BLOCK_BYTES);
        let begun = self.rest.len();
        self.rest.resize(begun + length, 0);
        let length = self.file.read(self.rest.get_mut(begun..).unwrap_or_default())?;
        self.rest.truncate(begun + length);
        if length == 0 {
            return Ok(None);
        }
        self.position.offset += length as u64;
        let whole = self.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let mut out = Vec::new();
        for line in self.rest.get(..whole).unwrap_or_default().split_inclusive(|byte| *byte == b'\n') {
            self.filter.push_entry(line.strip_suffix(b"\n").unwrap_or(line), &mut out);
        }
        self.rest.drain(..whole);
        if self.rest.len() > MAX_ENTRY_BYTES {
            self.rest.clear();
        }
        self.done |= self.filter.is_full();
        Ok(Some(out))
    }
}

/// Selects and formats entries, as a kubelet does.
struct EntryFilter {
    since: Option<Timestamp>,
    timestamps: bool,
    /// The remaining bytes of `limitBytes`.
    remaining_bytes: Option<u64>,
    /// Whether the next entry begins a line, and so gets a timestamp. As in a kubelet, the streams are not told
    /// apart.
    begins_line: bool,
}

impl EntryFilter {
    fn new(options: &LogOptions, now: Timestamp) -> Self {
        let since = options.since.and_then(|since| match since {
            LogSince::Time(time) => Some(time),
            // Earlier than the first representable time: everything.
            LogSince::Seconds(seconds) => now.checked_sub(SignedDuration::from_secs(i64::try_from(seconds).ok()?)).ok(),
        });
        Self { since, timestamps: options.timestamps, remaining_bytes: options.limit_bytes, begins_line: true }
    }

    fn push_entry(&mut self, line: &[u8], out: &mut Vec<u8>) {
        let Some(entry) = LogEntry::parse(line) else { return };
        let is_timed = self.since.is_some() || self.timestamps;
        let time = if is_timed { entry.timestamp() } else { None };
        if is_timed && time.is_none() {
            return;
        }
        let begins_line = std::mem::replace(&mut self.begins_line, entry.full || entry.text.is_empty());
        if self.since.is_some_and(|since| time.is_some_and(|time| time < since)) {
            return;
        }
        let from = out.len();
        if let Some(time) = time.filter(|_| self.timestamps && begins_line) {
            out.extend_from_slice(format_fixed_time(time).as_bytes());
            out.push(b' ');
        }
        out.extend_from_slice(entry.text);
        if entry.full {
            out.push(b'\n');
        }
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
