//! Reads a compressed file at uncompressed offsets.
//!
//! *Guarantees*: members that are appended later are read, too. A file that ends within a member is read as far as it
//! goes, and further once it has grown. The work of one call is bounded: what has to be skipped is skipped in steps.
//!
//! *Does not*: go back cheaply; an offset before the last one means that decompression begins anew.

use std::{
    io::{self, BufRead, BufReader, Read},
    sync::Arc,
};

use flate2::bufread::GzDecoder;

use super::OpenFile;
use crate::fingerprint::ContentRead;

/// Compressed bytes that are read at a time.
const INPUT_BUFFER_BYTES: usize = 16 * 1024;

/// Uncompressed bytes that one call skips at most, some 20 ms of work.
const MAX_SKIPPED_AT_ONCE: u64 = 8 << 20;

/// What one call achieved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GzipProgress {
    /// So many bytes are in the buffer; fewer than fit mean that the content ends there for now.
    Read(usize),
    /// The offset was not reached yet: call again.
    Skipping,
}

/// A place in a compressed file.
pub(crate) struct GzipCursor {
    file: Arc<OpenFile>,
    state: CursorState,
    /// The uncompressed bytes before the place.
    offset: u64,
}

enum CursorState {
    InMember(Box<GzDecoder<BufReader<FileCursor>>>),
    /// Behind a member; another one may follow.
    BetweenMembers(BufReader<FileCursor>),
    /// The file ended within a member when it had this size.
    CutShort {
        size: u64,
    },
    /// What follows the last member is no gzip.
    Ended,
    /// The content cannot be read; a new cursor may try again.
    Failed(io::ErrorKind),
}

struct FileCursor {
    file: Arc<OpenFile>,
    position: u64,
}

impl Read for FileCursor {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.position)?;
        self.position += read as u64;
        Ok(read)
    }
}

impl GzipCursor {
    pub(crate) fn new(file: Arc<OpenFile>) -> Self {
        let state = CursorState::start(&file);
        Self { file, state, offset: 0 }
    }

    /// Reads at an uncompressed offset.
    pub(crate) fn read_step(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<GzipProgress> {
        if offset < self.offset {
            self.state = CursorState::start(&self.file);
            self.offset = 0;
        }
        let mut scratch = [0; 16 * 1024];
        let mut skipped = 0;
        while self.offset < offset {
            if skipped >= MAX_SKIPPED_AT_ONCE {
                return Ok(GzipProgress::Skipping);
            }
            let wanted = usize::try_from(offset - self.offset).unwrap_or(usize::MAX).min(scratch.len());
            match self.read_some(scratch.get_mut(..wanted).unwrap_or_default())? {
                0 => return Ok(GzipProgress::Read(0)),
                read => skipped += read as u64,
            }
        }
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.read_some(rest) {
                Ok(0) => break,
                Ok(read) => filled += read,
                // What was read comes first, and the error with the next call.
                Err(_) if filled > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(GzipProgress::Read(filled))
    }

    /// Some of the next bytes; none at the end of what there is.
    fn read_some(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match std::mem::replace(&mut self.state, CursorState::Ended) {
                CursorState::Ended => return Ok(0),
                CursorState::Failed(kind) => {
                    self.state = CursorState::Failed(kind);
                    return Err(kind.into());
                }
                CursorState::CutShort { size } if self.file.status()?.size == size => {
                    self.state = CursorState::CutShort { size };
                    return Ok(0);
                }
                CursorState::CutShort { .. } => self.decompress_again()?,
                CursorState::BetweenMembers(mut input) => {
                    let next = input.fill_buf()?;
                    if next.is_empty() {
                        self.state = CursorState::BetweenMembers(input);
                        return Ok(0);
                    }
                    // Padding, or whatever somebody appended, is not content.
                    if next.first() == super::GZIP_MAGIC.first() || self.offset == 0 {
                        self.state = CursorState::InMember(Box::new(GzDecoder::new(input)));
                    }
                }
                CursorState::InMember(mut decoder) => match decoder.read(buffer) {
                    Ok(0) => self.state = CursorState::BetweenMembers(decoder.into_inner()),
                    Ok(read) => {
                        self.offset += read as u64;
                        self.state = CursorState::InMember(decoder);
                        return Ok(read);
                    }
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                        self.state = CursorState::CutShort { size: self.file.status()?.size };
                        return Ok(0);
                    }
                    Err(error) => {
                        self.state = CursorState::Failed(error.kind());
                        return Err(error);
                    }
                },
            }
        }
    }

