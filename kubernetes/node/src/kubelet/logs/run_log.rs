//! The log of one run of a container: the file that is written, and rotated ones.
//!
//! *Guaranteed*: a file holds whole entries only; rotation loses and repeats none. A reader that is fast enough
//! misses nothing. *Assumed*: each writer appends whole entries, and there is one rotator.

use std::{
    collections::VecDeque,
    fs::{self, File, OpenOptions, Permissions},
    io,
    os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::{MutexGuard, atomic::AtomicBool},
};

use jiff::Timestamp;
use kubewake_runtime::lock::Mutex;
use tokio::sync::watch;

use super::{
    log_file::LogFile,
    rotation::{self, LOG_FILE_MODE, LogRotation, RotatedLog},
};

/// The progress of the writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WriteProgress {
    /// The number of the current file, from 0.
    pub(super) part: u64,
    /// The written bytes of the current file.
    pub(super) length: u64,
    pub(super) ended: bool,
}

/// A position between two entries, in bytes before compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LogPosition {
    pub(super) part: u64,
    pub(super) offset: u64,
}

#[derive(Debug)]
pub(super) struct RunLog {
    path: PathBuf,
    /// The id of the run, if it is known.
    id: Option<String>,
    /// The lock is held while files are renamed and removed.
    files: Mutex<LogFiles>,
    progress: watch::Sender<WriteProgress>,
}

#[derive(Debug, Default)]
struct LogFiles {
    /// Open while it is written.
    current: Option<File>,
    /// Rotated files with their numbers, oldest first.
    rotated: VecDeque<(u64, RotatedLog)>,
}

impl RunLog {
    pub(super) fn create(path: PathBuf, id: &str) -> io::Result<Self> {
        let files = LogFiles { current: Some(create_file(&path)?), rotated: VecDeque::new() };
        let progress = watch::Sender::new(WriteProgress { part: 0, length: 0, ended: false });
        Ok(Self { path, id: Some(id.to_owned()), files: Mutex::new(files), progress })
    }

