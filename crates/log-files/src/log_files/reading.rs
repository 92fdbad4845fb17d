//! Readers: their positions, their turns, and what a read returns.

use super::LogFiles;
use crate::{
    fingerprint::{ContentMark, mark_length},
    position::{LogPosition, OutputSet, ReaderId, StreamId},
    reader::ReadTurn,
};

mod content;
mod steps;

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
    /// follow at once, is of the next generation. A line can go on there if its number is the next one, since the
    /// kubelet rotates between two writes; if that is greater, or a generation changes without this, bytes were lost.
    EndOfGeneration,
    /// Nothing will follow: the file is gone, or a later run of the container has begun. Bytes that do not end with a
    /// newline are all that there is. In case that the file comes back after all, the reader gets a turn.
    EndOfStream,
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
}
