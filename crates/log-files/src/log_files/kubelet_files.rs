//! The files of containers, as generations of their logs.
//!
//! *Guarantees*: generations get their numbers in the order of the rotations. A compressed file continues the
//! generation of the plain one that it was made of. A file that is older than what was dealt with is not read again.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use super::{LogFiles, NameOwner, care, scan::ArrivedFile};
use crate::{
    directory_tree::ScannedDirectory,
    events::{LossCause, ProblemKind},
    file_content::FileContent,
    fingerprint::FileKey,
    generation::{FileSlot, Generation},
    kubelet_layout::KubeletName,
    log_stream::{LogLayout, LogStream},
    position::StreamId,
};

/// A file of a container's log that is there: new, or known.
struct LogFileEntry {
    name: KubeletName,
    key: FileKey,
    arrived: Option<ArrivedFile>,
    /// The generation that it belongs to, if it is known.
    generation: Option<u64>,
}

impl LogFiles {
    /// Adopts the new files of a container.
    pub(super) fn adopt_kubelet_files(
        &mut self,
        directory: &ScannedDirectory,
        arrived: &mut BTreeMap<PathBuf, ArrivedFile>,
    ) {
        let mut logs: BTreeMap<u64, Vec<LogFileEntry>> = BTreeMap::new();
        let mut restarts = BTreeSet::new();
        for (file_name, found) in &directory.files {
            let Some(name) = found.kubelet.clone() else { continue };
            restarts.insert(name.restart);
            let new = arrived.remove(&directory.path.join(file_name));
            let record = self.names.get(&directory.path).and_then(|names| names.get(file_name));
            let Some(key) = new.as_ref().map(|new| new.file.key()).or(record.map(|record| record.key)) else {
                continue;
            };
            if new.is_none() && record.is_some_and(|record| record.owner == NameOwner::Nothing) {
                continue;
            }
            let entry = LogFileEntry { name, key, arrived: new, generation: None };
            logs.entry(entry.name.restart).or_default().push(entry);
        }
        for (restart, mut entries) in logs {
            entries.sort_by(|left, right| left.name.sort_key().cmp(&right.name.sort_key()));
            if entries.iter().any(|entry| entry.arrived.is_some()) {
                self.adopt_log(directory.path.join(format!("{restart}.log")), entries);
            }
        }
        let newest = restarts.last().copied();
        for restart in restarts.into_iter().filter(|restart| Some(*restart) < newest) {
            let path = directory.path.join(format!("{restart}.log"));
            if let Some(id) = self.kubelet_streams.get(&path).copied()
                && let Some(stream) = self.streams.get_mut(&id)
                && !std::mem::replace(&mut stream.is_superseded, true)
            {
                self.care_soon(id);
            }
        }
    }

    fn adopt_log(&mut self, path: PathBuf, mut entries: Vec<LogFileEntry>) {
        let owners: Vec<_> = entries
            .iter()
            .map(|entry| match &entry.arrived {
                Some(arrived) => self.known_owner(arrived),
                None => self.owners.get(&entry.key).copied(),
            })
            .collect();
        let by_file = owners
            .iter()
            .flatten()
            .map(|(id, _)| *id)
            .find(|id| self.streams.get(id).is_some_and(|stream| stream.layout == LogLayout::Kubelet));
        let existing = self.kubelet_streams.get(&path).copied().or(by_file);
        let (id, is_new) = match existing {
            Some(id) => (id, false),
            None => match self.open_kubelet_stream(&path, &mut entries) {
                Some(id) => (id, true),
                None => return,
            },
        };
        self.kubelet_streams.insert(path.clone(), id);
        if let Some(stream) = self.streams.get_mut(&id)
            && stream.path != path
        {
            self.kubelet_streams.remove(&std::mem::replace(&mut stream.path, path));
            self.events.push(super::LogEvent::Moved(id));
        }
        for (entry, owner) in entries.iter_mut().zip(owners) {
            entry.generation = owner.filter(|(owner, _)| *owner == id).map(|(_, number)| number);
        }
        for index in 0..entries.len() {
            self.match_generation(id, &mut entries, index);
        }
        let last_known = entries.iter().rposition(|entry| entry.generation.is_some());
        self.note_broken_chain(id, &entries, last_known);
        for (index, entry) in entries.into_iter().enumerate() {
            let is_older = last_known.is_some_and(|known| index < known);
            self.adopt_entry(id, entry, is_older);
        }
        if is_new {
            self.begin_stream(id);
        }
        self.care_soon(id);
        self.wake_stream(id);
    }

