//! The log of one run of a container: the current file and the one before it.
//!
//! *Guaranteed*: there are at most two files, each of the given size, or of the size of one append if that is
//! larger; a file holds whole entries only; a reader that is fast enough misses nothing at a rotation.
//! *Assumed*: there is one writer.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::FileExt,
    path::PathBuf,
    sync::MutexGuard,
};

use kubewake_runtime::lock::Mutex;
use tokio::sync::watch;

pub(super) const READ_BLOCK_BYTES: usize = 64 << 10;

/// The progress of the writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WriteProgress {
    /// The number of the current file, from 0.
    pub(super) part: u64,
    /// The written bytes of the current file.
    pub(super) length: u64,
    pub(super) ended: bool,
}

/// A position between two entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LogPosition {
    pub(super) part: u64,
    pub(super) offset: u64,
}

#[derive(Debug)]
pub(super) struct RunLog {
    path: PathBuf,
    /// The limit of one file, in bytes.
    limit: u64,
    /// Open while it is written. The lock is held while files are renamed.
    file: Mutex<Option<File>>,
    progress: watch::Sender<WriteProgress>,
}

impl RunLog {
    pub(super) fn create(path: PathBuf, limit: u64) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).write(true).truncate(true).open(&path)?;
        let progress = watch::Sender::new(WriteProgress { part: 0, length: 0, ended: false });
        Ok(Self { path, limit, file: Mutex::new(Some(file)), progress })
    }

    /// Opens the finished log of an earlier run of the node.
    pub(super) fn open_finished(path: PathBuf, limit: u64) -> io::Result<Self> {
        let length = fs::metadata(&path)?.len();
        let progress = watch::Sender::new(WriteProgress { part: 0, length, ended: true });
        let log = Self { path, limit, file: Mutex::new(None), progress };
        let part = u64::from(log.rotated_path().exists());
        log.progress.send_modify(|progress| progress.part = part);
        Ok(log)
    }

    pub(super) fn append(&self, entries: &[u8]) -> io::Result<()> {
        let mut file = self.lock_file();
        let mut progress = *self.progress.borrow();
        if progress.length > 0 && progress.length + entries.len() as u64 > self.limit {
            fs::rename(&self.path, self.rotated_path())?;
            *file = Some(OpenOptions::new().create(true).write(true).truncate(true).open(&self.path)?);
            progress = WriteProgress { part: progress.part + 1, length: 0, ended: false };
            self.progress.send_replace(progress);
        }
        let Some(file) = file.as_mut() else { return Ok(()) };
        // At its position, so that the remains of a failed write are overwritten.
        file.write_all_at(entries, progress.length)?;
        file.flush()?;
        progress.length += entries.len() as u64;
        self.progress.send_replace(progress);
        Ok(())
    }

    pub(super) fn finish(&self) {
        *self.lock_file() = None;
        self.progress.send_modify(|progress| progress.ended = true);
    }

    pub(super) fn progress(&self) -> watch::Receiver<WriteProgress> {
        self.progress.subscribe()
    }

    /// Opens the part with this number, or the first later one that still exists; returns which one.
    pub(super) fn open(&self, part: u64) -> io::Result<(u64, File)> {
        // Files are not renamed while the lock is held.
        let _held = self.lock_file();
        let current = self.progress.borrow().part;
        if part < current {
            return Ok((current - 1, File::open(self.rotated_path())?));
        }
        Ok((current, File::open(&self.path)?))
    }

    /// The position before the last entries, of this number.
    pub(super) fn position_before_last(&self, entries: u64) -> io::Result<LogPosition> {
        let WriteProgress { part, length, .. } = *self.progress.borrow();
        let (part, mut file) = self.open(part)?;
        let mut place = LogPosition { part, offset: length };
        let mut wanted = entries;
        if wanted > 0 {
            (place.offset, wanted) = find_tail(&file, length, wanted)?;
        }
        if wanted > 0 && part > 0 {
            let old;
            (old, file) = self.open(part - 1)?;
            if old < part {
                let (offset, _) = find_tail(&file, file.metadata()?.len(), wanted)?;
                place = LogPosition { part: old, offset };
            }
        }
        Ok(place)
    }

    /// Removes the files. Open readers may continue.
    pub(super) fn remove(&self) {
        self.finish();
        let _ = fs::remove_file(&self.path);
        let _ = fs::remove_file(self.rotated_path());
    }

    fn rotated_path(&self) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(".1");
        path.into()
    }

    fn lock_file(&self) -> MutexGuard<'_, Option<File>> {
        self.file.lock()
    }
}

/// The position of the last `wanted` lines before `end`, and the number of missing lines.
fn find_tail(file: &File, end: u64, wanted: u64) -> io::Result<(u64, u64)> {
    let mut block = vec![0; READ_BLOCK_BYTES];
    let mut at = end;
    let mut seen = 0;
    while at > 0 {
        let length = at.min(READ_BLOCK_BYTES as u64);
        at -= length;
        let part = block.get_mut(..usize::try_from(length).unwrap_or(0)).unwrap_or_default();
        file.read_exact_at(part, at)?;
        for (index, byte) in part.iter().enumerate().rev() {
            // The end of the last line does not end a line before it.
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
