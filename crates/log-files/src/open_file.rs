//! One open log file, plain or compressed.

use std::{
    fs::File,
    io::{self, IoSliceMut},
    os::fd::AsRawFd,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use rustix::fs::Stat;

use crate::fingerprint::{ContentRead, FileKey};

mod gzip_cursor;

pub(crate) use gzip_cursor::{GzipCursor, GzipProgress};

/// The first bytes of every gzip file.
pub(crate) const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// A file that is open. As long as it is, its inode is used for no other file, and its content can be read under
/// whatever name, or under none.
#[derive(Debug)]
pub(crate) struct OpenFile {
    file: File,
    key: FileKey,
}

/// What the file system says of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileStatus {
    pub(crate) key: FileKey,
    pub(crate) size: u64,
    /// The disk space that it holds, in bytes.
    pub(crate) allocated: u64,
    pub(crate) is_unlinked: bool,
    pub(crate) modified: Option<SystemTime>,
}

/// Who may do what with a file, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDescription {
    /// The path without links.
    pub resolved_path: PathBuf,
    pub user: u32,
    pub group: u32,
    /// The nine bits of the permissions.
    pub permissions: u32,
}

impl OpenFile {
    pub(crate) fn describe(&self) -> Option<FileDescription> {
        let status = rustix::fs::fstat(&self.file).ok()?;
        let resolved_path = std::fs::read_link(format!("/proc/self/fd/{}", self.file.as_raw_fd())).ok()?;
        Some(FileDescription {
            resolved_path,
            user: status.st_uid,
            group: status.st_gid,
            permissions: status.st_mode & 0o777,
        })
    }

    pub(crate) fn new(file: File) -> io::Result<Self> {
        let status = FileStatus::from_stat(&rustix::fs::fstat(&file)?);
        Ok(Self { file, key: status.key })
    }

    pub(crate) fn key(&self) -> FileKey {
        self.key
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn status(&self) -> io::Result<FileStatus> {
        Ok(FileStatus::from_stat(&rustix::fs::fstat(&self.file)?))
    }

    /// Fills the buffers from the offset on with one system call, unless the file ends or the kernel stops sooner.
    pub(crate) fn read_vectored_at(&self, buffers: &mut [IoSliceMut<'_>], offset: u64) -> io::Result<usize> {
        loop {
            match rustix::io::preadv(&self.file, buffers, offset) {
                Err(rustix::io::Errno::INTR) => {}
                result => return Ok(result?),
            }
        }
    }

    /// Fewer bytes than asked for mean that the file ends there.
    pub(crate) fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match rustix::io::pread(&self.file, rest, offset + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(filled)
    }

    /// The first bytes, at most `length`.
    pub(crate) fn read_head(&self, length: usize) -> io::Result<Vec<u8>> {
        let mut head = vec![0; length];
        let read = self.read_at(&mut head, 0)?;
        head.truncate(read);
        Ok(head)
    }
}

/// Reads a plain file.
pub(crate) struct PlainContent(pub(crate) Arc<OpenFile>);

impl ContentRead for PlainContent {
    fn read_at(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }
}

impl FileStatus {
    fn from_stat(status: &Stat) -> Self {
        // Times before 1970 have no meaning for a log.
        let seconds = u64::try_from(status.st_mtime).ok();
        let nanoseconds = u32::try_from(status.st_mtime_nsec).unwrap_or(0);
        Self {
            key: FileKey { device: status.st_dev, inode: status.st_ino },
            size: u64::try_from(status.st_size).unwrap_or(0),
            allocated: u64::try_from(status.st_blocks).unwrap_or(0).saturating_mul(512),
            is_unlinked: status.st_nlink == 0,
            modified: seconds
                .map(|seconds| SystemTime::UNIX_EPOCH + Duration::new(seconds, nanoseconds.min(999_999_999))),
        }
    }
}