    /// The stream of a log that is not followed yet: with its stored positions, or a new one.
    fn open_kubelet_stream(&mut self, path: &Path, entries: &mut Vec<LogFileEntry>) -> Option<StreamId> {
        if let Some(stored) = self.positions.take_kubelet_stream(path) {
            return Some(self.restore_stream(stored));
        }
        let newest = entries.iter().rev().find_map(|entry| entry.arrived.as_ref());
        let is_wanted = newest.is_some_and(|newest| !self.is_too_old(newest)) && self.has_room_for_stream(path);
        if !is_wanted {
            for arrived in entries.iter().filter_map(|entry| entry.arrived.as_ref()) {
                self.record_name(arrived, NameOwner::Nothing);
            }
            return None;
        }
        let id = self.take_stream_id();
        let mut stream = LogStream::new(id, LogLayout::Kubelet, path.to_path_buf(), self.outputs.len());
        if self.begins_at_end() {
            // What was rotated before the start is not read.
            let skipped = entries.len().saturating_sub(1);
            for entry in entries.drain(..skipped) {
                stream.last_rotation = entry.name.rotated_at.clone().max(stream.last_rotation.take());
                if let Some(arrived) = &entry.arrived {
                    self.record_name(arrived, NameOwner::Nothing);
                }
            }
        }
        self.streams.insert(id, stream);
        Some(id)
    }

    /// Finds the generation that a new file continues: the plain file that was compressed, or, after a restart, the
    /// one that was being read.
    fn match_generation(&mut self, id: StreamId, entries: &mut [LogFileEntry], index: usize) {
        let fingerprint_size = self.settings.fingerprint_size;
        let taken: BTreeSet<u64> = entries
            .iter()
            .filter(|other| {
                other.name.is_compressed == entries.get(index).is_some_and(|entry| entry.name.is_compressed)
            })
            .filter_map(|other| other.generation)
            .collect();
        let Some(entry) = entries.get_mut(index) else { return };
        let (Some(arrived), None) = (&entry.arrived, entry.generation) else { return };
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let is_compressed = entry.name.is_compressed;
        let mut candidates = stream
            .generations
            .iter_mut()
            .filter(|generation| !taken.contains(&generation.number))
            .filter(|generation| if is_compressed { generation.gzip.is_none() } else { !generation.has_name() })
            .peekable();
        if candidates.peek().is_none() {
            return;
        }
        let Ok(mut content) = FileContent::open(&arrived.file, is_compressed, fingerprint_size) else { return };
        for generation in candidates {
            let has_its_name = generation.rotated_at.is_some() && generation.rotated_at == entry.name.rotated_at;
            // A file in place of one that is open and written is another one.
            let may_continue = has_its_name || !generation.has_name();
            // It may have been empty when it was looked at last.
            care::refresh(generation, &self.opener, fingerprint_size);
            if may_continue && generation.has_content_of(&mut content).unwrap_or(false) {
                entry.generation = Some(generation.number);
                return;
            }
        }
    }

