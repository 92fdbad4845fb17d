//! What tells the content of one file from that of another.
//!
//! Names change at a rotation, and inodes are used again, so that neither identifies a log. The first line does in
//! practice, as it begins with a time; the bytes before a position show that the position is meant for this content.

use std::io;

use xxhash_rust::xxh3::xxh3_64;

use crate::open_file::OpenFile;

/// How much before an offset is compared, in bytes. Two logs that agree in it are not told apart.
pub(crate) const MARK_BYTES: usize = 256;

/// The first bytes of a file: up to the size of a fingerprint, as many as there were.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct HeadPrint {
    pub(crate) length: u64,
    pub(crate) hash: u64,
}

/// The last bytes before an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContentMark {
    pub(crate) offset: u64,
    pub(crate) hash: u64,
}

/// A file on one file system. The number of an inode is used again after the file was removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FileKey {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

impl HeadPrint {
    pub(crate) fn from_bytes(head: &[u8]) -> Self {
        Self { length: head.len() as u64, hash: xxh3_64(head) }
    }

    /// Whether the file begins so. Every file has an empty beginning.
    pub(crate) fn is_of(self, file: &OpenFile) -> io::Result<bool> {
        let Ok(length) = usize::try_from(self.length) else { return Ok(false) };
        Ok(length == 0 || Self::from_bytes(&file.read_head(length)?) == self)
    }
}

impl ContentMark {
    /// `before` ends at the offset; only its last bytes count.
    pub(crate) fn from_bytes_before(offset: u64, before: &[u8]) -> Self {
        let tail = before.get(before.len().saturating_sub(MARK_BYTES)..).unwrap_or(before);
        Self { offset, hash: xxh3_64(tail) }
    }

    /// How many bytes before the offset it covers.
    pub(crate) fn length(self) -> usize {
        mark_length(self.offset)
    }

    /// Whether the content agrees, which `read_at` reads.
    pub(crate) fn matches(self, read_at: &mut dyn ContentRead) -> io::Result<bool> {
        let mut buffer = [0; MARK_BYTES];
        let Some(wanted) = buffer.get_mut(..self.length()) else { return Ok(false) };
        let read = read_exactly_at(read_at, wanted, self.offset - wanted.len() as u64)?;
        Ok(read && xxh3_64(wanted) == self.hash)
    }
}

/// How many bytes before an offset a mark covers.
pub(crate) fn mark_length(offset: u64) -> usize {
    usize::try_from(offset).map_or(MARK_BYTES, |offset| offset.min(MARK_BYTES))
}

/// The hash of the first line, or of as much of it as a fingerprint holds; `None` while the line is not complete.
pub(crate) fn hash_first_line(head: &[u8], fingerprint_size: usize) -> Option<u64> {
    match head.iter().position(|byte| *byte == b'\n') {
        Some(end) => head.get(..=end).map(xxh3_64),
        None => (head.len() >= fingerprint_size).then(|| xxh3_64(head)),
    }
}

/// Content that is read at offsets, plain or compressed.
pub(crate) trait ContentRead {
    /// Fewer bytes than asked for mean that the content ends there.
    fn read_at(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
}

/// Whether the buffer could be filled.
pub(crate) fn read_exactly_at(content: &mut dyn ContentRead, buffer: &mut [u8], offset: u64) -> io::Result<bool> {
    Ok(content.read_at(buffer, offset)? == buffer.len())
}
