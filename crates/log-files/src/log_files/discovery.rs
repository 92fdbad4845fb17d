//! What all kinds of streams share when they begin.

use std::path::Path;

use super::{LogFiles, scan::ArrivedFile, time_since};
use crate::{
    events::{FileProblem, LogEvent, ProblemKind},
    log_stream::LogLayout,
    position::{LogPosition, StreamId},
    settings::StartAt,
};

impl LogFiles {
    pub(super) fn take_stream_id(&mut self) -> StreamId {
        let id = StreamId(self.next_stream);
        self.next_stream += 1;
        id
    }

    pub(super) fn is_too_old(&self, arrived: &ArrivedFile) -> bool {
        self.settings.exclude_older_than.is_some_and(|age| time_since(arrived.status.modified) > age)
    }

    pub(super) fn has_room_for_stream(&mut self, path: &Path) -> bool {
        let limit = self.settings.limits.streams;
        let has_room = self.streams.len() < limit;
        if !has_room {
            let message = format!("more than {limit} logs match the patterns, it is not read");
            self.report(FileProblem::new(ProblemKind::Limit, path, message));
        }
        has_room
    }

    /// Whether new streams begin at the end of what is there: only what was there before the first start of all does.
    pub(super) fn begins_at_end(&self) -> bool {
        self.settings.start_at == StartAt::End && !self.scans.has_scanned && !self.positions.was_loaded()
    }

    /// Tells the owner of a stream that has its generations.
    pub(super) fn begin_stream(&mut self, id: StreamId) {
        let at_end = self.begins_at_end();
        let restored = self.positions.take_restored(id);
        self.end_restoration(id);
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let first = stream.generations.front().map(|generation| generation.first_position()).unwrap_or_default();
        // An output that is new is treated as if everything was.
        let fresh = match self.settings.start_at {
            StartAt::End if at_end || restored.is_some() => stream.end(),
            _ => first,
        };
        for (index, committed) in stream.committed.iter_mut().enumerate() {
            let stored: Option<LogPosition> = restored.as_ref().and_then(|stored| stored.get(index).copied().flatten());
            *committed = stored.unwrap_or(fresh);
        }
        if at_end && stream.layout == LogLayout::Plain {
            // What is in a compressed file is not counted: it is skipped as a whole.
            for generation in stream.generations.iter_mut().filter(|generation| generation.plain.is_none()) {
                generation.is_complete = true;
                generation.start = u64::MAX;
                stream.committed.fill(LogPosition::new(generation.number, u64::MAX));
            }
        }
        self.statistics.streams_opened += 1;
        self.events.push(LogEvent::Opened(id));
        self.report_unseen_ends(id);
        self.positions.note_change();
        self.care_soon(id);
    }

    /// Closes files that are not being read, if too many are open.
    pub(super) fn make_room_for_file(&mut self) {
        self.opened_files += 1;
        let limit = self.settings.limits.open_files;
        if self.opened_files <= limit {
            return;
        }
        let mut open = 0;
        for stream in self.streams.values_mut() {
            let end = stream.end();
            let is_idle = stream.committed.iter().all(|committed| *committed >= end);
            for slot in stream.generations.iter_mut().flat_map(|generation| generation.slots_mut()) {
                // What has no name can be opened no more.
                if is_idle && slot.name.is_some() && open >= limit / 2 {
                    slot.handle = None;
                }
                open += usize::from(slot.handle.is_some());
            }
        }
        self.opened_files = open + 1;
    }
}