    /// Between the last known generation and what was found now, files may have been created and removed unseen.
    fn note_broken_chain(&mut self, id: StreamId, entries: &[LogFileEntry], last_known: Option<usize>) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let has_new_rotations = entries.iter().any(|entry| {
            entry.generation.is_none()
                && entry.name.rotated_at.is_some()
                && entry.name.rotated_at > stream.last_rotation
        });
        let Some(last) = stream.generations.back() else { return };
        // Of a restored generation, what followed is reported as its end that was not seen.
        let is_restored = !last.has_file() && last.lost.is_none();
        if last_known.is_none() && has_new_rotations && !is_restored {
            let position = last.last_position();
            let modified = last.modified;
            stream.has_gap = true;
            self.lose_unknown_bytes(id, position, modified);
        }
    }

    fn adopt_entry(&mut self, id: StreamId, entry: LogFileEntry, is_older: bool) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        // The plain file was adopted just now: for a moment, a kubelet has both.
        let has_plain = |found: &&Generation| {
            entry.name.is_compressed && found.gzip.is_none() && found.rotated_at == entry.name.rotated_at
        };
        let adopted = || stream.generations.iter().find(has_plain).map(|found| found.number);
        if let Some(number) = entry.generation.or_else(adopted) {
            let Some(generation) = stream.generation_mut(number) else { return };
            generation.rotated_at = entry.name.rotated_at.clone().or(generation.rotated_at.take());
            if entry.name.rotated_at.is_none() {
                // It was renamed back, as a kubelet does when the runtime did not open a new file.
                generation.rotated_at = None;
            }
            let Some(arrived) = entry.arrived else { return };
            if generation.slots().all(|slot| slot.key != entry.key) {
                let slot = FileSlot::new(arrived.file.clone(), arrived.name.clone());
                if entry.name.is_compressed {
                    generation.gzip = Some(slot);
                    if let Ok(size) = read_uncompressed_size(&arrived) {
                        generation.size = generation.size.max(size);
                    }
                } else {
                    generation.key = entry.key;
                    generation.plain = Some(slot);
                    let _ = generation.look_at_plain(&arrived.file, self.settings.fingerprint_size);
                }
                generation.lost = None;
                self.owners.insert(entry.key, (id, number));
            }
            self.give_name(id, number, &arrived);
            return;
        }
        let Some(arrived) = entry.arrived else { return };
        let is_known = || {
            let opened = FileContent::open(&arrived.file, entry.name.is_compressed, self.settings.fingerprint_size);
            opened.is_ok_and(|mut content| stream.has_done(&mut content))
        };
        let was_dealt_with =
            entry.name.rotated_at.is_some() && (entry.name.rotated_at <= stream.last_rotation || is_known());
        if is_older || was_dealt_with {
            self.record_name(&arrived, NameOwner::Nothing);
            return;
        }
        let generation = self.create_generation(id, &entry.name, &arrived);
        let number = generation.number;
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.generations.push_back(generation);
            stream.has_gap = false;
            stream.is_ended = false;
        }
        self.owners.insert(entry.key, (id, number));
        self.give_name(id, number, &arrived);
    }

    fn create_generation(&mut self, id: StreamId, name: &KubeletName, arrived: &ArrivedFile) -> Generation {
        let number = self.streams.get(&id).map_or(0, LogStream::next_number);
        let mut generation = Generation::new(number, arrived.file.key());
        generation.rotated_at.clone_from(&name.rotated_at);
        generation.modified = arrived.status.modified;
        let slot = FileSlot::new(arrived.file.clone(), arrived.name.clone());
        let looked = if name.is_compressed {
            generation.gzip = Some(slot);
            generation.is_complete = true;
            generation.is_size_final = true;
            read_uncompressed_size(arrived).map(|size| generation.size = size).and_then(|()| {
                generation.first_line =
                    FileContent::open(&arrived.file, true, self.settings.fingerprint_size)?.first_line;
                Ok(())
            })
        } else {
            generation.plain = Some(slot);
            generation.look_at_plain(&arrived.file, self.settings.fingerprint_size)
        };
        if let Err(error) = looked {
            self.report_unreadable(arrived.path(), &error);
        } else {
            self.clear_problem(ProblemKind::Unreadable, arrived.path());
        }
        generation
    }

    /// Generations of a restored stream that have no file are lost, unless nothing of them was seen.
    pub(super) fn end_restoration(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let has_files = stream.generations.iter().any(Generation::has_file);
        let is_kept = |generation: &Generation| generation.has_file() || generation.size > 0 || !has_files;
        stream.generations.retain(is_kept);
        for generation in stream.generations.iter_mut().filter(|generation| !generation.has_file()) {
            generation.lost.get_or_insert(LossCause::Removed);
            generation.is_complete = true;
        }
    }
}

/// The last four bytes of a gzip file state its uncompressed size, modulo 4 GiB, which no rotated log exceeds.
fn read_uncompressed_size(arrived: &ArrivedFile) -> std::io::Result<u64> {
    let mut trailer = [0; 4];
    let Some(offset) = arrived.status.size.checked_sub(trailer.len() as u64) else { return Ok(0) };
    arrived.file.read_at(&mut trailer, offset)?;
    Ok(u64::from(u32::from_le_bytes(trailer)))
}
