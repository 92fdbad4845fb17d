//! An open file that several exporters share.

use std::{
    collections::BTreeMap,
    fs::{File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::{
        Arc, MutexGuard, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::SystemTime,
};

use kubewake_config::model::RotationConfig;
use kubewake_runtime::lock::Mutex;

use super::rotation;

/// Mode of new files: for their owner alone, as telemetry is about what people did. An existing file keeps its
/// mode.
const FILE_MODE: u32 = 0o600;

/// Every path that an exporter of this process was built for. Paths in the document stay: they are few, and a
/// file that was opened once is never emptied again. Paths of a group are removed with their last user.
static SHARED_FILES: Mutex<BTreeMap<PathBuf, SharedFileEntry>> = Mutex::new(BTreeMap::new());

struct SharedFileEntry {
    file: Weak<SharedFile>,
    was_open: Arc<AtomicBool>,
    keeping: PathRetention,
}

/// How long a path is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathRetention {
    /// Until the process ends: the path is in the document.
    Always,
    /// While it is used: the path contains a stranger's value.
    WhileUsed,
}

/// Treatment of existing content when this process opens a file for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExistingContent {
    Keep,
    Truncate,
}

/// A file by its path.
pub(super) struct SharedFile {
    path: PathBuf,
    was_open: Arc<AtomicBool>,
    open: Mutex<Option<OpenFile>>,
}

struct OpenFile {
    file: File,
    /// False for pipes and devices, which cannot be truncated.
    regular: bool,
    size: u64,
    /// The rest of a failed write may lie behind `size`.
    torn: bool,
}

impl SharedFile {
    /// The one instance of this process for `path`. Opens nothing yet.
    pub(super) fn for_path(path: &Path, keeping: PathRetention) -> io::Result<Arc<Self>> {
        let path = canonical_path(path)?;
        let mut sinks = SHARED_FILES.lock();
        sinks.retain(|_, entry| entry.keeping == PathRetention::Always || entry.file.strong_count() > 0);
        let known = sinks.get(&path);
        if let Some(sink) = known.and_then(|entry| entry.file.upgrade()) {
            return Ok(sink);
        }
        let was_open = known.map(|entry| entry.was_open.clone()).unwrap_or_default();
        let sink = Arc::new(Self { path: path.clone(), was_open: was_open.clone(), open: Mutex::new(None) });
        sinks.insert(path, SharedFileEntry { file: Arc::downgrade(&sink), was_open, keeping });
        Ok(sink)
    }

    /// Whether a path is remembered.
    #[cfg(test)]
    pub(super) fn is_known(path: &Path) -> bool {
        SHARED_FILES.lock().contains_key(&canonical_path(path).unwrap())
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes all of `data`, or nothing. `lines`: the content is lines, and `data` begins one.
    pub(super) fn write(
        &self,
        data: &[u8],
        start: ExistingContent,
        lines: bool,
        rotation: Option<&RotationConfig>,
        now: fn() -> SystemTime,
    ) -> io::Result<()> {
        let mut slot = self.open.lock();
        self.ensure_open(&mut slot, start, lines)?;
        if let Some(rotation) = rotation {
            let full = slot.as_ref().is_some_and(|open| open.is_full(data.len() as u64, rotation));
            if full {
                *slot = None;
                rotation::rotate(&self.path, rotation, now())?;
            }
        }
        self.ensure_open(&mut slot, start, lines)?.append(data)
    }

    /// Opens the file unless it is open.
    fn ensure_open<'a>(
        &self,
        slot: &'a mut MutexGuard<'_, Option<OpenFile>>,
        start: ExistingContent,
        lines: bool,
    ) -> io::Result<&'a mut OpenFile> {
        let open = match slot.take() {
            Some(open) => open,
            None => self.open_file(start, lines)?,
        };
        Ok(slot.insert(open))
    }

    /// Creates the file if it does not exist, and changes nothing in it.
    pub(super) fn create(&self) -> io::Result<()> {
        self.open_to_append(false).map(drop)
    }

    fn open_to_append(&self, read: bool) -> io::Result<File> {
        OpenOptions::new().append(true).create(true).mode(FILE_MODE).read(read).open(&self.path)
    }

    fn open_file(&self, start: ExistingContent, lines: bool) -> io::Result<OpenFile> {
        // Read access is for the end of the last line; some files are write-only.
        let file = self.open_to_append(true).or_else(|_| self.open_to_append(false))?;
        let regular = file.metadata()?.is_file();
        let first = !self.was_open.load(Ordering::Relaxed);
        if first && regular && start == ExistingContent::Truncate {
            file.set_len(0)?;
        }
        let size = file.metadata()?.len();
        let mut open = OpenFile { file, regular, size, torn: false };
        if lines && regular && open.ends_within_a_line() {
            open.append(b"\n")?;
        }
        self.was_open.store(true, Ordering::Relaxed);
        Ok(open)
    }
}

impl OpenFile {
    fn is_full(&self, more: u64, rotation: &RotationConfig) -> bool {
        let limit = u64::from(rotation.max_megabytes) * 1024 * 1024;
        self.regular && self.size > 0 && self.size.saturating_add(more) > limit
    }

    fn append(&mut self, data: &[u8]) -> io::Result<()> {
        if self.torn && self.regular {
            self.file.set_len(self.size)?;
        }
        self.torn = true;
        if let Err(error) = self.file.write_all(data) {
            // If this fails too, it is retried before the next write.
            if self.regular && self.file.set_len(self.size).is_ok() {
                self.torn = false;
            }
            return Err(error);
        }
        self.torn = false;
        self.size += data.len() as u64;
        Ok(())
    }

    /// Whether the last line is incomplete, as after a crash. A file that cannot be read counts as complete.
    fn ends_within_a_line(&mut self) -> bool {
        let mut last = [b'\n'];
        let read = self.file.seek(SeekFrom::End(-1)).and_then(|_| self.file.read_exact(&mut last));
        read.is_ok() && last != *b"\n"
    }
}

/// The canonical path, whatever the working directory and the symbolic links above it.
fn canonical_path(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path does not name a file"));
    };
    // A directory that does not exist has no other name.
    Ok(parent.canonicalize().unwrap_or_else(|_| parent.to_owned()).join(name))
}
