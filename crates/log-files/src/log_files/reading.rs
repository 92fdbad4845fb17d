//! Readers: reading at a position, and going on to the next generation.

use std::{
    io::{self, IoSliceMut},
    sync::Arc,
    time::{Duration, Instant},
};

use super::LogFiles;
use crate::{
    events::{FileProblem, LossCause, ProblemKind},
    file_opener::{FileOpener, OpenFailure},
    fingerprint::{ContentMark, MARK_BYTES, mark_length},
    generation::Generation,
    log_stream::{LogLayout, LogStream, PositionPlace},
    open_file::{GZIP_MAGIC, GzipCursor, GzipProgress, OpenFile, PlainContent},
    position::{LogPosition, OutputSet, ReaderId, StreamId},
    reader::{LogReader, ReadTurn},
    settings::FileCompression,
};

/// How long until a file is tried again that could not be read.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// What a read returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadOutcome {
    /// Where the bytes are. It differs from the end of the last read after a rotation, a loss or a truncation.
    pub position: LogPosition,
    /// The number of bytes in the buffer.
    pub bytes: usize,
    pub end: ReadEnd,
}

/// What follows the bytes of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadEnd {
    /// More can be read at once; the reader gets another turn.
    More,
    /// Nothing for now. The reader gets a turn when there is more.
    CaughtUp,
    /// The generation ends here and will not grow. All of these bytes have to be consumed; the next read, which can
    /// follow at once, is of the next generation. A line can go on there: the kubelet rotates between two writes.
    EndOfGeneration,
    /// Nothing will follow: the file is gone, or a later run of the container has begun. Bytes that do not end with a
    /// newline are all that there is. In case that the file comes back after all, the reader gets a turn.
    EndOfStream,
}

enum ReadStep {
    /// So many bytes, and whether the file ends behind them.
    Bytes(usize, bool),
    /// The content cannot be read at present.
    Wait,
    /// It takes more than this call to get to the position.
    Skipping,
    /// No file has the content any more.
    Missing,
    /// The file has other content than what was read of it.
    Replaced(Arc<OpenFile>),
    Failed(io::Error),
}

impl LogFiles {
    /// Opens a cursor at a position, on behalf of these outputs: losses that it meets are theirs. `None` if there is no
    /// such stream.
    pub fn open_reader(&mut self, stream: StreamId, outputs: OutputSet, position: LogPosition) -> Option<ReaderId> {
        let found = self.streams.get_mut(&stream)?;
        let id = self.readers.open(stream, outputs, position);
        found.readers.push(id);
        Some(id)
    }

    pub fn close_reader(&mut self, id: ReaderId) {
        if let Some(reader) = self.readers.close(id)
            && let Some(stream) = self.streams.get_mut(&reader.stream)
        {
            stream.readers.retain(|other| *other != id);
        }
    }

    /// Where the reader is: the position of the first byte that it has not consumed.
    pub fn reader_position(&self, id: ReaderId) -> Option<LogPosition> {
        self.readers.get(id).map(|reader| reader.position)
    }

    pub fn reader_outputs(&self, id: ReaderId) -> Option<OutputSet> {
        self.readers.get(id).map(|reader| reader.outputs)
    }

    /// Outputs join or leave the reader.
    pub fn set_reader_outputs(&mut self, id: ReaderId, outputs: OutputSet) {
        if let Some(reader) = self.readers.get_mut(id) {
            reader.outputs = outputs;
        }
    }

    /// Moves the reader, usually back to what an output has committed.
    pub fn seek(&mut self, id: ReaderId, position: LogPosition) {
        if let Some(reader) = self.readers.get_mut(id) {
            reader.move_to(position);
        }
        self.readers.wake(id);
    }

    /// The reader gets no turns until it is resumed.
    pub fn pause(&mut self, id: ReaderId) {
        self.readers.pause(id);
    }

    pub fn resume(&mut self, id: ReaderId) {
        self.readers.resume(id);
    }

