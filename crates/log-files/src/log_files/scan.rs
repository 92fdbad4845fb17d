//! From the files that were found to the names that are gone, kept and new.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    ffi::OsString,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use super::{LogFiles, MAX_RESCAN_SHARE, NameOwner, NameRecord};
use crate::{
    directory_tree::{FoundFile, ScanResult, ScannedDirectory},
    events::{FileProblem, ProblemKind},
    file_content::FileContent,
    file_opener::OpenFailure,
    generation::FileName,
    open_file::{FileStatus, OpenFile},
};

/// How long directories that change are not listed again, as a multiple of the time that it took.
const CHANGED_PAUSE_FACTOR: u32 = 10;

/// The longest such pause.
const MAX_CHANGED_PAUSE: Duration = Duration::from_secs(1);

/// A file under a name that was not known, or that stood for another file.
pub(super) struct ArrivedFile {
    pub(super) name: FileName,
    pub(super) found: FoundFile,
    pub(super) file: Arc<OpenFile>,
    pub(super) status: FileStatus,
}

impl ArrivedFile {
    pub(super) fn path(&self) -> &Path {
        &self.name.path
    }
}

impl LogFiles {
    /// Lists what has changed, or everything when it is time to.
    pub(super) fn scan_changes(&mut self) {
        let started = Instant::now();
        let overflowed = std::mem::take(&mut self.changes.overflowed);
        self.statistics.overflows += u64::from(overflowed);
        let base_may_exist = self.changes.directories.iter().any(|path| self.tree.is_awaited(path));
        let polled_due = !self.tree.polled().is_empty() && started >= self.scans.polled_due;
        let result = if overflowed || base_may_exist || started >= self.scans.everything_due {
            self.changes.directories.clear();
            let result = self.tree.scan_all(&mut self.watcher);
            let pause = self.settings.rescan_interval.max(started.elapsed() * MAX_RESCAN_SHARE);
            self.scans.everything_due = Instant::now() + pause;
            // A write may have been missed, too.
            let written = self.streams.values().filter(|stream| !stream.is_ended);
            let written: Vec<_> = written.map(|stream| stream.id).collect();
            written.into_iter().for_each(|stream| self.wake_stream(stream));
            result
        } else if polled_due || (!self.changes.directories.is_empty() && started >= self.scans.changed_due) {
            let mut directories = std::mem::take(&mut self.changes.directories);
            if polled_due {
                self.wake_polled_files();
                directories.extend(self.tree.polled().iter().cloned());
            }
            let result = self.tree.scan_changed(directories, &mut self.watcher);
            // A large directory that changes all the time is not listed all the time.
            self.scans.changed_due = Instant::now() + (started.elapsed() * CHANGED_PAUSE_FACTOR).min(MAX_CHANGED_PAUSE);
            if polled_due {
                let pause = self.settings.poll_interval.max(started.elapsed() * MAX_RESCAN_SHARE);
                self.scans.polled_due = Instant::now() + pause;
            }
            result
        } else {
            return;
        };
        self.apply_scan(result);
        if !std::mem::replace(&mut self.scans.has_scanned, true) {
            self.give_up_missing_streams();
        }
        self.end_scan_waits();
    }

    #[cfg(test)]
    pub(super) fn waits_for_scan(&self) -> bool {
        !self.changes.directories.is_empty()
    }

    /// Readers of files that were written have something to read; a written file without a stream is looked at again.
    pub(super) fn wake_written_files(&mut self) {
        for path in std::mem::take(&mut self.changes.files) {
            let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else { continue };
            let Some(names) = self.names.get_mut(directory) else { continue };
            match names.get(name).map(|record| record.owner) {
                Some(NameOwner::Stream(stream)) => self.wake_stream(stream),
                Some(NameOwner::Copy(..) | NameOwner::Nothing) => {
                    names.remove(name);
                    self.changes.directories.insert(directory.to_path_buf());
                }
                // It could not be opened, or is not wanted.
                None => {}
            }
        }
    }

    fn wake_polled_files(&mut self) {
        let mut streams = Vec::new();
        for directory in self.tree.polled() {
            let Some(names) = self.names.get_mut(directory) else { continue };
            // Copies and empty files are looked at again.
            names.retain(|_, record| matches!(record.owner, NameOwner::Stream(_)));
            streams.extend(names.values().filter_map(|record| match record.owner {
                NameOwner::Stream(stream) => Some(stream),
                _ => None,
            }));
        }
        streams.into_iter().for_each(|stream| self.wake_stream(stream));
    }

