//! One read after the other, until there is something to return: generations are passed at their ends, and holes.

use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    LogFiles, ReadEnd, ReadOutcome,
    content::{self, ReadStep},
};
use crate::{
    events::{FileProblem, LossCause, ProblemKind},
    generation::Generation,
    log_stream::{LogLayout, LogStream, PositionPlace},
    open_file::OpenFile,
    position::{LogPosition, OutputSet, ReaderId, StreamId},
};

/// How long until a file is tried again that could not be read.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// Where a reader is.
struct ReadPlace {
    reader: ReaderId,
    stream: StreamId,
    outputs: OutputSet,
    position: LogPosition,
    /// The index of the generation.
    index: usize,
    /// Where the next generation begins.
    next: Option<LogPosition>,
}

impl ReadPlace {
    fn outcome(&self, bytes: usize, end: ReadEnd) -> ReadOutcome {
        ReadOutcome { position: self.position, bytes, end }
    }
}

impl LogFiles {
    pub(super) fn read_next(&mut self, id: ReaderId, buffer: &mut [u8]) -> ReadOutcome {
        loop {
            let place = match self.find_place(id) {
                Ok(place) => place,
                Err(outcome) => return outcome,
            };
            if let Some(outcome) = self.read_at(&place, buffer) {
                return outcome;
            }
        }
    }

    /// The generation that the reader is in, or what to return if it is in none.
    fn find_place(&mut self, id: ReaderId) -> Result<ReadPlace, ReadOutcome> {
        let nowhere = ReadOutcome { position: LogPosition::default(), bytes: 0, end: ReadEnd::EndOfStream };
        let reader = self.readers.get_mut(id).ok_or(nowhere)?;
        let stream = self.streams.get(&reader.stream).ok_or(nowhere)?;
        if stream.place_of(reader.position) == PositionPlace::Before
            && let Some(next) = stream.generations.iter().find(|found| found.number > reader.position.generation)
        {
            reader.move_to(next.first_position());
        }
        let position = reader.position;
        match stream.place_of(position) {
            PositionPlace::At(index) => Ok(ReadPlace {
                reader: id,
                stream: reader.stream,
                outputs: reader.outputs,
                position,
                index,
                next: stream.generations.get(index + 1).map(Generation::first_position),
            }),
            _ => Err(ReadOutcome { position, bytes: 0, end: end_of(stream) }),
        }
    }

    /// One attempt; `None` if the reader was moved and has to try again.
    fn read_at(&mut self, place: &ReadPlace, buffer: &mut [u8]) -> Option<ReadOutcome> {
        let stream = self.streams.get_mut(&place.stream)?;
        let reader = self.readers.get_mut(place.reader)?;
        let compression = (stream.layout == LogLayout::Plain).then_some(self.settings.compression);
        let generation = stream.generations.get_mut(place.index)?;
        match content::read_generation(generation, reader, buffer, &self.opener, compression) {
            ReadStep::Bytes(bytes, is_end) => {
                generation.size = generation.size.max(place.position.offset.saturating_add(bytes as u64));
                if reader.gzip.is_some() {
                    generation.was_end_read |= is_end;
                    self.readers.note_decompression(place.reader);
                }
                let outcome =
                    if is_end { self.end_read(place, bytes) } else { Some(place.outcome(bytes, ReadEnd::More)) };
                // It may have grown by now, which must not look as if it was longer before.
                if bytes > 0 {
                    self.complete_head(place.stream, place.position.generation);
                }
                outcome
            }
            ReadStep::Wait => Some(place.outcome(0, ReadEnd::CaughtUp)),
            ReadStep::Renamed => {
                generation.awaits_scan = true;
                let name = generation.slots().find_map(|slot| slot.name.as_ref());
                let directory = name.and_then(|name| name.path.parent()).map(Into::into);
                self.changes.directories.extend(directory);
                self.awaiting_scan.insert(place.stream);
                Some(place.outcome(0, ReadEnd::CaughtUp))
            }
            ReadStep::Skipping => {
                self.readers.note_decompression(place.reader);
                Some(place.outcome(0, ReadEnd::More))
            }
            ReadStep::Missing => self.pass_hole(place),
            ReadStep::Replaced(file) => self.leave_replaced_file(place, &file),
            ReadStep::Failed(error) => {
                self.fail_read(place.stream, place.position.generation, &error);
                Some(place.outcome(0, ReadEnd::CaughtUp))
            }
        }
    }

    /// A read reached the end of the file.
    fn end_read(&mut self, place: &ReadPlace, bytes: usize) -> Option<ReadOutcome> {
        let stream = self.streams.get_mut(&place.stream)?;
        let reader = self.readers.get_mut(place.reader)?;
        let generation = stream.generations.get_mut(place.index)?;
        let is_complete = generation.is_complete;
        let knew_end = std::mem::replace(&mut reader.knows_end, is_complete);
        if !is_complete {
            let end = place.position.offset.saturating_add(bytes as u64);
            let cut = generation.size.saturating_sub(end);
            generation.size = end;
            if place.next.is_some() || stream.is_superseded {
                // It is complete when it has not been written for a while.
                self.cared_for.entry(place.stream).or_insert_with(Instant::now);
            }
            if cut > 0 {
                let position = LogPosition::new(place.position.generation, end);
                self.lose_cut_bytes(place.stream, position, cut, place.outputs);
            }
            return Some(place.outcome(bytes, ReadEnd::CaughtUp));
        }
        match place.next {
            // The owner was told before.
            Some(next) if bytes == 0 && knew_end => {
                reader.move_to(next);
                None
            }
            Some(_) => Some(place.outcome(bytes, ReadEnd::EndOfGeneration)),
            None => Some(place.outcome(bytes, end_of(stream))),
        }
    }

    /// No file has the rest of the generation.
    fn pass_hole(&mut self, place: &ReadPlace) -> Option<ReadOutcome> {
        let last = self.streams.get(&place.stream)?.generations.get(place.index)?.last_position();
        let after = place.next.unwrap_or(last.max(place.position));
        self.lose_rest_of_generation(place.stream, place.position, place.outputs);
        self.readers.get_mut(place.reader)?.move_to(after);
        if place.next.is_some() {
            return None;
        }
        let end = self.streams.get(&place.stream).map_or(ReadEnd::EndOfStream, end_of);
        Some(ReadOutcome { position: after, bytes: 0, end })
    }

    /// The file holds other content than that of the generation.
    fn leave_replaced_file(&mut self, place: &ReadPlace, file: &Arc<OpenFile>) -> Option<ReadOutcome> {
        if place.next.is_none() {
            self.begin_after_truncation(place.stream, file);
            return Some(place.outcome(0, ReadEnd::CaughtUp));
        }
        let generation = self.streams.get_mut(&place.stream)?.generations.get_mut(place.index)?;
        generation.lost = Some(LossCause::Truncated);
        generation.plain = None;
        generation.is_complete = true;
        None
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