    /// The reader whose turn it is: one that may have something to read and is not paused. The turn ends with `read`.
    pub fn next_turn(&mut self) -> Option<ReadTurn> {
        self.readers.next_turn()
    }

    /// Reads at the position of the reader without moving it; `advance` does. It skips what is lost, which `poll`
    /// reports. A buffer that is too small for one line returns the same bytes again until it is larger.
    pub fn read(&mut self, id: ReaderId, buffer: &mut [u8]) -> ReadOutcome {
        let outcome = self.read_next(id, buffer);
        self.statistics.bytes_read += outcome.bytes as u64;
        let has_more = matches!(outcome.end, ReadEnd::More | ReadEnd::EndOfGeneration);
        self.readers.end_turn(id, outcome.bytes, has_more);
        outcome
    }

    /// Moves the reader past the first bytes of what the last `read` put into the buffer.
    pub fn advance(&mut self, id: ReaderId, consumed: &[u8]) {
        let Some(reader) = self.readers.get_mut(id) else { return };
        if consumed.is_empty() {
            return;
        }
        reader.advance(consumed);
        let position = reader.position;
        let stream = reader.stream;
        let mark = ContentMark::from_bytes_before(position.offset, &reader.tail);
        let is_whole = reader.tail.len() == mark_length(position.offset);
        if let Some(generation) =
            self.streams.get_mut(&stream).and_then(|stream| stream.generation_mut(position.generation))
            && is_whole
            && generation.mark.is_none_or(|previous| previous.offset < position.offset)
        {
            generation.mark = Some(mark);
            self.positions.note_change();
        }
    }

    fn read_next(&mut self, id: ReaderId, buffer: &mut [u8]) -> ReadOutcome {
        loop {
            let Some(reader) = self.readers.get_mut(id) else {
                return ReadOutcome { position: LogPosition::default(), bytes: 0, end: ReadEnd::EndOfStream };
            };
            let position = reader.position;
            let outputs = reader.outputs;
            let stream_id = reader.stream;
            let outcome = |bytes, end| ReadOutcome { position, bytes, end };
            let Some(stream) = self.streams.get_mut(&stream_id) else { return outcome(0, ReadEnd::EndOfStream) };
            let index = match stream.place_of(position) {
                PositionPlace::At(index) => index,
                PositionPlace::Before => {
                    let next = stream.generations.iter().find(|found| found.number > position.generation);
                    reader.move_to(next.map(Generation::first_position).unwrap_or(position));
                    continue;
                }
                PositionPlace::Behind => return outcome(0, end_of(stream)),
            };
            let next = stream.generations.get(index + 1).map(Generation::first_position);
            let Some(generation) = stream.generations.get_mut(index) else { return outcome(0, ReadEnd::CaughtUp) };
            let compression = (stream.layout == LogLayout::Plain).then_some(self.settings.compression);
            let step = read_generation(generation, reader, buffer, &self.opener, compression);
            let has_cursor = reader.gzip.is_some();
            if let ReadStep::Bytes(bytes, _) = &step {
                let end = position.offset + *bytes as u64;
                if end > generation.size {
                    generation.size = end;
                }
            }
            match step {
                ReadStep::Bytes(bytes, false) => {
                    if has_cursor {
                        self.readers.note_decompression(id);
                    }
                    self.complete_head(stream_id, position.generation);
                    return outcome(bytes, ReadEnd::More);
                }
                ReadStep::Bytes(bytes, true) => {
                    let end = position.offset + bytes as u64;
                    let is_complete = generation.is_complete;
                    generation.was_end_read |= has_cursor;
                    let cut = if is_complete { 0 } else { generation.size.saturating_sub(end) };
                    if cut > 0 {
                        generation.size = end;
                    }
                    let knows_end = std::mem::replace(&mut reader.knows_end, is_complete);
                    if is_complete
                        && bytes == 0
                        && knows_end
                        && let Some(next) = next
                    {
                        reader.move_to(next);
                        continue;
                    }
                    let end_kind = match (is_complete, next) {
                        (true, Some(_)) => ReadEnd::EndOfGeneration,
                        (true, None) => end_of(stream),
                        (false, _) => ReadEnd::CaughtUp,
                    };
                    let is_waiting = !is_complete && (next.is_some() || stream.is_superseded);
                    if cut > 0 {
                        self.lose_cut_bytes(stream_id, LogPosition::new(position.generation, end), cut, outputs);
                    }
                    if is_waiting {
                        self.cared_for.entry(stream_id).or_insert_with(Instant::now);
                    }
                    if bytes > 0 {
                        self.complete_head(stream_id, position.generation);
                    }
                    return outcome(bytes, end_kind);
                }
                ReadStep::Wait => return outcome(0, ReadEnd::CaughtUp),
                ReadStep::Skipping => {
                    self.readers.note_decompression(id);
                    return outcome(0, ReadEnd::More);
                }
                ReadStep::Missing => {
                    let last = generation.last_position().max(position);
                    self.lose_rest_of_generation(stream_id, position, outputs);
                    let Some(reader) = self.readers.get_mut(id) else { continue };
                    reader.move_to(next.unwrap_or(last));
                    if next.is_none() {
                        let end = self.streams.get(&stream_id).map_or(ReadEnd::EndOfStream, end_of);
                        return ReadOutcome { position: last, bytes: 0, end };
                    }
                }
                ReadStep::Replaced(file) => {
                    let is_last = next.is_none();
                    if is_last {
                        self.begin_after_truncation(stream_id, &file);
                    } else if let Some(generation) = stream.generations.get_mut(index) {
                        generation.lost = Some(LossCause::Truncated);
                        generation.plain = None;
                        generation.is_complete = true;
                        continue;
                    }
                    return outcome(0, ReadEnd::CaughtUp);
                }
                ReadStep::Failed(error) => {
                    self.fail_read(stream_id, position.generation, &error);
                    return outcome(0, ReadEnd::CaughtUp);
                }
            }
        }
    }

