//! A reader: a position in one log, on behalf of the outputs that share it.

use std::{
    collections::VecDeque,
    path::Path,
    time::{Duration, Instant, SystemTime},
};

use super::{
    delivery_ledger::LogRange,
    line_decoder::LineDecoder,
    read_settings::ReadSettings,
    record_builder::{BuiltRequest, RecordBuilder},
};
use kubewake_log_files::{LogLayout, LogPosition, OutputSet, ReadEnd, StreamId};

pub(super) struct LogReader {
    pub(super) stream: StreamId,
    pub(super) outputs: OutputSet,
    pub(super) decoder: LineDecoder,
    builder: RecordBuilder,
    /// Before it, everything was submitted.
    submitted: LogPosition,
    /// Ranges that its outputs were given before.
    skips: VecDeque<LogRange>,
    /// How much it has to read at once for one long line.
    pub(super) wanted_bytes: usize,
    /// The length of the unfinished record at the end of the file, and since when it has not grown.
    unfinished: Option<(usize, Instant)>,
    /// Whether it has read all that was written, as far as it knows.
    is_caught_up: bool,
}

/// What was read of a log.
pub(super) struct LogChunk<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) start: LogPosition,
    /// Nanoseconds since 1970.
    pub(super) observed: u64,
    pub(super) end: ChunkEnd,
}

/// What is known about the end of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChunkEnd {
    /// More follows, now or later.
    Open,
    /// A line may go on in the next generation.
    Rotated,
    /// Nothing follows that belongs to an unfinished line.
    Final,
    /// Nothing follows at all.
    Last,
    /// A record ends here, as another reader has found.
    RecordEnd,
}

impl ChunkEnd {
    pub(super) fn of_read(end: ReadEnd, layout: LogLayout) -> Self {
        match (end, layout) {
            (ReadEnd::More | ReadEnd::CaughtUp, _) => Self::Open,
            (ReadEnd::EndOfGeneration, LogLayout::Kubelet) => Self::Rotated,
            (ReadEnd::EndOfGeneration, LogLayout::Plain) => Self::Final,
            (ReadEnd::EndOfStream, _) => Self::Last,
        }
    }
}

/// What a reader has made of a part of a chunk.
pub(super) struct ReadPortion {
    /// `None` if there was nothing to deliver.
    pub(super) request: Option<BuiltRequest>,
    pub(super) range: LogRange,
    /// Whether the request holds records from behind the range, because something before them is unfinished.
    pub(super) holds_more: bool,
}

impl LogReader {
    pub(super) fn new(
        stream: StreamId,
        outputs: OutputSet,
        position: LogPosition,
        skips: Vec<LogRange>,
        path: &Path,
        settings: &ReadSettings,
    ) -> Self {
        Self {
            stream,
            outputs,
            decoder: LineDecoder::new(&settings.format, position),
            builder: RecordBuilder::new(settings, path, position),
            submitted: position,
            skips: skips.into(),
            wanted_bytes: 0,
            unfinished: None,
            is_caught_up: false,
        }
    }

    /// Where it reads on.
    pub(super) fn position(&self) -> LogPosition {
        self.decoder.position()
    }

    /// Where a reader has to begin again so that it loses nothing.
    fn commit_position(&self) -> LogPosition {
        let decoded = self.decoder.commit_position();
        self.builder.held_since().map_or(decoded, |held| held.min(decoded))
    }

    /// Before it, everything was submitted.
    pub(super) fn submitted(&self) -> LogPosition {
        self.submitted
    }

    /// The next range that it must not read.
    pub(super) fn next_skip(&self) -> Option<LogRange> {
        self.skips.front().copied()
    }

    pub(super) fn skips(&self) -> Vec<LogRange> {
        self.skips.iter().copied().collect()
    }

    /// Whether another output can join it at this position.
    pub(super) fn can_join_at(&self, position: LogPosition) -> bool {
        self.skips.is_empty() && self.commit_position() == position && self.position() == position
    }

    /// Whether both have read the same and go on with the same.
    pub(super) fn can_merge_with(&self, other: &Self) -> bool {
        let place = |reader: &Self| (reader.position(), reader.commit_position(), reader.submitted);
        self.skips.is_empty() && other.skips.is_empty() && place(self) == place(other)
    }

    /// Moves behind the next range that it must not read; `None` if it has passed the range already.
    pub(super) fn skip(&mut self, at: LogPosition, settings: &ReadSettings) -> Option<LogPosition> {
        let skipped = self.skips.pop_front().filter(|skipped| skipped.to > at)?;
        // Nothing was unfinished where the range begins, or it would be read again.
        self.builder.discard_held();
        self.decoder = LineDecoder::new(&settings.format, skipped.to);
        self.submitted = skipped.to;
        self.unfinished = None;
        Some(skipped.to)
    }

