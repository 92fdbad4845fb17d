//! An open file that several exporters share.

use std::{
    collections::BTreeMap,
    fs::{File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::SystemTime,
};

use kubewake_config::model::Rotation;

use super::rotation;

/// Files that are created here are for their owner alone: telemetry says what people did. One that is there keeps its mode.
const FILE_MODE: u32 = 0o600;

/// Every path that an exporter of this process was built for. Entries of the document stay, as few as they are: what
/// was opened once is never emptied again. Those of a group go with their last user.
static SINKS: Mutex<BTreeMap<PathBuf, Entry>> = Mutex::new(BTreeMap::new());

struct Entry {
    sink: Weak<Sink>,
    was_open: Arc<AtomicBool>,
    keeping: Keeping,
}

/// How long it is remembered that a file was open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keeping {
    /// As long as the process runs: the path is in a document.
    Always,
    /// As long as somebody uses it: a stranger chose it.
    WhileUsed,
}

/// What happens to the content that a file has when this process opens it for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// It stays.
    Keep,
    /// It goes.
    Empty,
}

/// A file by its path.
pub(super) struct Sink {
    path: PathBuf,
    was_open: Arc<AtomicBool>,
    open: Mutex<Option<Open>>,
}

struct Open {
    file: File,
    /// Not for pipes and devices: those have no length to go back to.
    regular: bool,
    size: u64,
    /// Behind `size` there may be the rest of a failed write.
    torn: bool,
}

impl Sink {
    /// The one sink of this process for `path`. Opens nothing yet.
    pub(super) fn at(path: &Path, keeping: Keeping) -> io::Result<Arc<Self>> {
        let path = full(path)?;
        let mut sinks = SINKS.lock().unwrap_or_else(PoisonError::into_inner);
        sinks.retain(|_, entry| entry.keeping == Keeping::Always || entry.sink.strong_count() > 0);
        let known = sinks.get(&path);
        if let Some(sink) = known.and_then(|entry| entry.sink.upgrade()) {
            return Ok(sink);
        }
        let was_open = known.map(|entry| entry.was_open.clone()).unwrap_or_default();
        let sink = Arc::new(Self { path: path.clone(), was_open: was_open.clone(), open: Mutex::new(None) });
        sinks.insert(path, Entry { sink: Arc::downgrade(&sink), was_open, keeping });
        Ok(sink)
    }

    /// Whether anything is remembered of a path.
    #[cfg(test)]
    pub(super) fn is_known(path: &Path) -> bool {
        SINKS.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&full(path).unwrap())
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes all of `data`, or nothing. `lines`: the content is lines, and `data` begins one.
    pub(super) fn write(
        &self,
        data: &[u8],
        start: Start,
        lines: bool,
        rotation: Option<&Rotation>,
        now: fn() -> SystemTime,
    ) -> io::Result<()> {
        let mut slot = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        self.opened(&mut slot, start, lines)?;
        if let Some(rotation) = rotation {
            let full = slot.as_ref().is_some_and(|open| open.is_full(data.len() as u64, rotation));
            if full {
                *slot = None;
                rotation::rotate(&self.path, rotation, now())?;
            }
        }
        self.opened(&mut slot, start, lines)?.append(data)
    }

    /// The file, opened if it is not.
    fn opened<'a>(
        &self,
        slot: &'a mut MutexGuard<'_, Option<Open>>,
        start: Start,
        lines: bool,
    ) -> io::Result<&'a mut Open> {
        let open = match slot.take() {
            Some(open) => open,
            None => self.open_file(start, lines)?,
        };
        Ok(slot.insert(open))
    }

    /// Creates the file if it is not there, and changes nothing in it.
    pub(super) fn create(&self) -> io::Result<()> {
        self.open_to_append(false).map(drop)
    }

    fn open_to_append(&self, read: bool) -> io::Result<File> {
        OpenOptions::new().append(true).create(true).mode(FILE_MODE).read(read).open(&self.path)
    }

    fn open_file(&self, start: Start, lines: bool) -> io::Result<Open> {
        // Reading is for the end of the last line; some files can only be written to.
        let file = self.open_to_append(true).or_else(|_| self.open_to_append(false))?;
        let regular = file.metadata()?.is_file();
        let first = !self.was_open.load(Ordering::Relaxed);
        if first && regular && start == Start::Empty {
            file.set_len(0)?;
        }
        let size = file.metadata()?.len();
        let mut open = Open { file, regular, size, torn: false };
        if lines && regular && open.ends_within_a_line() {
            open.append(b"\n")?;
        }
        self.was_open.store(true, Ordering::Relaxed);
        Ok(open)
    }
}

impl Open {
    fn is_full(&self, more: u64, rotation: &Rotation) -> bool {
        let limit = u64::from(rotation.max_megabytes) * 1024 * 1024;
        self.regular && self.size > 0 && self.size.saturating_add(more) > limit
    }

    fn append(&mut self, data: &[u8]) -> io::Result<()> {
        if self.torn && self.regular {
            self.file.set_len(self.size)?;
        }
        self.torn = true;
        if let Err(error) = self.file.write_all(data) {
            // If this fails too, it is tried again before the next write.
            if self.regular && self.file.set_len(self.size).is_ok() {
                self.torn = false;
            }
            return Err(error);
        }
        self.torn = false;
        self.size += data.len() as u64;
        Ok(())
    }

    /// Whether a process that wrote to it ended in the middle of a line. What cannot be read counts as whole.
    fn ends_within_a_line(&mut self) -> bool {
        let mut last = [b'\n'];
        let read = self.file.seek(SeekFrom::End(-1)).and_then(|_| self.file.read_exact(&mut last));
        read.is_ok() && last != *b"\n"
    }
}

/// The path by which the file is known, whatever the working directory and the symbolic links above it.
fn full(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"));
    };
    // A directory that is not there yet has no other name.
    Ok(parent.canonicalize().unwrap_or_else(|_| parent.to_owned()).join(name))
}
