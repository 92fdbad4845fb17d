//! Reading: the turns of readers.

use std::{
    mem,
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

use kubewake_log_files::{LogPosition, OutputId, OutputSet, ReadEnd, ReadTurn, ReaderId, StreamId};

use super::{FileLogWorker, SubmittedRequest};
use crate::{
    core::Pipeline,
    receiver::file_log::{
        delivery_ledger::LogRange,
        log_reader::{ChunkEnd, LogChunk, ReadPortion, unix_nanoseconds},
        request_submission::{self, ReceiptedRequest},
    },
};

/// The buffer shrinks to this after a longer line.
const KEPT_BUFFER_BYTES: usize = 512 << 10;

impl FileLogWorker {
    /// Reads a chunk for one reader, and submits its records.
    pub(super) fn take_turn(&mut self, turn: ReadTurn, pipelines: &[Arc<Pipeline>]) {
        if self.separate_full_outputs(turn.reader) {
            self.read_chunk(turn.reader, turn.bytes, pipelines);
            self.merge_readers(turn.reader);
        }
    }

    fn read_chunk(&mut self, id: ReaderId, bytes: usize, pipelines: &[Arc<Pipeline>]) {
        let Some(open) = &mut self.open else { return };
        let Some(reader) = open.readers.get(&id) else { return open.files.close_reader(id) };
        let wanted = bytes.max(reader.wanted_bytes);
        let mut buffer = mem::take(&mut open.buffer);
        if buffer.len() < wanted {
            buffer.resize(wanted, 0);
        }
        let room = buffer.get_mut(..wanted).unwrap_or_default();
        let outcome = open.files.read(id, room);
        self.stats.read_bytes.fetch_add(outcome.bytes as u64, Ordering::Relaxed);
        let (bytes, is_bounded) = match self.distance_to_bound(id, outcome.position) {
            Some(distance) if distance <= outcome.bytes as u64 => (usize::try_from(distance).unwrap_or(0), true),
            _ => (outcome.bytes, false),
        };
        if is_bounded && let Some(open) = &mut self.open {
            // There is more behind the bound.
            open.files.resume(id);
        }
        let chunk = buffer.get(..bytes).unwrap_or_default();
        if is_bounded && chunk.is_empty() {
            self.pass_bound(id, outcome.position);
        } else {
            let consumed = self.read_records(id, chunk, outcome.position, outcome.end, is_bounded, pipelines);
            self.note_progress(id, chunk.get(..consumed).unwrap_or_default(), outcome.bytes, wanted, outcome.end);
        }
        if buffer.len() > KEPT_BUFFER_BYTES {
            buffer.truncate(KEPT_BUFFER_BYTES);
            buffer.shrink_to_fit();
        }
        if let Some(open) = &mut self.open {
            open.buffer = buffer;
        }
    }

    /// Submits the records of a chunk. Returns how much of it was consumed.
    fn read_records(
        &mut self,
        id: ReaderId,
        chunk: &[u8],
        start: LogPosition,
        end: ReadEnd,
        is_bounded: bool,
        pipelines: &[Arc<Pipeline>],
    ) -> usize {
        let Some(open) = &self.open else { return 0 };
        let Some(reader) = open.readers.get(&id) else { return 0 };
        let stream = reader.stream;
        let Some(layout) = open.files.stream(stream).map(|found| found.layout()) else { return 0 };
        let end = match end {
            _ if is_bounded => ChunkEnd::RecordEnd,
            ReadEnd::CaughtUp if reader.is_flush_due(chunk.len(), self.read.flush_after, Instant::now()) => {
                ChunkEnd::Final
            }
            end => ChunkEnd::of_read(end, layout),
        };
        let mut chunk = LogChunk { bytes: chunk, start, observed: unix_nanoseconds(), end };
        let mut consumed = 0;
        loop {
            let Some(reader) = self.open.as_mut().and_then(|open| open.readers.get_mut(&id)) else { return consumed };
            let outputs = reader.outputs;
            let (portion, has_more) = reader.read(&chunk, &mut consumed);
            self.submit(stream, outputs, portion, pipelines);
            if !has_more {
                return consumed;
            }
            // Backends take equal lines of the same time for one.
            chunk.observed += 1;
        }
    }

    fn note_progress(&mut self, id: ReaderId, consumed: &[u8], read: usize, wanted: usize, end: ReadEnd) {
        let Some(open) = &mut self.open else { return };
        open.files.advance(id, consumed);
        let Some(reader) = open.readers.get_mut(&id) else { return };
        let left = read.saturating_sub(consumed.len());
        reader.note_unfinished(if end == ReadEnd::CaughtUp { left } else { 0 }, Instant::now());
        reader.note_end(end);
        // A line that is longer than what was read.
        let is_stuck = consumed.is_empty() && read == wanted;
        let limit = reader.decoder.max_line_bytes().saturating_add(1);
        reader.wanted_bytes = if is_stuck { wanted.saturating_mul(2).min(limit) } else { 0 };
        let is_over = end == ReadEnd::EndOfStream && left == 0 && open.ended.contains(&reader.stream);
        if is_over {
            open.close_reader(id);
        }
    }

    /// How far it is to where a reader must not read on: to a range that its outputs were given before, or to another
    /// reader in front of it, with which it goes on from there.
    fn distance_to_bound(&self, id: ReaderId, from: LogPosition) -> Option<u64> {
        let open = self.open.as_ref()?;
        let reader = open.readers.get(&id)?;
        // A range may begin at the end of a generation that the reader has left.
        if reader.next_skip().is_some_and(|range| range.from <= from) {
            return Some(0);
        }
        let others = open.by_stream.get(&reader.stream).into_iter().flatten().filter(|other| **other != id);
        let others = others.filter_map(|other| open.readers.get(other)).map(|other| other.position());
        let others = others.filter(|position| *position > from);
        let skip = reader.next_skip().map(|range| range.from);
        let bounds =
            others.chain(skip).filter(|bound| bound.generation == from.generation && bound.offset >= from.offset);
        bounds.map(|bound| bound.offset - from.offset).min()
    }

    /// A reader is where it must not read on.
    fn pass_bound(&mut self, id: ReaderId, at: LogPosition) {
        let Some(open) = &mut self.open else { return };
        let Some(reader) = open.readers.get_mut(&id) else { return };
        if reader.next_skip().is_some_and(|skip| skip.from <= at)
            && let Some(behind) = reader.skip(at, &self.read)
        {
            open.files.seek(id, behind);
        }
    }

    /// Joins a reader with another one that has come to the same place.
    fn merge_readers(&mut self, id: ReaderId) {
        let Some(open) = &mut self.open else { return };
        let Some(reader) = open.readers.get(&id) else { return };
        let others = open.by_stream.get(&reader.stream).map(Vec::as_slice).unwrap_or_default();
        let is_same = |other: &&ReaderId| {
            **other != id && open.readers.get(other).is_some_and(|other| other.can_merge_with(reader))
        };
        let Some(other) = others.iter().find(is_same).copied() else { return };
        // One that waits because its outputs are full stays apart.
        if open.paused.contains(&other) {
            return;
        }
        let outputs = reader.outputs;
        let joined = open.readers.get(&other).map(|other| other.outputs.union(outputs)).unwrap_or(outputs);
        open.set_outputs(other, joined);
        open.close_reader(id);
    }

    /// Submits a request to the outputs of a reader, and notes the range that they are given with it.
    fn submit(&mut self, stream: StreamId, outputs: OutputSet, portion: ReadPortion, pipelines: &[Arc<Pipeline>]) {
        let ReadPortion { request, range, holds_more } = portion;
        let Some(request) = request else {
            if range.to > range.from {
                self.pass(stream, outputs, range);
            }
            return;
        };
        self.stats.records.fetch_add(request.records as u64, Ordering::Relaxed);
        let mut without_memory = Vec::new();
        for pipeline in pipelines {
            let its = self.outputs.of_pipeline(outputs, pipeline);
            let its: Vec<_> = its.into_iter().filter(|(_, output)| !output.is_detached()).collect();
            if its.is_empty() {
                continue;
            }
            let ids: Vec<OutputId> = its.iter().map(|(id, _)| *id).collect();
            let Some(charge) = request_submission::reserve(pipeline, &request.body) else {
                if request_submission::count_if_too_large(pipeline, &request.body, request.records) {
                    let its: OutputSet = ids.into_iter().collect();
                    self.pass(stream, its, range);
                } else {
                    without_memory.extend(ids);
                }
                continue;
            };
            let number = self.next_request;
            self.next_request += 1;
            let bytes = request.body.len() as u64;
            for (_, output) in &its {
                self.ledger.give(output.key, stream, range, number);
                if holds_more {
                    self.ledger.note_more(output.key, stream, number);
                }
            }
            self.requests
                .insert(number, SubmittedRequest { stream, bytes, last_time: request.last_time, outputs: ids.len() });
            let receipted = ReceiptedRequest {
                number,
                body: request.body.clone(),
                records: request.records,
                charge,
                outputs: its.iter().map(|(_, output)| (&output.receipt, output.epoch)).collect(),
            };
            receipted.submit(pipeline, &self.control.inbox, &self.runtime);
            for id in ids {
                self.outputs.get_mut(id).into_iter().for_each(|output| output.begin_request(bytes));
            }
        }
        without_memory.into_iter().for_each(|id| self.detach(id));
    }

    /// Notes a range in which there is nothing to deliver.
    fn pass(&mut self, stream: StreamId, outputs: OutputSet, range: LogRange) {
        for id in outputs.iter() {
            let Some(output) = self.outputs.get(id).filter(|output| !output.is_detached()) else { continue };
            let committed = self.ledger.pass(output.key, stream, range);
            self.commit(id, stream, committed);
        }
    }

    /// Hands on records at the ends of files that have not grown for a while.
    pub(super) fn flush_unfinished(&mut self, pipelines: &[Arc<Pipeline>], now: Instant) {
        let is_due = |due: Option<Instant>| due.is_some_and(|due| due <= now);
        let readers = self.open.iter().flat_map(|open| &open.readers);
        let due: Vec<ReaderId> =
            readers.filter(|(_, reader)| is_due(reader.flush_due(self.read.flush_after))).map(|(id, _)| *id).collect();
        for id in due {
            if self.separate_full_outputs(id) {
                self.read_chunk(id, KEPT_BUFFER_BYTES, pipelines);
            }
        }
        let clock = unix_nanoseconds();
        let readers = self.open.iter().flat_map(|open| &open.readers);
        let due: Vec<ReaderId> = readers.filter(|(_, reader)| reader.is_held_due(clock)).map(|(id, _)| *id).collect();
        for id in due {
            if !self.separate_full_outputs(id) {
                continue;
            }
            let Some(reader) = self.open.as_mut().and_then(|open| open.readers.get_mut(&id)) else { continue };
            let (stream, outputs) = (reader.stream, reader.outputs);
            let portion = reader.take_due(clock);
            self.submit(stream, outputs, portion, pipelines);
        }
    }

    /// Hands on what the operators of all logs hold.
    pub(super) fn submit_held(&mut self, pipelines: &[Arc<Pipeline>]) {
        let readers: Vec<ReaderId> = self.open.iter().flat_map(|open| open.readers.keys().copied()).collect();
        for id in readers {
            let Some(reader) = self.open.as_mut().and_then(|open| open.readers.get_mut(&id)) else { continue };
            let (stream, outputs) = (reader.stream, reader.outputs);
            let portion = reader.take_held();
            self.submit(stream, outputs, portion, pipelines);
        }
    }

    /// Nothing will follow in this log.
    pub(super) fn end_stream(&mut self, stream: StreamId) {
        let Some(open) = &mut self.open else { return };
        open.ended.insert(stream);
        let is_done = |open: &super::OpenLogs, id: &ReaderId| {
            let end = open.files.stream(stream).map(|found| found.end());
            open.readers.get(id).is_none_or(|reader| end.is_none_or(|end| reader.submitted() >= end))
        };
        let readers = open.by_stream.get(&stream).cloned().unwrap_or_default();
        for id in readers {
            if is_done(open, &id) {
                open.close_reader(id);
            }
        }
    }
}
