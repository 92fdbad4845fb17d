//! One generation of a log: a file under one name after the other, plain and then compressed, or what is known of a
//! file that is gone.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Instant, SystemTime},
};

use crate::{
    events::LossCause,
    file_content::{ContentIdentity, FileContent},
    file_opener::{FileOpener, OpenFailure},
    fingerprint::{ContentMark, FileKey, HeadPrint, hash_first_line},
    open_file::{OpenFile, PlainContent},
    position::LogPosition,
};

/// Where a file is found.
#[derive(Debug, Clone)]
pub(crate) struct FileName {
    pub(crate) base: Arc<Path>,
    pub(crate) path: PathBuf,
}

impl FileName {
    pub(crate) fn open(&self, opener: &FileOpener) -> Result<OpenFile, OpenFailure> {
        let relative = self.path.strip_prefix(&self.base).unwrap_or(&self.path);
        opener.open_file(&self.base, relative).and_then(|file| OpenFile::new(file).map_err(OpenFailure::Io))
    }
}

/// A file that holds the content of a generation.
#[derive(Debug)]
pub(crate) struct FileSlot {
    pub(crate) key: FileKey,
    /// Open, unless it had to be closed for the sake of others.
    pub(crate) handle: Option<Arc<OpenFile>>,
    /// Its name, if it has one that matches.
    pub(crate) name: Option<FileName>,
    /// Since when it has none.
    pub(crate) nameless_since: Option<Instant>,
}

impl FileSlot {
    pub(crate) fn new(handle: Arc<OpenFile>, name: FileName) -> Self {
        Self { key: handle.key(), handle: Some(handle), name: Some(name), nameless_since: None }
    }

    /// The open file; it is opened again if it was closed. `None` if it is gone.
    pub(crate) fn open(&mut self, opener: &FileOpener) -> Result<Option<Arc<OpenFile>>, OpenFailure> {
        if let Some(handle) = &self.handle {
            return Ok(Some(handle.clone()));
        }
        let Some(name) = &self.name else { return Ok(None) };
        match name.open(opener) {
            Ok(file) if file.key() == self.key => {
                let handle = Arc::new(file);
                self.handle = Some(handle.clone());
                Ok(Some(handle))
            }
            // Another file has taken its name.
            Ok(_) | Err(OpenFailure::Absent) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    pub(crate) fn lose_name(&mut self, now: Instant) {
        self.name = None;
        self.nameless_since.get_or_insert(now);
    }

    pub(crate) fn set_name(&mut self, name: FileName) {
        self.name = Some(name);
        self.nameless_since = None;
    }
}

/// One file of a log, from its first to its last byte.
#[derive(Debug)]
pub(crate) struct Generation {
    pub(crate) number: u64,
    /// Where reading begins in it.
    pub(crate) start: u64,
    pub(crate) plain: Option<FileSlot>,
    pub(crate) gzip: Option<FileSlot>,
    /// The key of the plain file, also when it is gone.
    pub(crate) key: FileKey,
    pub(crate) first_line: Option<u64>,
    pub(crate) head: HeadPrint,
    /// Before the greatest offset that was read.
    pub(crate) mark: Option<ContentMark>,
    /// How many bytes it had when it was looked at last.
    pub(crate) size: u64,
    /// Nothing was or will be written after `size` was taken.
    pub(crate) is_size_final: bool,
    /// Nothing will be written to it any more: at its end, reading goes on with the next generation.
    pub(crate) is_complete: bool,
    /// A reader has been at the end of the compressed file, whose size is not certain before.
    pub(crate) was_end_read: bool,
    /// When the kubelet rotated it.
    pub(crate) rotated_at: Option<String>,
    pub(crate) modified: Option<SystemTime>,
    /// Why it has no file, if it has none.
    pub(crate) lost: Option<LossCause>,
    /// A copy of it may turn up in a scan that has not run yet, so that nothing is given up before.
    pub(crate) awaits_scan: bool,
    /// It was cut and is not read until it has outgrown `size`.
    pub(crate) awaits_growth: bool,
}

impl Generation {
    pub(crate) fn new(number: u64, key: FileKey) -> Self {
        Self {
            number,
            start: 0,
            plain: None,
            gzip: None,
            key,
            first_line: None,
            head: HeadPrint::default(),
            mark: None,
            size: 0,
            is_size_final: false,
            is_complete: false,
            was_end_read: false,
            rotated_at: None,
            modified: None,
            lost: None,
            awaits_scan: false,
            awaits_growth: false,
        }
    }

    pub(crate) fn first_position(&self) -> LogPosition {
        LogPosition::new(self.number, self.start)
    }

    pub(crate) fn last_position(&self) -> LogPosition {
        LogPosition::new(self.number, self.size.max(self.start))
    }

    pub(crate) fn slots(&self) -> impl Iterator<Item = &FileSlot> {
        self.plain.iter().chain(&self.gzip)
    }

    pub(crate) fn slots_mut(&mut self) -> impl Iterator<Item = &mut FileSlot> {
        self.plain.iter_mut().chain(&mut self.gzip)
    }

    /// Whether `size` is that of the content: of a compressed file it is certain only at its end.
    pub(crate) fn is_size_certain(&self) -> bool {
        self.gzip.is_none() || self.plain.is_some() || self.was_end_read
    }

    /// Whether some file has its content.
    pub(crate) fn has_file(&self) -> bool {
        self.plain.is_some() || self.gzip.is_some()
    }

    /// Whether a file with its content has a name.
    pub(crate) fn has_name(&self) -> bool {
        self.slots().any(|slot| slot.name.is_some())
    }

    /// Reads what identifies the plain file while it is short, and takes its size and time.
    pub(crate) fn look_at_plain(&mut self, file: &OpenFile, fingerprint_size: usize) -> io::Result<()> {
        let status = file.status()?;
        self.size = status.size;
        self.modified = status.modified;
        if self.head.length < fingerprint_size as u64 && self.head.length < status.size {
            let head = file.read_head(fingerprint_size)?;
            self.head = HeadPrint::from_bytes(&head);
            self.first_line = hash_first_line(&head, fingerprint_size);
        }
        Ok(())
    }

    /// Whether the file that was read still has what was read of it, or the beginning that was seen.
    pub(crate) fn is_intact(&self, file: &Arc<OpenFile>) -> io::Result<bool> {
        match self.mark {
            Some(mark) => mark.matches(&mut PlainContent(file.clone())),
            None => self.head.is_of(file),
        }
    }

    /// Whether a file begins as this generation does.
    pub(crate) fn has_beginning_of(&self, file: &mut FileContent) -> io::Result<bool> {
        let key = FileKey::default();
        ContentIdentity { key, first_line: self.first_line, head: self.head, mark: None }.is_of(file)
    }

    /// Whether a file has the content of this generation, as far as that was read.
    pub(crate) fn has_content_of(&self, file: &mut FileContent) -> io::Result<bool> {
        self.identity().is_of(file)
    }

    /// What tells its content from that of others.
    pub(crate) fn identity(&self) -> ContentIdentity {
        ContentIdentity { key: self.key, first_line: self.first_line, head: self.head, mark: self.mark }
    }
}
