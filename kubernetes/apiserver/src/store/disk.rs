//! The log, which holds every object: the file `data_dir/store.log`.
//!
//! The file is a header with a format version, followed by frames. A frame is what one flush appended: writes
//! that became durable together, under one checksum. The first frames are a snapshot, which ends with an end
//! record; the frames after it are the writes since. A new file is written beside the old one, synced and
//! renamed over it, so that a snapshot is never torn.
//!
//! A frame is written only after the one before it was synced. So a broken frame at the end was never answered
//! and is cut off, while a broken frame with a whole one after it is damage: [`OpenError::Corrupt`]. (Damage to
//! the very last frame looks like an unfinished write and is cut off, too.) Without syncs (`sync: false`) that
//! holds for a killed process but not for a power cut.

mod compact;
mod frame;
mod high_water_mark;
mod recover;

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use self::high_water_mark::{HighWaterMark, LogExtent};
pub(super) use self::{compact::WalSnapshot, frame::WalFrame, recover::RecoveredState};
use super::OpenError;

const LOG_FILE: &str = "store.log";
const NEW_LOG_FILE: &str = "store.log.new";
const LOCK_FILE: &str = "lock";

/// The log that writes are appended to.
#[derive(Debug)]
pub(super) struct WriteAheadLog {
    dir: PathBuf,
    file: File,
    /// The length of the durable part; anything after it is to be cut off.
    len: u64,
    /// Whether a frame is synced before it counts as durable.
    sync: bool,
    /// A write failed: the file must be truncated to its length, and the directory synced, before the next
    /// append.
    broken: bool,
    /// The file that records the extent of the log.
    mark: HighWaterMark,
    /// The newest revision in the log, or of the log before it was cut short.
    revision: u64,
    /// Locks the directory while the log is open.
    _lock: DirLock,
    #[cfg(test)]
    pub(super) fault: std::sync::Arc<std::sync::atomic::AtomicBool>,
}

/// The exclusive lock of a directory.
#[derive(Debug)]
struct DirLock(File);

impl WriteAheadLog {
    /// Opens the log of a directory, or creates one.
    pub(super) fn open(dir: &Path, sync: bool) -> Result<(Self, RecoveredState), OpenError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            |source| OpenError::Io { path, source }
        };
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed(dir))?;
        let lock = DirLock::acquire(&dir.join(LOCK_FILE))?;
        let path = dir.join(LOG_FILE);
        remove(&dir.join(NEW_LOG_FILE)).map_err(failed(&dir.join(NEW_LOG_FILE)))?;
        if !path.try_exists().map_err(failed(&path))? {
            WalSnapshot::empty().write(dir).and_then(|_| rename(dir)).map_err(failed(&path))?;
        }
        let file = OpenOptions::new().read(true).write(true).open(&path).map_err(failed(&path))?;
        let mut recovered = recover::recover_log(&path, &file)?;
        let (mark, reach) = HighWaterMark::open(dir).map_err(failed(dir))?;
        if let Some(reach) = reach.filter(|reach| reach.revision > recovered.revision) {
            let missing = reach.revision - recovered.revision;
            let bytes = reach.len.saturating_sub(recovered.len);
            tracing::warn!(
                file = %path.display(),
                missing_revisions = missing,
                missing_bytes = bytes,
                last_revision = recovered.revision,
                "the store's log is truncated: acknowledged writes are missing; restore it from a backup if they are needed"
            );
            // Clients have seen these revisions: they are not reused.
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
        log.write_high_water_mark();
        Ok((log, recovered))
    }

    /// The length of the durable part.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    fn write_high_water_mark(&self) {
        self.mark.write(LogExtent { revision: self.revision, len: self.len });
    }

    /// Appends a frame, whose last revision is given, and syncs it. After an error nothing of it remains, or it
    /// is cut off before the next append.
    pub(super) fn append(&mut self, frame: &WalFrame, revision: u64) -> io::Result<()> {
        self.repair()?;
        self.broken = true;
        let bytes = frame.bytes()?;
        let written = self.write(bytes);
        if written.is_ok() {
            self.len += bytes.len() as u64;
            self.revision = revision;
            self.broken = false;
            self.write_high_water_mark();
        } else {
            // Best done now, while the disk may still work; else before the next frame.
            let _ = self.repair();
        }
        written
    }

    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        #[cfg(test)]
        if self.fault.load(std::sync::atomic::Ordering::SeqCst) {
            // Simulates a full disk: a part is written.
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

    /// Switches to a new file that holds a snapshot of the log up to `from`. Frames that were appended since
    /// are copied.
    pub(super) fn replace_file(&mut self, mut new: File, from: u64) -> io::Result<()> {
        self.repair()?;
        copy(&self.file, from, self.len, &mut new)?;
        new.sync_all()?;
        let len = new.metadata()?.len();
        rename(&self.dir)?;
        (self.file, self.len) = (new, len);
        self.write_high_water_mark();
        // Until the rename is durable, a power cut could bring the old file back: nothing is appended before.
        self.broken = true;
        self.repair()
    }

    /// Removes the new file of a compaction that failed.
    pub(super) fn discard_new(&self) {
        if let Err(error) = remove(&self.dir.join(NEW_LOG_FILE)) {
            tracing::warn!(%error, "failed to remove the file of a failed compaction");
        }
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }
}

impl DirLock {
    /// Locks the directory. The kernel releases the lock when the process ends, however it ends.
    fn acquire(path: &Path) -> Result<Self, OpenError> {
        let open = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path);
        let file = open.map_err(|source| OpenError::Io { path: path.to_owned(), source })?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(fs::TryLockError::WouldBlock) => Err(OpenError::Locked { path: path.to_owned() }),
            Err(fs::TryLockError::Error(source)) => Err(OpenError::Io { path: path.to_owned(), source }),
        }
    }
}

/// Whether some process has locked the directory.
pub fn is_in_use(dir: &Path) -> bool {
    let lock = File::open(dir.join(LOCK_FILE));
    lock.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(fs::TryLockError::WouldBlock)))
}

/// Unlocks explicitly: closing the file is not enough while a child process that was just forked still has it.
impl Drop for DirLock {
    fn drop(&mut self) {
        if let Err(error) = self.0.unlock() {
            tracing::warn!(%error, "failed to unlock the directory of the store");
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

/// Renames the new file over the old one. The rename is durable when the directory is synced.
fn rename(dir: &Path) -> io::Result<()> {
    fs::rename(dir.join(NEW_LOG_FILE), dir.join(LOG_FILE))
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
