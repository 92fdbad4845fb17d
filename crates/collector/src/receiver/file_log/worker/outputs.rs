//! Outputs: their receipts, and which readers they share.

use std::{collections::BTreeMap, time::Instant};

use kubewake_log_files::{LogPosition, OutputId, OutputSet, ReaderId, StreamId};

use super::{FileLogWorker, LogReader, OpenLogs};
use crate::{
    core::DeliveryOutcome,
    receiver::file_log::{delivery_ledger::LogRange, receipt_inbox::EndedToken},
};

impl FileLogWorker {
    /// Deals with the receipts that have arrived.
    pub(super) fn take_receipts(&mut self) {
        for ended in self.control.inbox.take() {
            self.take_receipt(ended);
        }
    }

    fn take_receipt(&mut self, ended: EndedToken) {
        let EndedToken { request: number, output: key, outcome } = ended;
        let Some(request) = self.requests.get_mut(&number) else { return };
        let (stream, bytes, last_time) = (request.stream, request.bytes, request.last_time);
        request.outputs = request.outputs.saturating_sub(1);
        if request.outputs == 0 {
            self.requests.remove(&number);
        }
        let Some(id) = self.outputs.find(key) else { return };
        let Some(output) = self.outputs.get_mut(id) else { return };
        output.end_request(bytes);
        let has_room = output.has_room();
        match outcome {
            DeliveryOutcome::Settled => {
                output.note_settled(last_time);
                let committed = self.ledger.settle(key, stream, number);
                self.commit(id, stream, committed);
            }
            DeliveryOutcome::Returned => {
                output.note_returned();
                self.ledger.take_back(key, stream, number);
                self.detach(id);
            }
        }
        if has_room && let Some(open) = &mut self.open {
            open.resume_readers_of(id);
        }
    }

    pub(super) fn commit(&self, output: OutputId, stream: StreamId, position: Option<LogPosition>) {
        if let (Some(open), Some(position)) = (&self.open, position) {
            open.handle.commit(output, stream, position);
        }
    }

    /// Gives an output nothing more until it has dealt with what it has.
    pub(super) fn detach(&mut self, id: OutputId) {
        let now = Instant::now();
        if !self.outputs.get_mut(id).is_some_and(|output| output.detach(now)) {
            return;
        }
        let Some(open) = &mut self.open else { return };
        let readers: Vec<ReaderId> =
            open.readers.iter().filter(|(_, reader)| reader.outputs.contains(id)).map(|(id, _)| *id).collect();
        for reader in readers {
            open.remove_output(reader, id);
        }
    }

    /// Lets outputs continue that have dealt with everything, after their pause.
    pub(super) fn resume_outputs(&mut self, now: Instant) {
        let is_due = |due: Option<Instant>| due.is_some_and(|due| due <= now);
        let due: Vec<OutputId> =
            self.outputs.iter().filter(|(_, output)| is_due(output.resume_due())).map(|(id, _)| id).collect();
        for id in due {
            if let Some(output) = self.outputs.get_mut(id) {
                output.resume();
            }
            let streams: Vec<StreamId> =
                self.open.iter().flat_map(|open| open.files.streams()).map(|stream| stream.id()).collect();
            for stream in streams {
                self.attach(stream, &[id]);
            }
        }
    }

    /// A log was found: each output begins with it where it was.
    pub(super) fn open_stream(&mut self, stream: StreamId) {
        let Some(open) = &self.open else { return };
        let Some(found) = open.files.stream(stream) else { return };
        for (id, output) in self.outputs.iter() {
            let stored = found.committed(id).unwrap_or_default();
            let committed = self.ledger.open(output.key, stream, stored);
            // What was committed while the files were closed is stored now.
            if committed > stored {
                open.handle.commit(id, stream, committed);
            }
        }
        let attached: Vec<OutputId> =
            self.outputs.iter().filter(|(_, output)| !output.is_detached()).map(|(id, _)| id).collect();
        if self.pipelines.is_some() {
            self.attach(stream, &attached);
        }
    }

