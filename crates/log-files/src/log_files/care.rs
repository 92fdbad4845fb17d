//! What has to be done about streams as time passes: generations that are complete, streams that have ended, and what
//! all outputs have committed.

use std::time::{Duration, Instant};

use super::{LogFiles, NameOwner, time_since};
use crate::{
    events::LogEvent,
    file_opener::FileOpener,
    generation::Generation,
    log_stream::{LogLayout, LogStream},
    position::StreamId,
};

/// How long things take that nothing announces. Tests cannot wait so long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WaitTimes {
    /// How long a rotated file must not have been written before the next one is read. The runtime goes on writing to
    /// a renamed file until it has opened the new one, and its two streams switch one after the other.
    pub(crate) rotation: Duration,
    /// The same, if nothing has been written to the next file that would show that the runtime has opened it.
    pub(crate) reopen: Duration,
    /// How long a file without a name may still be written.
    pub(crate) nameless: Duration,
    /// The same for the file of a run that has ended.
    pub(crate) superseded: Duration,
    /// How often a stream is looked at that something is expected of.
    pub(crate) care: Duration,
    /// How often the space of deleted files is looked at. A disk does not fill up in less.
    pub(crate) deleted: Duration,
}

impl Default for WaitTimes {
    fn default() -> Self {
        Self {
            rotation: Duration::from_millis(200),
            reopen: Duration::from_secs(10),
            nameless: Duration::from_secs(5),
            superseded: Duration::from_secs(1),
            care: Duration::from_millis(100),
            deleted: Duration::from_secs(1),
        }
    }
}

impl LogFiles {
    pub(super) fn apply_commits(&mut self) {
        for ((id, output), position) in self.commits.take() {
            let Some(stream) = self.streams.get_mut(&id) else { continue };
            let has_done = stream.generations.len() > 1 || stream.is_ended;
            let Some(committed) = stream.committed.get_mut(usize::from(output.0)) else { continue };
            if position > *committed {
                *committed = position;
                self.positions.note_change();
                if self.settings.delete_after_read {
                    self.delete_file_that_was_read(id);
                }
                if has_done {
                    self.cared_for.insert(id, Instant::now());
                }
            }
        }
    }

    pub(super) fn care_for_streams(&mut self) {
        let now = Instant::now();
        let due: Vec<StreamId> = self.cared_for.iter().filter(|(_, due)| **due <= now).map(|(id, _)| *id).collect();
        let fingerprint_size = self.settings.fingerprint_size;
        for id in due {
            self.cared_for.remove(&id);
            let Some(stream) = self.streams.get_mut(&id) else { continue };
            let look = CareLook {
                times: &self.wait_times,
                opener: &self.opener,
                fingerprint_size,
                may_end: self.changes.directories.is_empty(),
            };
            let (changed, again) = complete_generations(stream, now, &look);
            if changed {
                self.positions.note_change();
            }
            // A reader may wait for the end, or could not read.
            self.wake_stream(id);
            if again {
                self.cared_for.insert(id, now + self.wait_times.care);
            }
            if self.changes.directories.is_empty() {
                self.drop_done_generations(id);
            } else {
                // Its files may have names that were not seen yet, and that would be new files afterwards.
                self.cared_for.entry(id).or_insert(now + self.wait_times.care);
            }
        }
    }

    /// Forgets what all outputs have committed.
    fn drop_done_generations(&mut self, id: StreamId) {
        loop {
            let Some(stream) = self.streams.get_mut(&id) else { return };
            let needed = stream.first_needed();
            let is_last = stream.generations.len() <= 1;
            let Some(first) = stream.generations.front() else { return };
            let is_done = first.is_complete
                && !first.awaits_scan
                && (needed.generation > first.number || (needed >= first.last_position() && first.is_size_certain()));
            if is_done && is_last && stream.is_ended && first.has_name() {
                // It stays known while its file is there, or that would be read again.
                let files = stream.generations.iter_mut().flat_map(Generation::slots_mut);
                files.filter(|slot| slot.name.is_some()).for_each(|slot| slot.handle = None);
                return;
            }
            if !is_done || (is_last && !stream.is_ended) {
                return;
            }
            let Some(done) = stream.generations.pop_front() else { return };
            stream.reported.retain(|(_, generation), _| *generation != done.number);
            stream.note_done(&done);
            if let Some(rotated_at) = &done.rotated_at {
                stream.last_rotation = stream.last_rotation.take().max(Some(rotated_at.clone()));
            }
            let layout = stream.layout;
            self.positions.note_change();
            if layout == LogLayout::Plain && done.has_name() {
                self.continue_as_own_stream(id, done);
            } else {
                self.release_files(id, &done);
            }
            if is_last {
                self.end_stream(id);
                return;
            }
        }
    }

