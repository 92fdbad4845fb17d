//! Deleted files that are still needed: how much disk space they may hold.
//!
//! *Guarantees*: beyond the limits, the file with the most unread bytes is closed first, and its bytes are reported as
//! lost to the readers that come to them. A file whose compressed copy is there is closed before all others, since
//! nothing is lost with it.

use std::time::Instant;

use super::LogFiles;
use crate::{
    events::LossCause,
    position::{LogPosition, StreamId},
};

/// A deleted file that is open.
struct DeletedFile {
    stream: StreamId,
    generation: u64,
    allocated: u64,
    unread: u64,
    has_copy: bool,
}

impl LogFiles {
    pub(super) fn release_deleted_files(&mut self) {
        let now = Instant::now();
        if now < self.scans.deleted_due {
            return;
        }
        self.scans.deleted_due = now + self.wait_times.deleted;
        let (mut deleted, space) = self.find_deleted_files();
        let mut held: u64 = deleted.iter().map(|file| file.allocated).sum();
        let limits = self.settings.limits.deleted;
        let mut allowed = limits.bytes;
        if let Some(space) = space {
            allowed = allowed.min(share(space.total, limits.percent));
            if space.free < share(space.total, limits.min_free_percent) {
                allowed = 0;
            }
        }
        deleted.sort_by_key(|file| (file.has_copy, file.unread));
        while held > allowed {
            let Some(file) = deleted.pop() else { break };
            held = held.saturating_sub(file.allocated);
            self.release(&file);
        }
        self.statistics.deleted_bytes = held;
    }

    fn find_deleted_files(&self) -> (Vec<DeletedFile>, Option<crate::disk_space::SpaceOnDisk>) {
        let mut deleted = Vec::new();
        let mut space = None;
        for stream in self.streams.values() {
            let needed = stream.first_needed();
            for generation in &stream.generations {
                for slot in generation.slots().filter(|slot| slot.name.is_none()) {
                    let Some(file) = &slot.handle else { continue };
                    let Some(status) = file.status().ok().filter(|status| status.is_unlinked) else { continue };
                    space = space.or_else(|| self.disk.space_of(file));
                    let is_plain = generation.plain.as_ref().is_some_and(|plain| plain.key == slot.key);
                    let size = if is_plain { status.size } else { generation.size };
                    let read = if needed.generation == generation.number { needed.offset } else { generation.start };
                    let is_done = needed.generation > generation.number;
                    deleted.push(DeletedFile {
                        stream: stream.id,
                        generation: generation.number,
                        allocated: status.allocated,
                        unread: if is_done { 0 } else { size.saturating_sub(read) },
                        has_copy: is_plain && generation.gzip.is_some(),
                    });
                }
            }
        }
        (deleted, space)
    }

    fn release(&mut self, deleted: &DeletedFile) {
        let Some(stream) = self.streams.get_mut(&deleted.stream) else { return };
        let Some(generation) = stream.generation_mut(deleted.generation) else { return };
        if let Some(plain) = generation.plain.take() {
            if let Some(status) = plain.handle.as_ref().and_then(|file| file.status().ok()) {
                generation.size = generation.size.max(status.size);
            }
            generation.is_size_final = true;
        }
        if !deleted.has_copy {
            generation.gzip = None;
            generation.lost = Some(LossCause::DiskSpace);
            generation.is_complete = true;
        }
        self.positions.note_change();
        self.care_soon(deleted.stream);
        self.wake_stream(deleted.stream);
    }

    /// The unread bytes of an output, by stream. Sizes are those that were seen last.
    pub fn unread_bytes(&self, output: crate::OutputId) -> Vec<(StreamId, u64)> {
        let unread = self.streams.values().filter_map(|stream| {
            let committed: LogPosition = stream.committed(output)?;
            Some((stream.id, stream.bytes_after(committed)))
        });
        unread.filter(|(_, bytes)| *bytes > 0).collect()
    }
}

fn share(total: u64, percent: u8) -> u64 {
    (total / 100).saturating_mul(u64::from(percent))
}