    /// Gives outputs readers of a log where they are in it; those at the same position share one.
    fn attach(&mut self, stream: StreamId, outputs: &[OutputId]) {
        let mut places: BTreeMap<(LogPosition, Vec<(LogPosition, LogPosition)>), OutputSet> = BTreeMap::new();
        for id in outputs {
            let Some(output) = self.outputs.get(*id) else { continue };
            let Some(point) = self.ledger.resume_point(output.key, stream) else { continue };
            let skips = point.skips.iter().map(|range| (range.from, range.to)).collect();
            places.entry((point.position, skips)).or_default().insert(*id);
        }
        let Some(open) = &mut self.open else { return };
        for ((position, skips), outputs) in places {
            if skips.is_empty() && open.join(stream, position, outputs) {
                continue;
            }
            let Some(found) = open.files.stream(stream) else { continue };
            if open.ended.contains(&stream) && position >= found.end() {
                continue;
            }
            let skips = skips.into_iter().map(|(from, to)| LogRange { from, to }).collect();
            let reader = LogReader::new(stream, outputs, position, skips, found.path(), &self.read);
            open.add_reader(reader);
        }
    }

    /// Takes the outputs with a full window out of a reader, to a reader of their own that waits. False if no output
    /// has room.
    pub(super) fn separate_full_outputs(&mut self, id: ReaderId) -> bool {
        let Some(open) = &mut self.open else { return false };
        let Some(reader) = open.readers.get(&id) else {
            open.files.close_reader(id);
            return false;
        };
        let is_full = |output: &OutputId| self.outputs.get(*output).is_some_and(|output| output.is_full());
        let full: OutputSet = reader.outputs.iter().filter(is_full).collect();
        if full.is_empty() {
            return true;
        }
        let rest = reader.outputs.difference(full);
        if rest.is_empty() {
            open.pause(id);
            return false;
        }
        let (stream, position) = (reader.stream, reader.submitted());
        let skips = reader.skips();
        if let Some(found) = open.files.stream(stream) {
            let apart = LogReader::new(stream, full, position, skips, found.path(), &self.read);
            if let Some(apart) = open.add_reader(apart) {
                open.pause(apart);
            }
        }
        open.set_outputs(id, rest);
        true
    }
}

impl OpenLogs {
    fn add_reader(&mut self, reader: LogReader) -> Option<ReaderId> {
        let stream = reader.stream;
        let id = self.files.open_reader(stream, reader.outputs, reader.position())?;
        self.by_stream.entry(stream).or_default().push(id);
        self.readers.insert(id, reader);
        Some(id)
    }

    /// Adds outputs to a reader that is at this position.
    fn join(&mut self, stream: StreamId, position: LogPosition, outputs: OutputSet) -> bool {
        let ids = self.by_stream.get(&stream).cloned().unwrap_or_default();
        let can_join = |id: &&ReaderId| self.readers.get(id).is_some_and(|reader| reader.can_join_at(position));
        let Some(id) = ids.iter().find(can_join).copied() else { return false };
        let joined = self.readers.get(&id).map(|reader| reader.outputs.union(outputs)).unwrap_or(outputs);
        self.set_outputs(id, joined);
        // Those that join may have room.
        self.resume(id);
        true
    }

    pub(super) fn set_outputs(&mut self, id: ReaderId, outputs: OutputSet) {
        if let Some(reader) = self.readers.get_mut(&id) {
            reader.outputs = outputs;
            self.files.set_reader_outputs(id, outputs);
        }
    }

    fn remove_output(&mut self, id: ReaderId, output: OutputId) {
        let Some(reader) = self.readers.get(&id) else { return };
        let mut outputs = reader.outputs;
        outputs.remove(output);
        if outputs.is_empty() {
            self.close_reader(id);
        } else {
            self.set_outputs(id, outputs);
        }
    }

    fn pause(&mut self, id: ReaderId) {
        self.files.pause(id);
        self.paused.insert(id);
    }

    fn resume(&mut self, id: ReaderId) {
        if self.paused.remove(&id) {
            self.files.resume(id);
        }
    }

    fn resume_readers_of(&mut self, output: OutputId) {
        let waits = |id: &ReaderId| self.readers.get(id).is_some_and(|reader| reader.outputs.contains(output));
        let ready: Vec<ReaderId> = self.paused.iter().copied().filter(waits).collect();
        ready.into_iter().for_each(|id| self.resume(id));
    }
}