    /// Begins anew, since a decoder does not go on behind the end of its input, and returns to the offset.
    fn decompress_again(&mut self) -> io::Result<()> {
        let target = std::mem::take(&mut self.offset);
        self.state = CursorState::start(&self.file);
        let mut scratch = [0; 16 * 1024];
        while self.offset < target {
            let wanted = usize::try_from(target - self.offset).unwrap_or(usize::MAX).min(scratch.len());
            if self.read_some(scratch.get_mut(..wanted).unwrap_or_default())? == 0 {
                break;
            }
        }
        Ok(())
    }
}

impl CursorState {
    fn start(file: &Arc<OpenFile>) -> Self {
        let cursor = FileCursor { file: file.clone(), position: 0 };
        Self::BetweenMembers(BufReader::with_capacity(INPUT_BUFFER_BYTES, cursor))
    }
}

impl ContentRead for GzipCursor {
    fn read_at(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        loop {
            if let GzipProgress::Read(read) = self.read_step(buffer, offset)? {
                return Ok(read);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::File, io::Write, path::Path};

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    fn compress(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    fn open(path: &Path) -> GzipCursor {
        GzipCursor::new(Arc::new(OpenFile::new(File::open(path).unwrap()).unwrap()))
    }

    fn read(cursor: &mut GzipCursor, offset: u64, length: usize) -> String {
        let mut buffer = vec![0; length];
        let read = cursor.read_at(&mut buffer, offset).unwrap();
        String::from_utf8(buffer[..read].to_vec()).unwrap()
    }

    #[test]
    fn members_that_are_appended_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.gz");
        std::fs::write(&path, compress("one\n")).unwrap();
        let mut cursor = open(&path);
        assert_eq!(read(&mut cursor, 0, 100), "one\n");
        assert_eq!(read(&mut cursor, 4, 100), "");
        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(&compress("two\n")).unwrap();
        assert_eq!(read(&mut cursor, 4, 100), "two\n");
        // Back, and then forward again.
        assert_eq!(read(&mut cursor, 2, 4), "e\ntw");
        assert_eq!(read(&mut cursor, 7, 4), "\n");
    }

    #[test]
    fn file_that_is_still_being_written_is_read_as_far_as_it_goes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.gz");
        let text: String = (0..20_000).map(|number| format!("line {number}\n")).collect();
        let compressed = compress(&text);
        let mut content = String::new();
        std::fs::write(&path, []).unwrap();
        let mut cursor = open(&path);
        for piece in compressed.chunks(compressed.len() / 7) {
            content.push_str(&read(&mut cursor, content.len() as u64, 1 << 20));
            File::options().append(true).open(&path).unwrap().write_all(piece).unwrap();
        }
        content.push_str(&read(&mut cursor, content.len() as u64, 1 << 20));
        assert_eq!(content, text);
    }

    #[test]
    fn content_that_is_no_gzip_is_an_error_and_padding_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.gz");
        std::fs::write(&path, "no gzip, surely").unwrap();
        assert!(open(&path).read_at(&mut [0; 10], 0).is_err());
        let mut padded = compress("one\n");
        padded.extend([0; 512]);
        std::fs::write(&path, padded).unwrap();
        assert_eq!(read(&mut open(&path), 0, 100), "one\n");
    }
}
