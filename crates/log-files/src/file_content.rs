//! The content of a file, whether it is compressed or not, and whether it is content that is known.

use std::{io, sync::Arc};

use crate::{
    fingerprint::{ContentMark, ContentRead, FileKey, HeadPrint, hash_first_line},
    open_file::{GzipCursor, OpenFile, PlainContent},
};

/// A shorter beginning is not enough to tell a file from one with another inode.
const MIN_HEAD_BYTES: u64 = 16;

/// The content of an open file.
pub(crate) struct FileContent {
    pub(crate) key: FileKey,
    /// Set once the first line is complete.
    pub(crate) first_line: Option<u64>,
    pub(crate) is_compressed: bool,
    content: Box<dyn ContentRead>,
    is_empty: bool,
}

impl FileContent {
    pub(crate) fn open(file: &Arc<OpenFile>, is_compressed: bool, fingerprint_size: usize) -> io::Result<Self> {
        let mut content: Box<dyn ContentRead> =
            if is_compressed { Box::new(GzipCursor::new(file.clone())) } else { Box::new(PlainContent(file.clone())) };
        let mut head = vec![0; fingerprint_size];
        let read = content.read_at(&mut head, 0)?;
        head.truncate(read);
        let first_line = hash_first_line(&head, fingerprint_size);
        Ok(Self { key: file.key(), first_line, is_compressed, content, is_empty: head.is_empty() })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.is_empty
    }

    pub(crate) fn matches(&mut self, mark: ContentMark) -> io::Result<bool> {
        mark.matches(&mut *self.content)
    }

    fn begins_with(&mut self, head: HeadPrint) -> io::Result<bool> {
        let Ok(length) = usize::try_from(head.length) else { return Ok(false) };
        let mut found = vec![0; length];
        Ok(self.content.read_at(&mut found, 0)? == length && HeadPrint::from_bytes(&found) == head)
    }
}

/// What is known of content.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ContentIdentity {
    /// The file that it was in; `FileKey::default` if that says nothing any more.
    pub(crate) key: FileKey,
    pub(crate) first_line: Option<u64>,
    pub(crate) head: HeadPrint,
    pub(crate) mark: Option<ContentMark>,
}

impl ContentIdentity {
    /// Whether the file has this content: it begins with the same line, and has what was read. Of content whose first
    /// line was not complete, the beginning has to agree, and be long or in the same inode.
    pub(crate) fn is_of(&self, file: &mut FileContent) -> io::Result<bool> {
        let begins_alike = match self.first_line {
            Some(first_line) => file.first_line == Some(first_line),
            None => {
                let is_enough = self.head.length >= MIN_HEAD_BYTES || self.key.inode == file.key.inode;
                self.head.length > 0 && is_enough && file.begins_with(self.head)?
            }
        };
        match self.mark {
            _ if !begins_alike => Ok(false),
            Some(mark) => file.matches(mark),
            None => Ok(true),
        }
    }
}
