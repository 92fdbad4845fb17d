//! The log of one run of a container: a file, and the one before it.
//!
//! *Guarantees.* Two files at most, each of the given size or what was appended at once if that is more; a file holds whole entries only; a reader that is not too slow misses nothing when a new file
//! is begun. *Assumes* that there is one writer.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::FileExt,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;

/// So much is read at once.
pub(super) const BLOCK: usize = 64 << 10;

/// How far the writer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Progress {
    /// The number of the file that is written, from 0.
    pub(super) part: u64,
    /// So much of it is written.
    pub(super) length: u64,
    /// Nothing more comes.
    pub(super) ended: bool,
}

/// A place between two entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) part: u64,
    pub(super) offset: u64,
}

#[derive(Debug)]
pub(super) struct RunLog {
    path: PathBuf,
    /// In bytes, of one file.
    limit: u64,
    /// Open while it is written. The lock is held while files change their names.
    file: Mutex<Option<File>>,
    progress: watch::Sender<Progress>,
}

impl RunLog {
    /// A new file at this path.
    pub(super) fn create(path: PathBuf, limit: u64) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).write(true).truncate(true).open(&path)?;
        let progress = watch::Sender::new(Progress { part: 0, length: 0, ended: false });
        Ok(Self { path, limit, file: Mutex::new(Some(file)), progress })
    }

    /// One that an earlier life of the node wrote: nothing more comes.
    pub(super) fn open_again(path: PathBuf, limit: u64) -> io::Result<Self> {
        let length = fs::metadata(&path)?.len();
        let progress = watch::Sender::new(Progress { part: 0, length, ended: true });
        let log = Self { path, limit, file: Mutex::new(None), progress };
        let part = u64::from(log.old_path().exists());
        log.progress.send_modify(|progress| progress.part = part);
        Ok(log)
    }

    /// Appends whole entries.
    pub(super) fn append(&self, entries: &[u8]) -> io::Result<()> {
        let mut file = self.file();
        let mut progress = *self.progress.borrow();
        if progress.length > 0 && progress.length + entries.len() as u64 > self.limit {
            fs::rename(&self.path, self.old_path())?;
            *file = Some(OpenOptions::new().create(true).write(true).truncate(true).open(&self.path)?);
            progress = Progress { part: progress.part + 1, length: 0, ended: false };
            self.progress.send_replace(progress);
        }
        let Some(file) = file.as_mut() else { return Ok(()) };
        // By its place, so that what a failed write left is written over.
        file.write_all_at(entries, progress.length)?;
        file.flush()?;
        progress.length += entries.len() as u64;
        self.progress.send_replace(progress);
        Ok(())
    }

    /// Nothing more comes.
    pub(super) fn end(&self) {
        *self.file() = None;
        self.progress.send_modify(|progress| progress.ended = true);
    }

    pub(super) fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// Opens the part with this number, or the first after it that is still there; says which it is.
    pub(super) fn open(&self, part: u64) -> io::Result<(u64, File)> {
        // No file changes its name meanwhile.
        let _held = self.file();
        let current = self.progress.borrow().part;
        if part < current {
            return Ok((current - 1, File::open(self.old_path())?));
        }
        Ok((current, File::open(&self.path)?))
    }

    /// The place before the last entries, so many of them.
    pub(super) fn before_last(&self, entries: u64) -> io::Result<Place> {
        let Progress { part, length, .. } = *self.progress.borrow();
        let (part, mut file) = self.open(part)?;
        let mut place = Place { part, offset: length };
        let mut wanted = entries;
        if wanted > 0 {
            (place.offset, wanted) = back(&file, length, wanted)?;
        }
        if wanted > 0 && part > 0 {
            let old;
            (old, file) = self.open(part - 1)?;
            if old < part {
                let (offset, _) = back(&file, file.metadata()?.len(), wanted)?;
                place = Place { part: old, offset };
            }
        }
        Ok(place)
    }

    /// Removes the files. Who reads them may go on.
    pub(super) fn remove(&self) {
        self.end();
        let _ = fs::remove_file(&self.path);
        let _ = fs::remove_file(self.old_path());
    }

    fn old_path(&self) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(".1");
        path.into()
    }

    fn file(&self) -> MutexGuard<'_, Option<File>> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the last `wanted` lines before `end` begin, and how many of them are missing.
fn back(file: &File, end: u64, wanted: u64) -> io::Result<(u64, u64)> {
    let mut block = vec![0; BLOCK];
    let (mut at, mut seen) = (end, 0);
    while at > 0 {
        let length = at.min(BLOCK as u64);
        at -= length;
        let part = block.get_mut(..usize::try_from(length).unwrap_or(0)).unwrap_or_default();
        file.read_exact_at(part, at)?;
        for (index, byte) in part.iter().enumerate().rev() {
            // The end of the last line ends no line before it.
            if *byte != b'\n' {
                continue;
            }
            if seen == wanted {
                return Ok((at + index as u64 + 1, 0));
            }
            seen += 1;
        }
    }
    Ok((0, wanted - seen))
}
