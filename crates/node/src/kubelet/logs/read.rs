//! Reads a log back, as `kubectl logs` asks for it.

use std::{fs::File, io, os::unix::fs::FileExt, sync::Arc};

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use kubewake_apiserver::nodes::{LogOptions, Since};
use tokio::sync::watch;

use super::{
    file::{BLOCK, Place, Progress, RunLog},
    line::{Entry, format_time},
};

/// One who reads.
pub(super) struct Reader {
    log: Arc<RunLog>,
    progress: watch::Receiver<Progress>,
    /// Of this part.
    file: File,
    at: Place,
    /// The beginning of an entry whose end was not read yet.
    rest: Vec<u8>,
    filter: Filter,
    /// What was written when the reading began, unless it is followed.
    until: Option<Place>,
    done: bool,
}

impl Reader {
    pub(super) fn new(log: Arc<RunLog>, options: &LogOptions, now: Timestamp) -> io::Result<Self> {
        let progress = log.progress();
        let here = *progress.borrow();
        let until = (!options.follow).then_some(Place { part: here.part, offset: here.length });
        let at = match options.tail_lines {
            Some(lines) => log.before_last(lines)?,
            None => Place { part: 0, offset: 0 },
        };
        let (part, file) = log.open(at.part)?;
        // What was to be read first may be gone by now.
        let at = if part == at.part { at } else { Place { part, offset: 0 } };
        let filter = Filter::new(options, now);
        Ok(Self { log, progress, file, at, rest: Vec::new(), filter, until, done: false })
    }

    /// The next piece; none when there is nothing more.
    pub(super) async fn next(mut self) -> Option<(Bytes, Self)> {
        while !self.done {
            match self.step().await {
                Ok(out) if out.is_empty() => {}
                Ok(out) => return Some((Bytes::from(out), self)),
                Err(error) => {
                    tracing::warn!(%error, "a log cannot be read further");
                    self.done = true;
                }
            }
        }
        None
    }

    async fn step(&mut self) -> io::Result<Vec<u8>> {
        let Progress { part, length, ended } = *self.progress.borrow_and_update();
        let last = self.at.part == part;
        let mut end = if last { length } else { self.file.metadata()?.len() };
        if let Some(until) = self.until.filter(|until| until.part == self.at.part) {
            end = end.min(until.offset);
        }
        if self.at.offset < end {
            return self.read(end);
        }
        if self.until.is_some_and(|until| self.at.part >= until.part) || (last && ended) {
            self.done = true;
        } else if !last {
            let (part, file) = self.log.open(self.at.part + 1)?;
            self.file = file;
            self.at = Place { part, offset: 0 };
            self.rest.clear();
        } else if self.progress.changed().await.is_err() {
            self.done = true;
        }
        Ok(Vec::new())
    }

    fn read(&mut self, end: u64) -> io::Result<Vec<u8>> {
        let length = usize::try_from(end - self.at.offset).unwrap_or(BLOCK).min(BLOCK);
        let begun = self.rest.len();
        self.rest.resize(begun + length, 0);
        self.file.read_exact_at(self.rest.get_mut(begun..).unwrap_or_default(), self.at.offset)?;
        self.at.offset += length as u64;
        let whole = self.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let mut out = Vec::new();
        for line in self.rest.get(..whole).unwrap_or_default().split_inclusive(|byte| *byte == b'\n') {
            self.filter.pass(line.strip_suffix(b"\n").unwrap_or(line), &mut out);
        }
        self.rest.drain(..whole);
        self.done |= self.filter.is_full();
        Ok(out)
    }
}

/// What of the entries is wanted, and how.
struct Filter {
    since: Option<String>,
    timestamps: bool,
    /// Bytes that may still go out.
    room: Option<u64>,
    /// In the middle of a line, which began with its time.
    within: bool,
}

impl Filter {
    fn new(options: &LogOptions, now: Timestamp) -> Self {
        let since = options.since.and_then(|since| match since {
            Since::Time(time) => Some(time),
            // Longer ago than time goes back: everything.
            Since::Seconds(seconds) => now.checked_sub(SignedDuration::from_secs(i64::try_from(seconds).ok()?)).ok(),
        });
        Self { since: since.map(format_time), timestamps: options.timestamps, room: options.limit_bytes, within: false }
    }

    fn pass(&mut self, line: &[u8], out: &mut Vec<u8>) {
        let Some(entry) = Entry::parse(line) else { return };
        let early = self.since.as_ref().is_some_and(|since| entry.time < since.as_bytes());
        if early {
            return;
        }
        let from = out.len();
        if self.timestamps && !self.within {
            out.extend_from_slice(entry.time);
            out.push(b' ');
        }
        out.extend_from_slice(entry.text);
        if entry.full {
            out.push(b'\n');
        }
        self.within = !entry.full;
        if let Some(room) = &mut self.room {
            let length = (out.len() - from) as u64;
            out.truncate(from + usize::try_from(length.min(*room)).unwrap_or(0));
            *room = room.saturating_sub(length);
        }
    }

    fn is_full(&self) -> bool {
        self.room == Some(0)
    }
}