    fn apply_scan(&mut self, mut result: ScanResult) {
        let now = Instant::now();
        self.scan_began = now;
        for problem in std::mem::take(&mut result.problems) {
            self.report(problem);
        }
        for directory in &result.removed {
            for (name, record) in self.names.remove(directory).unwrap_or_default() {
                self.lose_name(&directory.join(name), &record, now);
            }
        }
        let mut arrived = Vec::new();
        let mut containers = BTreeSet::new();
        for directory in &result.directories {
            self.compare_names(directory, &mut arrived, &mut containers, now);
        }
        self.leave_changing_containers(&result.directories, &mut arrived);
        let arrived = self.recognise_files(arrived);
        let (kubelet, plain): (Vec<_>, Vec<_>) =
            arrived.into_iter().partition(|arrived| arrived.found.kubelet.is_some());
        let mut kubelet: BTreeMap<PathBuf, ArrivedFile> =
            kubelet.into_iter().map(|arrived| (arrived.name.path.clone(), arrived)).collect();
        for directory in result.directories.iter().filter(|directory| containers.contains(&directory.path)) {
            self.adopt_kubelet_files(directory, &mut kubelet);
        }
        self.adopt_plain_files(plain);
    }

    /// The order of a container's files is that of their names, which a rotation between the listing and the opening
    /// has changed. Such a directory is listed once more.
    fn leave_changing_containers(&mut self, directories: &[ScannedDirectory], arrived: &mut Vec<ArrivedFile>) {
        for directory in directories {
            let is_its = |arrived: &ArrivedFile| {
                arrived.found.kubelet.is_some() && arrived.path().parent() == Some(&*directory.path)
            };
            if arrived.iter().any(is_its) && !self.tree.is_unchanged(directory) {
                arrived.retain(|arrived| !is_its(arrived));
                self.changes.directories.insert(directory.path.clone());
            }
        }
    }

    /// Finds the names that are gone, and opens the files of new ones.
    fn compare_names(
        &mut self,
        directory: &ScannedDirectory,
        arrived: &mut Vec<ArrivedFile>,
        containers: &mut BTreeSet<PathBuf>,
        now: Instant,
    ) {
        let records = self.names.remove(&directory.path).unwrap_or_default();
        let mut kept = std::collections::HashMap::new();
        for (name, record) in records {
            let is_kept = match directory.files.get(&name) {
                Some(found) if found.is_link => self.leads_to(directory, &name, &record),
                Some(found) => found.inode == record.listed_inode,
                None => false,
            };
            if is_kept {
                kept.insert(name, record);
            } else {
                self.lose_name(&directory.path.join(&name), &record, now);
                containers.insert(directory.path.clone());
            }
        }
        for (name, found) in &directory.files {
            if kept.contains_key(name) {
                continue;
            }
            let name = FileName { base: directory.base.clone(), path: directory.path.join(name) };
            if let Some(file) = self.open_found(&name) {
                if found.kubelet.is_some() {
                    containers.insert(directory.path.clone());
                }
                match file.status() {
                    Ok(status) => arrived.push(ArrivedFile { name, found: found.clone(), file, status }),
                    Err(error) => self.report_unreadable(&name.path, &error),
                }
            }
        }
        if !kept.is_empty() {
            self.names.insert(directory.path.clone(), kept);
        }
    }

    fn leads_to(&self, directory: &ScannedDirectory, name: &OsString, record: &NameRecord) -> bool {
        let name = FileName { base: directory.base.clone(), path: directory.path.join(name) };
        name.open(&self.opener).is_ok_and(|file| file.key() == record.key)
    }

    fn open_found(&mut self, name: &FileName) -> Option<Arc<OpenFile>> {
        self.make_room_for_file();
        match name.open(&self.opener) {
            Ok(file) => {
                self.clear_problem(ProblemKind::Unreadable, &name.path);
                Some(Arc::new(file))
            }
            Err(OpenFailure::Absent) => None,
            Err(OpenFailure::RefusedLink) => {
                let message = "refused to follow a symbolic link: it leads out of the configured directories";
                self.report(FileProblem::new(ProblemKind::RefusedLink, &name.path, message));
                None
            }
            Err(OpenFailure::Io(error)) => {
                self.report_unreadable(&name.path, &error);
                None
            }
        }
    }

