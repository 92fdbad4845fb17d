//! The log: a file that holds every object, in `data_dir/store.log`.
//!
//! The file is a header with a format version and then frames. A frame is what one flush appended: writes that became durable
//! together, under one checksum. The first frames are a snapshot, which ends with a mark; what follows are the writes since. A new
//! file is written beside the old one, synced and renamed over it, so that a snapshot is never torn.
//!
//! A frame is written only after the one before it was synced. So a broken frame at the end was never answered and is cut off,
//! while a broken frame with a whole one after it is damage: [`OpenError::Corrupt`]. (Damage to the very last frame looks like an
//! unfinished write and is cut off, too.) Without syncs (`sync: false`) that holds for a killed process but not for a power cut.

mod compact;
mod frame;
mod mark;
mod recover;

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use self::mark::{Mark, Reach};
pub(super) use self::{compact::Snapshot, frame::Frame, recover::Recovered};
use super::OpenError;

const LOG: &str = "store.log";
const NEW: &str = "store.log.new";
const LOCK: &str = "lock";

/// The log that writes are appended to.
#[derive(Debug)]
pub(super) struct Log {
    dir: PathBuf,
    file: File,
    /// Everything before is durable, what is behind is to be cut off.
    len: u64,
    /// Whether a frame is synced before it counts as durable.
    sync: bool,
    /// Something failed: the file must be cut to its length, and the directory synced, before it is appended to.
    broken: bool,
    /// How far the log goes, beside it.
    mark: Mark,
    /// The newest revision in the log, or that it had before it was cut short.
    revision: u64,
    /// Held for as long as the log is open.
    _lock: DirLock,
    /// What fails next.
    #[cfg(test)]
    pub(super) fault: std::sync::Arc<std::sync::atomic::AtomicBool>,
}

/// The directory is this process's own.
#[derive(Debug)]
struct DirLock(File);

impl Log {
    /// Opens the log of a directory, or makes one.
    pub(super) fn open(dir: &Path, sync: bool) -> Result<(Self, Recovered), OpenError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            |source| OpenError::Io { path, source }
        };
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed(dir))?;
        let lock = DirLock::take(&dir.join(LOCK))?;
        let path = dir.join(LOG);
        remove(&dir.join(NEW)).map_err(failed(&dir.join(NEW)))?;
        if !path.try_exists().map_err(failed(&path))? {
            Snapshot::empty().write(dir).and_then(|_| rename(dir)).map_err(failed(&path))?;
        }
        let file = OpenOptions::new().read(true).write(true).open(&path).map_err(failed(&path))?;
        let mut recovered = recover::read(&path, &file)?;
        let (mark, reach) = Mark::open(dir).map_err(failed(dir))?;
        if let Some(reach) = reach.filter(|reach| reach.revision > recovered.revision) {
            let (missing, bytes) = (reach.revision - recovered.revision, reach.len.saturating_sub(recovered.len));
            tracing::warn!(
                file = %path.display(),
                missing_revisions = missing,
                missing_bytes = bytes,
                last_revision = recovered.revision,
                "the log is cut short: writes that were answered are missing; restore it from a backup if they matter"
            );
            // Clients have seen these revisions: they are not given to other writes.
            recovered.revision = reach.revision;
        }
        let mut log = Self {
            dir: dir.to_owned(),
            file,
            len: recovered.len,
            sync,
            broken: true,
            mark,
            revision: recovered.revision,
            _lock: lock,
            #[cfg(test)]
            fault: Default::default(),
        };
        log.repair().map_err(failed(&path))?;
        log.set_mark();
        Ok((log, recovered))
    }

    /// The length of what is durable.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    fn set_mark(&self) {
        self.mark.write(Reach { revision: self.revision, len: self.len });
    }

    /// Appends a frame, whose last revision is given, and syncs it. After an error nothing of it is there, or it is cut off before anything else is appended.
    pub(super) fn append(&mut self, frame: &Frame, revision: u64) -> io::Result<()> {
        self.repair()?;
        self.broken = true;
        let bytes = frame.bytes()?;
        let written = self.write(bytes);
        if written.is_ok() {
            self.len += bytes.len() as u64;
            self.revision = revision;
            self.broken = false;
            self.set_mark();
        } else {
            // Best now, while the disk may still obey; else before the next frame.
            let _ = self.repair();
        }
        written
    }

    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        #[cfg(test)]
        if self.fault.load(std::sync::atomic::Ordering::SeqCst) {
            // As a full disk does: a part is written.
            self.file.write_all_at(bytes.get(..bytes.len() / 2).unwrap_or_default(), self.len)?;
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.file.write_all_at(bytes, self.len)?;
        if self.sync { self.file.sync_data() } else { Ok(()) }
    }

    /// Cuts off what a failed write or a killed process left behind.
    fn repair(&mut self) -> io::Result<()> {
        if self.broken {
            self.file.set_len(self.len)?;
            if self.sync {
                self.file.sync_data()?;
                File::open(&self.dir)?.sync_all()?;
            }
            self.broken = false;
        }
        Ok(())
    }

    /// Goes over to a new file that holds a snapshot of what was in the log up to `from`. What was appended since is copied.
    pub(super) fn replace(&mut self, mut new: File, from: u64) -> io::Result<()> {
        self.repair()?;
        copy(&self.file, from, self.len, &mut new)?;
        new.sync_all()?;
        let len = new.metadata()?.len();
        rename(&self.dir)?;
        (self.file, self.len) = (new, len);
        self.set_mark();
        // Until the rename is durable, a power cut could bring the old file back: nothing is appended before.
        self.broken = true;
        self.repair()
    }

    /// Removes the new file of a compaction that failed.
    pub(super) fn discard_new(&self) {
        if let Err(error) = remove(&self.dir.join(NEW)) {
            tracing::warn!(%error, "could not remove the file of a failed compaction");
        }
    }

    /// The directory of the log.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }
}

impl DirLock {
    /// Takes the directory for this process. The kernel gives it back when the process ends, however it ends.
    fn take(path: &Path) -> Result<Self, OpenError> {
        let open = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path);
        let file = open.map_err(|source| OpenError::Io { path: path.to_owned(), source })?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(fs::TryLockError::WouldBlock) => Err(OpenError::Locked { path: path.to_owned() }),
            Err(fs::TryLockError::Error(source)) => Err(OpenError::Io { path: path.to_owned(), source }),
        }
    }
}

/// Whether some process has the directory now.
pub fn is_in_use(dir: &Path) -> bool {
    let lock = File::open(dir.join(LOCK));
    lock.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(fs::TryLockError::WouldBlock)))
}

/// Said to the kernel: to close the file is not enough while a child process that was just forked still has it.
impl Drop for DirLock {
    fn drop(&mut self) {
        if let Err(error) = self.0.unlock() {
            tracing::warn!(%error, "could not unlock the directory of the store");
        }
    }
}

fn copy(from: &File, start: u64, end: u64, to: &mut File) -> io::Result<()> {
    let mut chunk = vec![0; 64 << 10];
    let mut at = start;
    while at < end {
        let want = usize::try_from(end - at).unwrap_or(usize::MAX).min(chunk.len());
        let part = chunk.get_mut(..want).unwrap_or_default();
        from.read_exact_at(part, at)?;
        to.write_all(part)?;
        at += want as u64;
    }
    Ok(())
}

/// Puts the new file in the place of the old one. That is durable when the directory is synced.
fn rename(dir: &Path) -> io::Result<()> {
    fs::rename(dir.join(NEW), dir.join(LOG))
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
