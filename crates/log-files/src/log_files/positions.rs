//! Positions across restarts.
//!
//! *Guarantees*: a value that cannot be read is set aside and reported, and reading starts as `start_at` says. A save
//! that fails is reported and tried again; reading goes on. Nothing is written while nothing changes.

use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime},
};

use super::{LogFiles, losses::all_outputs};
use crate::{
    checkpoint::{Checkpoint, StoredGeneration, StoredStream},
    events::{FileProblem, LogEvent, LossCause, LostBytes, LostRange, ProblemKind},
    file_content::{ContentIdentity, FileContent},
    fingerprint::FileKey,
    generation::Generation,
    log_stream::{LogLayout, LogStream},
    position::{LogPosition, OutputId, OutputSet, StreamId},
    position_store::PositionStore,
    settings::LogFilesSettings,
};

/// How long until a failed save is tried again.
const SAVE_RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// Storing positions takes no more than this part of the time…
const MAX_SAVE_SHARE: u32 = 10;

/// …unless that would mean a longer interval than this.
const MAX_SAVE_INTERVAL: Duration = Duration::from_secs(5);

/// How soon a change is stored after a quiet time: changes come in groups.
const SAVE_DELAY: Duration = Duration::from_millis(20);

pub(super) struct PositionKeeper {
    store: Option<Box<dyn PositionStore>>,
    boot_id: Vec<u8>,
    /// Device numbers of the stored files still mean the same.
    is_same_boot: bool,
    was_loaded: bool,
    next_stream: u64,
    /// Streams whose files were not found yet. Their positions are those of the outputs of now.
    missing: Vec<StoredStream>,
    restored: HashMap<StreamId, Vec<Option<LogPosition>>>,
    interval: Duration,
    save_due: Option<Instant>,
    saved_at: Option<Instant>,
}

/// A stored stream, and the generation that a file has the content of.
pub(super) struct FoundStream {
    pub(super) stream: StoredStream,
    pub(super) generation: u64,
}

impl PositionKeeper {
    pub(super) fn load(
        store: Option<Box<dyn PositionStore>>,
        outputs: &[String],
        settings: &LogFilesSettings,
        now: Instant,
    ) -> (Self, Option<FileProblem>) {
        let boot_id = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let mut keeper = Self {
            store,
            boot_id,
            is_same_boot: false,
            was_loaded: false,
            next_stream: 0,
            missing: Vec::new(),
            restored: HashMap::new(),
            interval: settings.checkpoint_interval,
            // What is found at first is stored soon, too.
            save_due: Some(now + SAVE_DELAY),
            saved_at: None,
        };
        let problem = keeper.load_checkpoint(outputs);
        (keeper, problem)
    }

    fn load_checkpoint(&mut self, outputs: &[String]) -> Option<FileProblem> {
        let store = self.store.as_mut()?;
        let path = store.path().to_path_buf();
        let (cause, kept) = match store.load() {
            Ok(None) => return None,
            Ok(Some(value)) => match Checkpoint::decode(&value) {
                Ok(checkpoint) => {
                    self.use_checkpoint(checkpoint, outputs);
                    return None;
                }
                Err(error) => (error.to_string(), store.set_aside()),
            },
            Err(error) => (error.to_string(), store.set_aside()),
        };
        let help = match kept {
            Ok(kept) => format!("the file is kept as {}, and reading starts as start_at says", kept.display()),
            Err(_) => "reading starts as start_at says".to_owned(),
        };
        let message = format!("failed to read positions of log files: {cause}; {help}");
        Some(FileProblem::new(ProblemKind::BadCheckpoint, &path, message))
    }

    fn use_checkpoint(&mut self, checkpoint: Checkpoint, outputs: &[String]) {
        self.was_loaded = true;
        self.is_same_boot = checkpoint.boot_id == self.boot_id;
        self.next_stream = checkpoint.next_stream;
        let index_of = |name: &String| checkpoint.outputs.iter().position(|stored| stored == name);
        let indices: Vec<Option<usize>> = outputs.iter().map(index_of).collect();
        self.missing = checkpoint.streams;
        for stream in &mut self.missing {
            let position_of = |index: &Option<usize>| index.and_then(|index| stream.positions.get(index).copied()?);
            stream.positions = indices.iter().map(position_of).collect();
        }
    }