    /// Reads records of a chunk. `consumed` is how much was read of it before, and is moved on. Returns a portion, and
    /// whether more of the chunk may follow.
    pub(super) fn read(&mut self, chunk: &LogChunk<'_>, consumed: &mut usize) -> (ReadPortion, bool) {
        let Self { decoder, builder, .. } = self;
        let rest = |consumed: usize| chunk.bytes.get(consumed..).unwrap_or_default();
        let at = |consumed: usize| LogPosition { offset: chunk.start.offset + consumed as u64, ..chunk.start };
        *consumed += decoder.push(rest(*consumed), at(*consumed), chunk.observed, builder);
        let is_full = builder.is_full();
        if !is_full {
            let (left, start) = (rest(*consumed), at(*consumed));
            *consumed += match chunk.end {
                ChunkEnd::Open => 0,
                ChunkEnd::Rotated => {
                    decoder.carry_over(left, start);
                    left.len()
                }
                ChunkEnd::Final => decoder.flush(left, start, chunk.observed, builder),
                ChunkEnd::Last => {
                    let used = decoder.flush(left, start, chunk.observed, builder);
                    if used == left.len() {
                        builder.flush_all();
                    }
                    used
                }
                ChunkEnd::RecordEnd => decoder.flush_record(left, start, chunk.observed, builder),
            };
        }
        let is_cut = is_full || builder.is_full();
        (self.finish_portion(), is_cut)
    }

    /// Takes what the decoder and operators have held for long enough.
    pub(super) fn take_due(&mut self, now: u64) -> ReadPortion {
        if self.is_caught_up {
            self.decoder.flush_due(now, &mut self.builder);
        }
        self.builder.flush_due(now);
        self.finish_portion()
    }

    /// Takes all that operators hold.
    pub(super) fn take_held(&mut self) -> ReadPortion {
        self.builder.flush_all();
        self.finish_portion()
    }

    fn finish_portion(&mut self) -> ReadPortion {
        let commit = self.commit_position().max(self.submitted);
        let range = LogRange { from: self.submitted, to: commit };
        self.submitted = commit;
        let holds_more = self.decoder.position() > commit;
        ReadPortion { request: self.builder.finish(commit), range, holds_more }
    }

    /// Whether the decoder or operators have held something for long enough.
    pub(super) fn is_held_due(&self, now: u64) -> bool {
        self.held_deadline().is_some_and(|deadline| deadline <= now)
    }

    /// When that is. What a decoder holds may go on in what was not read yet.
    fn held_deadline(&self) -> Option<u64> {
        let decoded = self.decoder.deadline().filter(|_| self.is_caught_up);
        self.builder.deadline().into_iter().chain(decoded).min()
    }

    /// When it has something to do without an event.
    pub(super) fn next_due(&self, flush_after: Option<Duration>, now: Instant) -> Option<Instant> {
        let held = self
            .held_deadline()
            .map(|deadline| now + Duration::from_nanos(deadline.saturating_sub(unix_nanoseconds())));
        held.into_iter().chain(self.flush_due(flush_after)).min()
    }

    /// Notes whether it has read all that was written.
    pub(super) fn note_end(&mut self, end: ReadEnd) {
        self.is_caught_up = end == ReadEnd::CaughtUp;
    }

    /// Notes how much of an unfinished record is at the end of the file.
    pub(super) fn note_unfinished(&mut self, bytes: usize, now: Instant) {
        self.unfinished = match self.unfinished {
            _ if bytes == 0 || !self.decoder.is_plain() => None,
            Some((known, since)) if known == bytes => Some((known, since)),
            _ => Some((bytes, now)),
        };
    }

    /// When the unfinished record is handed on if it does not grow.
    pub(super) fn flush_due(&self, flush_after: Option<Duration>) -> Option<Instant> {
        Some(self.unfinished?.1 + flush_after?)
    }

    /// Whether the unfinished record has this length and is to be handed on.
    pub(super) fn is_flush_due(&self, bytes: usize, flush_after: Option<Duration>, now: Instant) -> bool {
        self.unfinished.is_some_and(|(known, _)| known == bytes)
            && self.flush_due(flush_after).is_some_and(|due| due <= now)
    }
}

/// Now, in nanoseconds since 1970.
pub(super) fn unix_nanoseconds() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
