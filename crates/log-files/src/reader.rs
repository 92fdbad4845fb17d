//! Cursors over streams, and whose turn it is.
//!
//! *Guarantees*: of the readers that have something to read, each gets its share of the bytes (deficit round robin),
//! however large the pieces are in which it reads.

use std::collections::{HashMap, VecDeque};

use crate::{
    fingerprint::MARK_BYTES,
    open_file::GzipCursor,
    position::{LogPosition, OutputSet, ReaderId, StreamId},
};

/// What a reader may read in one turn, in bytes: large enough that a turn costs little beside its bytes, small enough
/// that a hundred busy logs come round within some 100 ms.
const TURN_BYTES: i64 = 256 * 1024;

/// Compressed files that are being decompressed at a time. A decompressor takes some 80 KiB; one that was dropped has
/// to begin anew.
const MAX_GZIP_CURSORS: usize = 128;

pub(crate) struct LogReader {
    pub(crate) stream: StreamId,
    pub(crate) outputs: OutputSet,
    pub(crate) position: LogPosition,
    /// The bytes before the position, as far as a mark covers them; empty if they are not known yet.
    pub(crate) tail: Vec<u8>,
    /// The place in the compressed file of a generation.
    pub(crate) gzip: Option<(u64, GzipCursor)>,
    /// It was told that its generation ends.
    pub(crate) knows_end: bool,
    deficit: i64,
    is_paused: bool,
    is_queued: bool,
}

/// Whose turn it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadTurn {
    pub reader: ReaderId,
    pub stream: StreamId,
    /// How much to read. A reader that needs more (for one long line) may read more and waits longer for its next turn.
    pub bytes: usize,
}

impl LogReader {
    pub(crate) fn move_to(&mut self, position: LogPosition) {
        self.position = position;
        self.tail.clear();
        self.knows_end = false;
    }

    /// Moves past bytes that were read.
    pub(crate) fn advance(&mut self, consumed: &[u8]) {
        self.position.offset += consumed.len() as u64;
        if consumed.len() >= MARK_BYTES {
            self.tail.clear();
        }
        self.tail.extend_from_slice(consumed.get(consumed.len().saturating_sub(MARK_BYTES)..).unwrap_or(consumed));
        self.tail.drain(..self.tail.len().saturating_sub(MARK_BYTES));
    }
}

/// All readers.
#[derive(Default)]
pub(crate) struct ReaderTable {
    readers: HashMap<ReaderId, LogReader>,
    ready: VecDeque<ReaderId>,
    /// The reader that has its turn.
    current: Option<ReaderId>,
    /// Readers with a place in a compressed file, the oldest first.
    decompressing: VecDeque<ReaderId>,
    next_id: u64,
}

impl ReaderTable {
    pub(crate) fn open(&mut self, stream: StreamId, outputs: OutputSet, position: LogPosition) -> ReaderId {
        let id = ReaderId(self.next_id);
        self.next_id += 1;
        let reader = LogReader {
            stream,
            outputs,
            position,
            tail: Vec::new(),
            gzip: None,
            knows_end: false,
            deficit: 0,
            is_paused: false,
            is_queued: false,
        };
        self.readers.insert(id, reader);
        self.wake(id);
        id
    }

    pub(crate) fn close(&mut self, id: ReaderId) -> Option<LogReader> {
        self.ready.retain(|other| *other != id);
        self.decompressing.retain(|other| *other != id);
        self.readers.remove(&id)
    }

    pub(crate) fn get(&self, id: ReaderId) -> Option<&LogReader> {
        self.readers.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: ReaderId) -> Option<&mut LogReader> {
        self.readers.get_mut(&id)
    }