    /// Opens the finished log of an earlier run of the node.
    pub(super) fn open_finished(path: PathBuf, id: Option<String>) -> io::Result<Self> {
        let length = fs::metadata(&path)?.len();
        let rotated: VecDeque<_> = (0..).zip(rotation::find_rotated(&path)).collect();
        let part = rotated.len() as u64;
        let progress = watch::Sender::new(WriteProgress { part, length, ended: true });
        Ok(Self { path, id, files: Mutex::new(LogFiles { current: None, rotated }), progress })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    pub(super) fn append(&self, entries: &[u8]) -> io::Result<()> {
        let files = self.lock_files();
        let Some(file) = &files.current else { return Ok(()) };
        let mut progress = *self.progress.borrow();
        if let Err(error) = file.write_all_at(entries, progress.length) {
            // A part of an entry must not remain.
            let _ = file.set_len(progress.length);
            return Err(error);
        }
        progress.length += entries.len() as u64;
        self.progress.send_replace(progress);
        Ok(())
    }

    pub(super) fn finish(&self) {
        self.lock_files().current = None;
        self.progress.send_modify(|progress| progress.ended = true);
    }

    pub(super) fn is_finished(&self) -> bool {
        self.progress.borrow().ended
    }

    pub(super) fn progress(&self) -> watch::Receiver<WriteProgress> {
        self.progress.subscribe()
    }

    /// Rotates the log of a running container if it has reached its size, and cleans up before that.
    pub(super) fn rotate(&self, rules: &LogRotation, now: Timestamp, is_stopping: &AtomicBool) -> io::Result<()> {
        let progress = *self.progress.borrow();
        if progress.ended || progress.length < rules.max_bytes {
            return Ok(());
        }
        self.remove_oldest(rules.max_older_files());
        self.compress_rotated(is_stopping)?;
        self.rotate_current(now)
    }

    /// Removes the oldest rotated files until there are at most `most`. Open readers continue.
    fn remove_oldest(&self, most: usize) {
        let mut files = self.lock_files();
        while files.rotated.len() > most
            && let Some((_, oldest)) = files.rotated.pop_front()
        {
            let _ = fs::remove_file(oldest.current_path());
        }
    }

    /// Compresses rotated files outside of the lock, as it takes a while.
    fn compress_rotated(&self, is_stopping: &AtomicBool) -> io::Result<()> {
        let plain = |files: &LogFiles| {
            let mut rotated = files.rotated.iter();
            rotated.find(|(_, rotated)| !rotated.is_compressed).map(|(part, rotated)| (*part, rotated.path.clone()))
        };
        while let Some((part, path)) = { plain(&self.lock_files()) } {
            let compressed = rotation::compress(&path, is_stopping);
            let mut files = self.lock_files();
            match compressed {
                Ok(()) => {
                    if let Some((_, rotated)) = files.rotated.iter_mut().find(|(number, _)| *number == part) {
                        rotated.is_compressed = true;
                    }
                    let _ = fs::remove_file(&path);
                }
                // Whoever removed the file did not want it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    files.rotated.retain(|(number, _)| *number != part);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn rotate_current(&self, now: Timestamp) -> io::Result<()> {
        let rotated = rotation::rotated_path(&self.path, now);
        let mut files = self.lock_files();
        let is_taken = files.rotated.iter().any(|(_, other)| other.path == rotated);
        if files.current.is_none() || is_taken {
            // The names have seconds: a second rotation within one waits for the next check.
            return Ok(());
        }
        fs::rename(&self.path, &rotated)?;
        let next = create_file(&self.path).inspect_err(|_| drop(fs::rename(&rotated, &self.path)))?;
        files.current = Some(next);
        let part = self.progress.borrow().part;
        files.rotated.push_back((part, RotatedLog { path: rotated, is_compressed: false }));
        self.progress.send_replace(WriteProgress { part: part + 1, length: 0, ended: false });
        Ok(())
    }

    /// Opens the part with this number, or the first later one that still exists; returns which one.
    pub(super) fn open(&self, part: u64) -> io::Result<(u64, LogFile)> {
        let files = self.lock_files();
        for (number, rotated) in files.rotated.iter().filter(|(number, _)| *number >= part) {
            match LogFile::open(rotated) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                opened => return Ok((*number, opened?)),
            }
        }
        Ok((self.progress.borrow().part, LogFile::open_plain(&self.path)?))
    }

    /// The position before the last entries, of this number.
    pub(super) fn position_before_last(&self, entries: u64) -> io::Result<LogPosition> {
        let WriteProgress { part, length, .. } = *self.progress.borrow();
        let (mut part, mut file) = self.open(part)?;
        let mut place = LogPosition { part, offset: length };
        let mut end = Some(length);
        let mut wanted = entries;
        while wanted > 0 {
            let (offset, missing) = file.find_tail(end, wanted)?;
            place = LogPosition { part, offset };
            wanted = missing;
            let before =
                { self.lock_files().rotated.iter().rev().map(|(number, _)| *number).find(|number| *number < part) };
            let Some(before) = before else { break };
            let (opened, earlier) = self.open(before)?;
            if opened >= part {
                // It was removed meanwhile.
                break;
            }
            (part, file, end) = (opened, earlier, None);
        }
        Ok(place)
    }

    /// Removes the files. Open readers may continue.
    pub(super) fn remove(&self) {
        self.finish();
        let mut files = self.lock_files();
        for (_, rotated) in files.rotated.drain(..) {
            let _ = fs::remove_file(rotated.current_path());
        }
        let _ = fs::remove_file(&self.path);
    }

    fn lock_files(&self) -> MutexGuard<'_, LogFiles> {
        self.files.lock()
    }
}

fn create_file(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().create(true).write(true).truncate(true).mode(LOG_FILE_MODE).open(path)?;
    // Whatever the process's own mask is.
    file.set_permissions(Permissions::from_mode(LOG_FILE_MODE))?;
    Ok(file)
}