    pub(super) fn next_stream(&self) -> u64 {
        self.next_stream
    }

    /// Whether this is no first start.
    pub(super) fn was_loaded(&self) -> bool {
        self.was_loaded
    }

    pub(super) fn note_change(&mut self) {
        if self.save_due.is_none() {
            let soon = Instant::now() + SAVE_DELAY;
            self.save_due = Some(self.saved_at.map_or(soon, |saved_at| soon.max(saved_at + self.interval)));
        }
    }

    pub(super) fn save_due(&self) -> Option<Instant> {
        self.save_due.filter(|_| self.store.is_some())
    }

    pub(super) fn take_kubelet_stream(&mut self, path: &Path) -> Option<StoredStream> {
        let is_it = |stored: &StoredStream| stored.layout == LogLayout::Kubelet && stored.path == path;
        let index = self.missing.iter().position(is_it)?;
        Some(self.missing.swap_remove(index))
    }

    /// Finds the stream of a file: the inode says which it may be, and the content decides. A file with another inode
    /// is the same log if it begins with the same line and has what was read.
    pub(super) fn take_plain_stream(&mut self, file: &mut FileContent) -> Option<FoundStream> {
        let mut found = None;
        for (index, stream) in self.missing.iter().enumerate() {
            if stream.layout != LogLayout::Plain {
                continue;
            }
            for stored in stream.generations.iter().rev() {
                let is_same_device = !self.is_same_boot || stored.key.device == file.key.device;
                let has_inode = is_same_device && stored.key.inode == file.key.inode;
                let key = if has_inode { file.key } else { FileKey::default() };
                let StoredGeneration { first_line, head, mark, .. } = *stored;
                let identity = ContentIdentity { key, first_line, head, mark };
                // The inode decides between files with equal content.
                if (found.is_none() || has_inode) && identity.is_of(file).unwrap_or(false) {
                    found = Some((index, stored.number));
                    if has_inode {
                        break;
                    }
                }
            }
        }
        let (index, generation) = found?;
        Some(FoundStream { stream: self.missing.swap_remove(index), generation })
    }

    pub(super) fn take_restored(&mut self, id: StreamId) -> Option<Vec<Option<LogPosition>>> {
        self.restored.remove(&id)
    }
}

impl LogFiles {
    /// Makes a stream of a stored one, whose generations have no files yet.
    pub(super) fn restore_stream(&mut self, stored: StoredStream) -> StreamId {
        let id = stored.id;
        self.next_stream = self.next_stream.max(id.0.saturating_add(1));
        let mut stream = LogStream::new(id, stored.layout, stored.path, self.outputs.len());
        stream.last_rotation = stored.last_rotation;
        for kept in stored.generations {
            let mut generation = Generation::new(kept.number, kept.key);
            generation.start = kept.start;
            generation.first_line = kept.first_line;
            generation.head = kept.head;
            generation.mark = kept.mark;
            generation.size = kept.size;
            generation.is_size_final = kept.is_size_final;
            generation.rotated_at = kept.rotated_at;
            generation.modified = kept.modified;
            stream.generations.push_back(generation);
        }
        self.positions.restored.insert(id, stored.positions);
        self.streams.insert(id, stream);
        id
    }

    /// After the first scan: streams whose files are gone are lost, unless their directory is not there at all.
    pub(super) fn give_up_missing_streams(&mut self) {
        let bases: Vec<PathBuf> = self
            .settings
            .include
            .iter()
            .flat_map(|pattern| pattern.alternatives())
            .map(|found| found.base.clone())
            .collect();
        let missing = std::mem::take(&mut self.positions.missing);
        for stored in missing {
            let is_gone = bases.iter().any(|base| stored.path.starts_with(base) && self.tree.is_listed(base));
            if is_gone {
                self.lose_stored_stream(&stored);
                self.positions.note_change();
            } else {
                self.positions.missing.push(stored);
            }
        }
    }