    pub(crate) fn len(&self) -> usize {
        self.readers.len()
    }

    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty() || self.current.is_some()
    }

    /// The reader may have something to read.
    pub(crate) fn wake(&mut self, id: ReaderId) {
        if let Some(reader) = self.readers.get_mut(&id)
            && !reader.is_paused
            && !reader.is_queued
        {
            reader.is_queued = true;
            self.ready.push_back(id);
        }
    }

    pub(crate) fn pause(&mut self, id: ReaderId) {
        if let Some(reader) = self.readers.get_mut(&id) {
            reader.is_paused = true;
            if std::mem::take(&mut reader.is_queued) {
                self.ready.retain(|other| *other != id);
            }
        }
        self.current.take_if(|current| *current == id);
    }

    pub(crate) fn resume(&mut self, id: ReaderId) {
        if let Some(reader) = self.readers.get_mut(&id) {
            reader.is_paused = false;
        }
        self.wake(id);
    }

    pub(crate) fn next_turn(&mut self) -> Option<ReadTurn> {
        // A turn that was not used is not lost.
        if let Some(unused) = self.current.take() {
            self.wake(unused);
        }
        while let Some(id) = self.ready.pop_front() {
            let Some(reader) = self.readers.get_mut(&id) else { continue };
            reader.deficit += TURN_BYTES;
            if reader.deficit <= 0 {
                self.ready.push_back(id);
                continue;
            }
            reader.is_queued = false;
            self.current = Some(id);
            let bytes = usize::try_from(reader.deficit.min(TURN_BYTES)).unwrap_or(0);
            return Some(ReadTurn { reader: id, stream: reader.stream, bytes });
        }
        None
    }

    /// Charges what a reader has read, and queues it again if there is more.
    pub(crate) fn end_turn(&mut self, id: ReaderId, bytes: usize, has_more: bool) {
        self.current.take_if(|current| *current == id);
        if let Some(reader) = self.readers.get_mut(&id) {
            // What is left of a turn is not saved, or an idle reader could read much at once later.
            reader.deficit = reader.deficit.saturating_sub(i64::try_from(bytes).unwrap_or(i64::MAX)).min(0);
        }
        if has_more {
            self.wake(id);
        }
    }

    /// Bounds the number of decompressors: the one that was begun first makes room.
    pub(crate) fn note_decompression(&mut self, id: ReaderId) {
        if self.decompressing.contains(&id) {
            return;
        }
        self.decompressing.push_back(id);
        if self.decompressing.len() > MAX_GZIP_CURSORS
            && let Some(oldest) = self.decompressing.pop_front()
            && let Some(reader) = self.readers.get_mut(&oldest)
        {
            reader.gzip = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_share_bytes_whatever_the_size_of_their_pieces() {
        let mut table = ReaderTable::default();
        let readers: Vec<ReaderId> =
            (0..3).map(|stream| table.open(StreamId(stream), OutputSet::EMPTY, LogPosition::default())).collect();
        let mut read = [0_usize; 3];
        for _ in 0..3_000 {
            let turn = table.next_turn().unwrap();
            let index = readers.iter().position(|reader| *reader == turn.reader).unwrap();
            // The first reads small pieces, the second what it may, the third long lines.
            let bytes = [10_000, turn.bytes, 3 << 20][index];
            read[index] += bytes;
            table.end_turn(turn.reader, bytes, true);
        }
        assert!(read[1].abs_diff(read[2]) <= 4 << 20, "{read:?}");
        assert!(read[0] < read[1], "{read:?}");
    }

    #[test]
    fn paused_reader_gets_no_turn_and_an_unused_turn_returns() {
        let mut table = ReaderTable::default();
        let first = table.open(StreamId(0), OutputSet::EMPTY, LogPosition::default());
        assert_eq!(table.next_turn().unwrap().reader, first);
        assert_eq!(table.next_turn().unwrap().reader, first);
        table.pause(first);
        assert_eq!(table.next_turn(), None);
        table.wake(first);
        assert!(!table.has_ready());
        table.resume(first);
        assert_eq!(table.next_turn().unwrap().reader, first);
        table.end_turn(first, 10, false);
        assert_eq!(table.next_turn(), None);
    }
}