    /// A compressed file that is broken is lost; anything else is tried again.
    fn fail_read(&mut self, id: StreamId, number: u64, error: &io::Error) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let path = stream.path.clone();
        let is_broken = matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput);
        if let Some(generation) = stream.generation_mut(number).filter(|_| is_broken) {
            generation.gzip = None;
            generation.lost = Some(LossCause::Unreadable);
            generation.is_complete = true;
            generation.is_size_final = true;
            self.wake_stream(id);
        } else {
            self.cared_for.insert(id, Instant::now() + RETRY_INTERVAL);
        }
        let message = format!("failed to read file: {error}");
        self.report(FileProblem::new(ProblemKind::Unreadable, &path, message));
    }

    /// A short file has got more content that identifies it.
    fn complete_head(&mut self, id: StreamId, number: u64) {
        let wanted = self.settings.fingerprint_size;
        let Some(generation) = self.streams.get_mut(&id).and_then(|stream| stream.generation_mut(number)) else {
            return;
        };
        if generation.head.length >= wanted as u64 {
            return;
        }
        if let Some(file) = generation.plain.as_ref().and_then(|slot| slot.handle.clone()) {
            let seen = generation.size;
            let _ = generation.look_at_plain(&file, wanted);
            generation.size = generation.size.max(seen);
        }
    }
}

/// The end of the last generation, which is complete.
fn end_of(stream: &LogStream) -> ReadEnd {
    if stream.is_ended { ReadEnd::EndOfStream } else { ReadEnd::CaughtUp }
}

