//! Reports of bytes that outputs will never get.

use std::{collections::BTreeMap, time::SystemTime};

use super::LogFiles;
use crate::{
    events::{LogEvent, LossCause, LostBytes, LostRange},
    generation::Generation,
    log_stream::LogStream,
    position::{LogPosition, OutputId, OutputSet, StreamId},
};

impl LogFiles {
    /// A reader for these outputs found nothing at the position: the rest of the generation is lost. What was reported
    /// to an output before is not reported to it again.
    pub(super) fn lose_rest_of_generation(&mut self, id: StreamId, position: LogPosition, outputs: OutputSet) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let Some(index) = stream.generations.iter().position(|found| found.number == position.generation) else {
            return;
        };
        let Some(generation) = stream.generations.get(index) else { return };
        let cause = generation.lost.unwrap_or(LossCause::Removed);
        let size = generation.size;
        let is_final = generation.is_size_final;
        let before = generation.modified;
        // Nothing is known to be lost, but what was written after the last look is not known.
        let is_gap = cause == LossCause::Removed && !is_final;
        let after = index.checked_sub(1).and_then(|index| stream.generations.get(index)?.modified);
        let mut losses: BTreeMap<(u64, u64), OutputSet> = BTreeMap::new();
        for output in outputs.iter() {
            let end = stream.reported.get(&(output, position.generation)).copied();
            let bytes = end.unwrap_or(size).saturating_sub(position.offset);
            if bytes > 0 || (end.is_none() && is_gap) {
                losses.entry((position.offset, bytes)).or_default().insert(output);
                stream.reported.insert((output, position.generation), position.offset);
            }
        }
        let path = stream.path.clone();
        for ((offset, bytes), outputs) in losses {
            let bytes = if is_final { LostBytes::Exact(bytes) } else { LostBytes::AtLeast(bytes) };
            let position = LogPosition::new(position.generation, offset);
            let path = path.clone();
            self.events.push(LogEvent::Lost(LostRange {
                stream: id,
                path,
                outputs,
                position,
                bytes,
                after,
                before,
                cause,
            }));
        }
    }

    /// Outputs have committed all that had been seen of generations that are gone, so that no reader will come there;
    /// what was written after the last look is lost to them.
    pub(super) fn report_unseen_ends(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get(&id) else { return };
        let gone = stream.generations.iter().filter(|generation| !generation.has_file() && !generation.is_size_final);
        let mut ends: BTreeMap<LogPosition, OutputSet> = BTreeMap::new();
        for end in gone.map(Generation::last_position) {
            for output in all_outputs(stream).iter().filter(|output| stream.committed(*output) == Some(end)) {
                ends.entry(end).or_default().insert(output);
            }
        }
        for (end, outputs) in ends {
            self.lose_rest_of_generation(id, end, outputs);
        }
    }

    /// Bytes that were read by some were cut off before these outputs read them.
    pub(super) fn lose_cut_bytes(&mut self, id: StreamId, position: LogPosition, bytes: u64, outputs: OutputSet) {
        let Some(stream) = self.streams.get(&id) else { return };
        self.events.push(LogEvent::Lost(LostRange {
            stream: id,
            path: stream.path.clone(),
            outputs,
            position,
            bytes: LostBytes::AtLeast(bytes),
            after: None,
            before: Some(SystemTime::now()),
            cause: LossCause::Truncated,
        }));
    }

    /// Files behind the position may have been created and removed unseen.
    pub(super) fn lose_unknown_bytes(&mut self, id: StreamId, position: LogPosition, after: Option<SystemTime>) {
        let Some(stream) = self.streams.get(&id) else { return };
        self.events.push(LogEvent::Lost(LostRange {
            stream: id,
            path: stream.path.clone(),
            outputs: all_outputs(stream),
            position,
            bytes: LostBytes::AtLeast(0),
            after,
            before: Some(SystemTime::now()),
            cause: LossCause::Removed,
        }));
    }
}

pub(super) fn all_outputs(stream: &LogStream) -> OutputSet {
    (0..stream.committed.len()).map(|index| OutputId(index as u8)).collect()
}