    fn release_files(&mut self, id: StreamId, done: &Generation) {
        for slot in done.slots() {
            if self.owners.get(&slot.key) == Some(&(id, done.number)) {
                self.owners.remove(&slot.key);
            }
            // The name is there, but nothing is to be read from it.
            let Some(path) = slot.name.as_ref().map(|name| &name.path) else { continue };
            let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else { continue };
            if let Some(record) = self.names.get_mut(directory).and_then(|names| names.get_mut(name)) {
                record.owner = NameOwner::Nothing;
            }
        }
    }

    /// A copy that held the rest of a file that was cut is from now on a file like others.
    fn continue_as_own_stream(&mut self, from: StreamId, mut done: Generation) {
        let id = self.take_stream_id();
        let path = done.slots().find_map(|slot| slot.name.as_ref()).map(|name| name.path.clone()).unwrap_or_default();
        let mut stream = LogStream::new(id, LogLayout::Plain, path, self.outputs.len());
        done.is_complete = false;
        stream.committed.fill(done.last_position());
        for slot in done.slots() {
            self.owners.insert(slot.key, (id, done.number));
        }
        for names in self.names.values_mut() {
            for record in names.values_mut() {
                if done.slots().any(|slot| slot.key == record.key) && record.owner == NameOwner::Stream(from) {
                    record.owner = NameOwner::Stream(id);
                }
            }
        }
        stream.generations.push_back(done);
        self.streams.insert(id, stream);
        self.statistics.streams_opened += 1;
        self.events.push(LogEvent::Opened(id));
    }

    fn end_stream(&mut self, id: StreamId) {
        let Some(stream) = self.streams.remove(&id) else { return };
        for reader in stream.readers {
            self.readers.close(reader);
        }
        if self.kubelet_streams.get(&stream.path) == Some(&id) {
            self.kubelet_streams.remove(&stream.path);
        }
        self.cared_for.remove(&id);
        self.copies.retain(|(_, original)| *original != id);
        self.events.push(LogEvent::Ended(id));
    }
}

/// What is needed to look after a stream.
struct CareLook<'a> {
    times: &'a WaitTimes,
    opener: &'a FileOpener,
    fingerprint_size: usize,
    /// No directory has to be listed, where a copy may be found that goes on.
    may_end: bool,
}

/// Finds out which generations will not grow any more. Returns whether that has changed, and whether it has to be
/// asked again soon.
fn complete_generations(stream: &mut LogStream, now: Instant, look: &CareLook<'_>) -> (bool, bool) {
    let times = look.times;
    let mut changed = false;
    let mut again = false;
    let sizes: Vec<u64> = stream.generations.iter().map(|generation| generation.size).collect();
    let count = stream.generations.len();
    for (index, generation) in stream.generations.iter_mut().enumerate() {
        let has_next = index + 1 < count;
        if generation.is_complete {
            continue;
        }
        refresh(generation, look.opener, look.fingerprint_size);
        let next_size = sizes.get(index + 1).copied().unwrap_or(0);
        let quiet = time_since(generation.modified);
        let nameless = generation
            .slots()
            .map(|slot| slot.nameless_since.map(|since| now.saturating_duration_since(since)).unwrap_or_default())
            .min()
            .unwrap_or_default();
        let is_complete = if !generation.has_file() {
            true
        } else if has_next {
            let is_compressed = generation.gzip.is_some();
            let is_settled = quiet >= times.rotation && (next_size > 0 || has_later(&sizes, index));
            is_compressed || is_settled || quiet >= times.reopen
        } else if stream.is_superseded {
            quiet >= times.superseded
        } else {
            look.may_end && nameless >= times.nameless && quiet >= times.nameless
        };
        generation.is_complete = is_complete;
        generation.is_size_final |= is_complete && generation.has_file();
        changed |= is_complete;
        again |= !is_complete && (has_next || stream.is_superseded || !generation.has_name());
    }
    let last_is_over =
        stream.generations.back().is_some_and(|last| last.is_complete && (stream.is_superseded || !last.has_name()));
    if stream.generations.iter().all(|generation| generation.is_complete) && last_is_over && !stream.is_ended {
        stream.is_ended = true;
        changed = true;
    }
    (changed, again)
}

/// Whether something was written behind the next file.
fn has_later(sizes: &[u64], index: usize) -> bool {
    sizes.iter().skip(index + 2).any(|size| *size > 0)
}

/// Takes size and time of the plain file, unless it was cut: then they are those of other content.
pub(super) fn refresh(generation: &mut Generation, opener: &FileOpener, fingerprint_size: usize) {
    let Some(Ok(Some(file))) = generation.plain.as_mut().map(|slot| slot.open(opener)) else { return };
    if let Ok(status) = file.status()
        && !generation.awaits_growth
        && status.size >= generation.size
        && generation.is_intact(&file).unwrap_or(false)
    {
        // It fails as reading does, which reports it.
        let _ = generation.look_at_plain(&file, fingerprint_size);
    }
}