    fn lose_stored_stream(&mut self, stored: &StoredStream) {
        let id = self.restore_stream(stored.clone());
        let Some(stream) = self.streams.remove(&id) else { return };
        self.positions.take_restored(id);
        let mut losses: HashMap<(LogPosition, LostBytes), OutputSet> = HashMap::new();
        let is_final = stored.generations.last().is_some_and(|last| last.is_size_final);
        for output in all_outputs(&stream).iter() {
            let Some(position) = stored.positions.get(usize::from(output.0)).copied().flatten() else { continue };
            let bytes = stream.bytes_after(position);
            let bytes = if is_final { LostBytes::Exact(bytes) } else { LostBytes::AtLeast(bytes) };
            // What was written after the last look is not known.
            if bytes.known() > 0 || !is_final {
                losses.entry((position, bytes)).or_default().insert(output);
            }
        }
        for ((position, bytes), outputs) in losses {
            self.events.push(LogEvent::Lost(LostRange {
                stream: id,
                path: stream.path.clone(),
                outputs,
                position,
                bytes,
                after: stored.generations.first().and_then(|first| first.modified),
                before: Some(SystemTime::now()),
                cause: LossCause::Removed,
            }));
        }
    }

    /// Stores positions when it is time to.
    pub(super) fn save_positions(&mut self, now: Instant) {
        // Before the first scan, streams of the last run are not complete.
        if self.scans.has_scanned && self.positions.save_due().is_some_and(|due| due <= now) {
            let _ = self.save_now();
        }
    }

    /// Stores positions and ends. Without it, a restart continues from the positions that were stored last.
    pub fn shut_down(mut self) -> io::Result<()> {
        self.apply_commits();
        if self.scans.has_scanned && self.positions.save_due().is_some() { self.save_now() } else { Ok(()) }
    }

    fn save_now(&mut self) -> io::Result<()> {
        let checkpoint = self.make_checkpoint();
        let Some(store) = self.positions.store.as_mut() else { return Ok(()) };
        let started = Instant::now();
        let saved = store.save(&checkpoint.encode());
        let path = store.path().to_path_buf();
        match &saved {
            Ok(()) => {
                self.statistics.checkpoints_saved += 1;
                self.positions.save_due = None;
                self.positions.saved_at = Some(Instant::now());
                let pause = (started.elapsed() * MAX_SAVE_SHARE).min(MAX_SAVE_INTERVAL);
                self.positions.interval = self.settings.checkpoint_interval.max(pause);
                self.clear_problem(ProblemKind::CheckpointNotSaved, &path);
            }
            Err(error) => {
                self.positions.save_due = Some(Instant::now() + SAVE_RETRY_INTERVAL.min(self.positions.interval * 5));
                let message = format!("failed to store positions of log files, trying again: {error}");
                self.report(FileProblem::new(ProblemKind::CheckpointNotSaved, &path, message));
            }
        }
        saved
    }

    fn make_checkpoint(&self) -> Checkpoint {
        let mut streams: Vec<StoredStream> = self.streams.values().map(store_stream).collect();
        streams.extend(self.positions.missing.iter().cloned());
        Checkpoint {
            boot_id: self.positions.boot_id.clone(),
            next_stream: self.next_stream,
            outputs: self.outputs.clone(),
            streams,
        }
    }

    /// The position that a restart would continue from, if positions were stored now.
    pub fn committed(&self, output: OutputId, stream: StreamId) -> Option<LogPosition> {
        self.streams.get(&stream)?.committed(output)
    }
}

fn store_stream(stream: &LogStream) -> StoredStream {
    let generations = stream.generations.iter().map(|generation| StoredGeneration {
        number: generation.number,
        start: generation.start,
        key: generation.key,
        first_line: generation.first_line,
        head: generation.head,
        mark: generation.mark,
        size: generation.size,
        is_size_final: generation.is_size_final,
        rotated_at: generation.rotated_at.clone(),
        modified: generation.modified,
    });
    StoredStream {
        id: stream.id,
        layout: stream.layout,
        path: stream.path.clone(),
        last_rotation: stream.last_rotation.clone(),
        generations: generations.collect(),
        positions: stream.committed.iter().copied().map(Some).collect(),
    }
}
