//! The entries of one directory.

use std::{
    ffi::{OsStr, OsString},
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
};

use rustix::fs::{AtFlags, Dir, FileType};

use crate::file_opener::OpenFailure;

pub(super) struct DirectoryEntry {
    pub(super) name: OsString,
    pub(super) inode: u64,
    pub(super) kind: EntryKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryKind {
    File,
    Directory,
    /// It may lead to either.
    Link,
}

impl EntryKind {
    pub(super) fn may_be_directory(self) -> bool {
        self != Self::File
    }

    pub(super) fn may_be_file(self) -> bool {
        self != Self::Directory
    }

    fn from_file_type(kind: FileType) -> Option<Self> {
        match kind {
            FileType::RegularFile => Some(Self::File),
            FileType::Directory => Some(Self::Directory),
            FileType::Symlink => Some(Self::Link),
            _ => None,
        }
    }
}

/// The files, directories and links of a directory, and whether these are all.
pub(super) fn list(directory: OwnedFd, max_entries: usize) -> Result<(Vec<DirectoryEntry>, bool), OpenFailure> {
    let mut entries = Vec::new();
    let mut directory = Dir::new(directory)?;
    while let Some(entry) = directory.read() {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        if entries.len() >= max_entries {
            return Ok((entries, false));
        }
        let file_type = match entry.file_type() {
            // Some file systems do not say.
            FileType::Unknown => match rustix::fs::statat(directory.fd()?, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(status) => FileType::from_raw_mode(status.st_mode),
                Err(_) => continue,
            },
            known => known,
        };
        if let Some(kind) = EntryKind::from_file_type(file_type) {
            let name = OsStr::from_bytes(name.to_bytes()).to_os_string();
            entries.push(DirectoryEntry { name, inode: entry.ino(), kind });
        }
    }
    Ok((entries, true))
}