    pub(super) fn report_unreadable(&mut self, path: &Path, error: &std::io::Error) {
        let message = format!("failed to read file, trying again: {error}");
        self.report(FileProblem::new(ProblemKind::Unreadable, path, message));
    }

    /// The name stands for its file no more.
    pub(super) fn lose_name(&mut self, path: &Path, record: &NameRecord, now: Instant) {
        let NameOwner::Stream(id) = record.owner else { return };
        let Some(stream) = self.streams.get_mut(&id) else { return };
        for slot in stream.generations.iter_mut().flat_map(|generation| generation.slots_mut()) {
            if slot.name.as_ref().is_some_and(|name| name.path == path) {
                slot.lose_name(now);
            }
        }
        self.recheck_copies(id);
        self.care_soon(id);
        self.wake_stream(id);
    }

    /// Gives files that are known their new names, and returns the others.
    fn recognise_files(&mut self, arrived: Vec<ArrivedFile>) -> Vec<ArrivedFile> {
        let mut unknown = Vec::new();
        for arrived in arrived {
            let Some((id, number)) = self.known_owner(&arrived) else {
                unknown.push(arrived);
                continue;
            };
            // The log of a container is known by its directory, whose other files are then looked at, too.
            if arrived.found.kubelet.is_some() {
                unknown.push(arrived);
            } else {
                self.give_name(id, number, &arrived);
            }
        }
        unknown
    }

    /// The stream and generation that an open file belongs to.
    pub(super) fn known_owner(&mut self, arrived: &ArrivedFile) -> Option<(super::StreamId, u64)> {
        let key = arrived.file.key();
        let (id, number) = *self.owners.get(&key)?;
        let fingerprint_size = self.settings.fingerprint_size;
        let generation = self.streams.get_mut(&id).and_then(|stream| stream.generation_mut(number));
        let is_same = generation.is_some_and(|generation| {
            let is_compressed = generation.gzip.as_ref().is_some_and(|slot| slot.key == key);
            match generation.slots().find(|slot| slot.key == key) {
                // An inode of an open file is not used again.
                Some(slot) if slot.handle.is_some() => true,
                Some(_) => FileContent::open(&arrived.file, is_compressed, fingerprint_size)
                    .and_then(|mut content| generation.has_content_of(&mut content))
                    .unwrap_or(false),
                None => false,
            }
        });
        if !is_same {
            self.owners.remove(&key);
        }
        is_same.then_some((id, number))
    }

    /// Records the name of a file of a stream.
    pub(super) fn give_name(&mut self, id: super::StreamId, number: u64, arrived: &ArrivedFile) {
        let key = arrived.file.key();
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let is_last = stream.generations.back().is_some_and(|generation| generation.number == number);
        let is_plain_log = stream.layout == crate::log_stream::LogLayout::Plain;
        if let Some(slot) =
            stream.generation_mut(number).and_then(|generation| generation.slots_mut().find(|slot| slot.key == key))
        {
            slot.set_name(arrived.name.clone());
            slot.handle.get_or_insert_with(|| arrived.file.clone());
        }
        if stream.is_ended && is_last {
            stream.is_ended = false;
            if let Some(generation) = stream.generations.back_mut() {
                generation.is_complete = false;
            }
        }
        if is_plain_log && is_last && stream.path != arrived.name.path {
            stream.path.clone_from(&arrived.name.path);
            self.events.push(super::LogEvent::Moved(id));
        }
        self.record_name(arrived, NameOwner::Stream(id));
        self.care_soon(id);
        self.wake_stream(id);
    }

    pub(super) fn record_name(&mut self, arrived: &ArrivedFile, owner: NameOwner) {
        let (Some(directory), Some(name)) = (arrived.name.path.parent(), arrived.name.path.file_name()) else { return };
        let record = NameRecord { listed_inode: arrived.found.inode, key: arrived.file.key(), owner };
        self.names.entry(directory.to_path_buf()).or_default().insert(name.to_os_string(), record);
        self.positions.note_change();
    }

    /// Scans that generations waited for have run.
    fn end_scan_waits(&mut self) {
        let waiting: HashSet<_> = std::mem::take(&mut self.awaiting_scan);
        for id in waiting {
            if let Some(stream) = self.streams.get_mut(&id) {
                stream.generations.iter_mut().for_each(|generation| generation.awaits_scan = false);
            }
            self.wake_stream(id);
        }
    }
}
