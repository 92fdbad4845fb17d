//! Files outside of containers' directories: each is a log of its own, under whatever name it has.

use std::path::PathBuf;

use super::{LogFiles, NameOwner, scan::ArrivedFile};
use crate::{
    file_content::FileContent,
    generation::{FileSlot, Generation},
    log_stream::{LogLayout, LogStream},
    open_file::GZIP_MAGIC,
    position::StreamId,
    settings::FileCompression,
};

impl LogFiles {
    pub(super) fn adopt_plain_files(&mut self, arrived: Vec<ArrivedFile>) {
        let arrived = self.select_by_order(arrived);
        for arrived in arrived {
            self.adopt_plain_file(&arrived);
        }
    }

    fn adopt_plain_file(&mut self, arrived: &ArrivedFile) {
        // Another name of a file that has arrived in the same scan.
        if let Some((id, number)) = self.known_owner(arrived) {
            self.give_name(id, number, arrived);
            return;
        }
        // An empty file is a log as soon as something is in it: until then it may become a copy of another one.
        if arrived.status.size == 0 || self.is_too_old(arrived) {
            self.record_name(arrived, NameOwner::Nothing);
            return;
        }
        let mut content =
            match FileContent::open(&arrived.file, self.is_compressed(arrived), self.settings.fingerprint_size) {
                Ok(content) => content,
                Err(error) => {
                    self.report_unreadable(arrived.path(), &error);
                    self.record_name(arrived, NameOwner::Nothing);
                    return;
                }
            };
        // A compressed file appears step by step.
        if content.is_empty() {
            self.record_name(arrived, NameOwner::Nothing);
            return;
        }
        if self.continue_stored_file(arrived, &mut content) {
            return;
        }
        // Files that are there at the first start of all are different logs, however alike they are.
        let may_be_copy = self.scans.has_scanned || self.positions.was_loaded();
        if may_be_copy && self.attach_copy(arrived, &mut content) {
            return;
        }
        if !self.has_room_for_stream(arrived.path()) {
            self.record_name(arrived, NameOwner::Nothing);
            return;
        }
        let id = self.take_stream_id();
        let mut stream = LogStream::new(id, LogLayout::Plain, arrived.name.path.clone(), self.outputs.len());
        stream.generations.push_back(Generation::new(0, arrived.file.key()));
        self.streams.insert(id, stream);
        self.attach_file(id, 0, arrived, &content);
        self.begin_stream(id);
    }

    /// A file whose positions are stored: the same one, or one with the content that was read.
    fn continue_stored_file(&mut self, arrived: &ArrivedFile, content: &mut FileContent) -> bool {
        let Some(found) = self.positions.take_plain_stream(content) else { return false };
        let id = self.restore_stream(found.stream);
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.path.clone_from(&arrived.name.path);
        }
        self.attach_file(id, found.generation, arrived, content);
        self.begin_stream(id);
        true
    }

    /// Makes the file one that holds the content of a generation.
    pub(super) fn attach_file(&mut self, id: StreamId, number: u64, arrived: &ArrivedFile, content: &FileContent) {
        let Some(generation) = self.streams.get_mut(&id).and_then(|stream| stream.generation_mut(number)) else {
            return;
        };
        let slot = FileSlot::new(arrived.file.clone(), arrived.name.clone());
        if content.is_compressed {
            generation.gzip = Some(slot);
            generation.first_line = content.first_line.or(generation.first_line);
            generation.modified = arrived.status.modified;
        } else {
            let previous = generation.plain.replace(slot).map(|slot| slot.key);
            generation.key = arrived.file.key();
            let _ = generation.look_at_plain(&arrived.file, self.settings.fingerprint_size);
            if let Some(previous) = previous {
                self.owners.remove(&previous);
            }
        }
        if let Some(generation) = self.streams.get_mut(&id).and_then(|stream| stream.generation_mut(number)) {
            generation.lost = None;
        }
        self.owners.insert(arrived.file.key(), (id, number));
        self.give_name(id, number, arrived);
    }

    fn is_compressed(&self, arrived: &ArrivedFile) -> bool {
        match self.settings.compression {
            FileCompression::None => false,
            FileCompression::Gzip => true,
            FileCompression::Auto => arrived.file.read_head(GZIP_MAGIC.len()).is_ok_and(|head| head == GZIP_MAGIC),
        }
    }

    /// Applies the order of files, for which all that match count.
    fn select_by_order(&mut self, arrived: Vec<ArrivedFile>) -> Vec<ArrivedFile> {
        let Some(ordering) = self.settings.ordering.clone() else { return arrived };
        let mut paths: Vec<PathBuf> = arrived.iter().map(|arrived| arrived.name.path.clone()).collect();
        for (directory, names) in &self.names {
            paths.extend(names.keys().map(|name| directory.join(name)));
        }
        let modified = |path: &std::path::Path| std::fs::symlink_metadata(path).and_then(|data| data.modified()).ok();
        let selected = ordering.select(&paths, modified);
        let now = std::time::Instant::now();
        let mut deselected = Vec::new();
        let mut again = Vec::new();
        for (directory, names) in &mut self.names {
            names.retain(|name, record| {
                let path = directory.join(name);
                match (selected.contains(&path), record.owner) {
                    // It has moved up, and is looked at once more.
                    (true, NameOwner::Nothing) => {
                        again.push(directory.clone());
                        return false;
                    }
                    (false, NameOwner::Stream(_)) => {
                        deselected.push((path, record.clone()));
                        record.owner = NameOwner::Nothing;
                    }
                    _ => {}
                }
                true
            });
        }
        self.changes.directories.extend(again);
        for (path, record) in deselected {
            self.lose_name(&path, &record, now);
        }
        let (mut wanted, unwanted): (Vec<_>, Vec<_>) =
            arrived.into_iter().partition(|arrived| selected.contains(&arrived.name.path));
        for arrived in &unwanted {
            self.record_name(arrived, NameOwner::Nothing);
        }
        let rank = |arrived: &ArrivedFile| selected.iter().position(|path| *path == arrived.name.path);
        wanted.sort_by_key(rank);
        wanted
    }
}