fn read_generation(
    generation: &mut Generation,
    reader: &mut LogReader,
    buffer: &mut [u8],
    opener: &FileOpener,
    compression: Option<FileCompression>,
) -> ReadStep {
    if generation.awaits_scan {
        return ReadStep::Wait;
    }
    if let Some(slot) = &mut generation.plain {
        match slot.open(opener) {
            Ok(Some(file)) => {
                // It turns out only with the first bytes that an `auto` file is compressed.
                let is_undecided = compression == Some(FileCompression::Auto) && reader.position.offset == 0;
                if !is_undecided || file.read_head(GZIP_MAGIC.len()).is_ok_and(|head| head != GZIP_MAGIC) {
                    return read_plain(generation, reader, buffer, file).unwrap_or_else(ReadStep::Failed);
                }
                generation.gzip = generation.plain.take();
            }
            Ok(None) if generation.gzip.is_some() => generation.plain = None,
            Ok(None) => {
                generation.plain = None;
                generation.lost.get_or_insert(LossCause::Removed);
                generation.is_complete = true;
                return ReadStep::Missing;
            }
            Err(OpenFailure::Io(error)) => return ReadStep::Failed(error),
            Err(_) => return ReadStep::Wait,
        }
    }
    let Some(slot) = &mut generation.gzip else { return ReadStep::Missing };
    match slot.open(opener) {
        Ok(Some(file)) => read_gzip(generation, reader, buffer, file).unwrap_or_else(ReadStep::Failed),
        Ok(None) => {
            generation.gzip = None;
            generation.lost.get_or_insert(LossCause::Removed);
            generation.is_complete = true;
            ReadStep::Missing
        }
        Err(OpenFailure::Io(error)) => ReadStep::Failed(error),
        Err(_) => ReadStep::Wait,
    }
}

/// Reads together with what is before the position, which shows whether the file still has the content that was read.
fn read_plain(
    generation: &mut Generation,
    reader: &mut LogReader,
    buffer: &mut [u8],
    file: Arc<OpenFile>,
) -> io::Result<ReadStep> {
    let offset = reader.position.offset;
    if generation.awaits_growth {
        if file.status()?.size <= generation.size {
            return Ok(ReadStep::Wait);
        }
        generation.awaits_growth = false;
    }
    // Until something was consumed, only the beginning shows whether the file was cut.
    if generation.mark.is_none() && !generation.head.is_of(&file)? {
        return Ok(ReadStep::Replaced(file));
    }
    let length = mark_length(offset);
    if reader.tail.len() != length {
        let mut tail = vec![0; length];
        if file.read_at(&mut tail, offset - length as u64)? < length {
            return Ok(ReadStep::Replaced(file));
        }
        let found = ContentMark::from_bytes_before(offset, &tail);
        if generation.mark.is_some_and(|mark| mark.offset == offset && mark != found) {
            return Ok(ReadStep::Replaced(file));
        }
        reader.tail = tail;
    }
    let mut before = [0; MARK_BYTES];
    let before = before.get_mut(..length).unwrap_or_default();
    let wanted = buffer.len();
    let read =
        file.read_vectored_at(&mut [IoSliceMut::new(before), IoSliceMut::new(buffer)], offset - length as u64)?;
    if read < length || *before != *reader.tail {
        return Ok(ReadStep::Replaced(file));
    }
    // Another reader is ahead: what it has read has to be there still.
    if let Some(mark) = generation.mark.filter(|mark| mark.offset > offset)
        && !mark.matches(&mut PlainContent(file.clone()))?
    {
        return Ok(ReadStep::Replaced(file));
    }
    let bytes = read - length;
    Ok(ReadStep::Bytes(bytes, bytes < wanted))
}

fn read_gzip(
    generation: &mut Generation,
    reader: &mut LogReader,
    buffer: &mut [u8],
    file: Arc<OpenFile>,
) -> io::Result<ReadStep> {
    let is_current = reader.gzip.as_ref().is_some_and(|(number, _)| *number == generation.number);
    if !is_current {
        reader.gzip = Some((generation.number, GzipCursor::new(file)));
    }
    let Some((_, cursor)) = &mut reader.gzip else { return Ok(ReadStep::Wait) };
    if reader.position.offset == u64::MAX {
        return Ok(ReadStep::Bytes(0, true));
    }
    match cursor.read_step(buffer, reader.position.offset) {
        Ok(GzipProgress::Skipping) => Ok(ReadStep::Skipping),
        Ok(GzipProgress::Read(bytes)) => Ok(ReadStep::Bytes(bytes, bytes < buffer.len())),
        Err(error) => {
            reader.gzip = None;
            Err(error)
        }
    }
}
