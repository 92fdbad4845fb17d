//! Recovery: reads a log back.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, BufReader, Read as _, Seek as _, SeekFrom},
    path::Path,
};

use bytes::Bytes;

use super::frame::{FRAME_HEAD_BYTES, FRAME_MAGIC, WalRecord, checksum, read_head, read_record};
use crate::{
    api::ObjectKey,
    store::{OpenError, Stored, WriteError},
};

/// The magic number of the file and the version of its format.
pub(super) const HEADER: [u8; 12] = *b"kw-store\x01\0\0\0";

#[derive(Debug, Default)]
pub(in crate::store) struct RecoveredState {
    pub(in crate::store) objects: Vec<Stored>,
    pub(in crate::store) revision: u64,
    /// The length of the intact part.
    pub(super) len: u64,
}

/// A position in the file.
struct WalReader<'a> {
    path: &'a Path,
    file: BufReader<&'a File>,
    offset: u64,
    size: u64,
}

/// The state that was read so far.
#[derive(Default)]
struct WalReplay {
    /// With the offset of the frame, for the message if the body is damaged.
    objects: HashMap<ObjectKey, (u64, u64, Bytes)>,
    revision: u64,
    complete: bool,
}

/// Reads a whole log. A torn tail is ignored and reported with one log message.
pub(super) fn recover_log(path: &Path, file: &File) -> Result<RecoveredState, OpenError> {
    let failed = |source| OpenError::Io { path: path.to_owned(), source };
    let size = file.metadata().map_err(failed)?.len();
    let mut reader = WalReader { path, file: BufReader::with_capacity(256 << 10, file), offset: 0, size };
    reader.header()?;
    let mut replay = WalReplay::default();
    while let Some(payload) = reader.frame()? {
        let start = reader.offset - (FRAME_HEAD_BYTES + payload.len()) as u64;
        replay.frame(start, &payload).map_err(|why| reader.corrupt(start, why))?;
    }
    if !replay.complete {
        return Err(reader.corrupt(reader.offset, "the snapshot ends too early"));
    }
    if reader.offset < size {
        let offset = reader.offset;
        let bytes = size - reader.offset;
        tracing::warn!(file = %path.display(), offset, bytes, "truncated an unfinished write at the end of the store's log");
    }
    let revision = replay.revision;
    let len = reader.offset;
    let objects = replay.objects.into_iter().map(|(key, (offset, revision, body))| {
        decode(key, revision, &body).map_err(|why| reader.corrupt(offset, &why))
    });
    Ok(RecoveredState { objects: objects.collect::<Result<_, _>>()?, revision, len })
}

fn decode(key: ObjectKey, revision: u64, body: &[u8]) -> Result<Stored, String> {
    let object = serde_json::from_slice(body).map_err(|error| format!("an object is not valid JSON: {error}"))?;
    Stored::from_value(key, revision, &object).map_err(|error: WriteError| error.to_string())
}

impl WalReader<'_> {
    fn corrupt(&self, offset: u64, why: &str) -> OpenError {
        OpenError::Corrupt { path: self.path.to_owned(), offset, why: why.to_owned() }
    }

    fn failed(&self, source: io::Error) -> OpenError {
        OpenError::Io { path: self.path.to_owned(), source }
    }

    fn header(&mut self) -> Result<(), OpenError> {
        let mut header = [0; HEADER.len()];
        if self.size < HEADER.len() as u64 {
            return Err(self.corrupt(0, "the header is incomplete"));
        }
        self.file.read_exact(&mut header).map_err(|error| self.failed(error))?;
        let (Some((name, version)), Some((our_name, _))) = (header.split_at_checked(8), HEADER.split_at_checked(8))
        else {
            return Err(self.corrupt(0, "the header is incomplete"));
        };
        if name != our_name {
            return Err(self.corrupt(0, "the file is not a store of Kubewake"));
        }
        if header != HEADER {
            let version = version.try_into().map_or(0, u32::from_le_bytes);
            return Err(OpenError::Version { path: self.path.to_owned(), version });
        }
        self.offset = HEADER.len() as u64;
        Ok(())
    }

    /// The payload of the next frame; none at the end and at a torn tail.
    fn frame(&mut self) -> Result<Option<Vec<u8>>, OpenError> {
        match self.whole_frame().map_err(|error| self.failed(error))? {
            Some(payload) => {
                self.offset += (FRAME_HEAD_BYTES + payload.len()) as u64;
                Ok(Some(payload))
            }
            None if self.offset == self.size => Ok(None),
            None => self.torn_tail().map(|()| None),
        }
    }

    fn whole_frame(&mut self) -> io::Result<Option<Vec<u8>>> {
        let left = self.size - self.offset;
        if left < FRAME_HEAD_BYTES as u64 {
            return Ok(None);
        }
        let mut head = [0; FRAME_HEAD_BYTES];
        self.file.read_exact(&mut head)?;
        let Some((len, sum)) = read_head(&head) else { return Ok(None) };
        // A length is valid only if the file has that many bytes left.
        if u64::from(len) > left - FRAME_HEAD_BYTES as u64 {
            return Ok(None);
        }
        let mut payload = vec![0; len as usize];
        self.file.read_exact(&mut payload)?;
        Ok((checksum(len, &payload) == sum).then_some(payload))
    }

    /// Checks that no whole frame follows: otherwise the broken one was once whole, and was answered.
    fn torn_tail(&mut self) -> Result<(), OpenError> {
        let mut tail = Vec::new();
        let read = self.file.seek(SeekFrom::Start(self.offset)).and_then(|_| self.file.read_to_end(&mut tail));
        read.map_err(|error| self.failed(error))?;
        let starts = tail.windows(FRAME_MAGIC.len()).enumerate().skip(1).filter(|(_, bytes)| *bytes == FRAME_MAGIC);
        for (start, _) in starts {
            if tail.get(start..).is_some_and(is_whole) {
                let why = format!("the checksum is wrong, and a whole frame follows {start} bytes later");
                return Err(self.corrupt(self.offset, &why));
            }
        }
        Ok(())
    }
}

/// Whether these bytes begin with a whole frame.
fn is_whole(bytes: &[u8]) -> bool {
    let Some((len, sum)) = read_head(bytes) else { return false };
    let payload = bytes.get(FRAME_HEAD_BYTES..).and_then(|rest| rest.get(..len as usize));
    payload.is_some_and(|payload| checksum(len, payload) == sum)
}

impl WalReplay {
    /// Applies a frame with a correct checksum.
    fn frame(&mut self, offset: u64, mut payload: &[u8]) -> Result<(), &'static str> {
        while !payload.is_empty() {
            match read_record(&mut payload).ok_or("a record is malformed")? {
                WalRecord::Put(key, revision, body) => {
                    self.advance_revision(revision)?;
                    self.objects.insert(key, (offset, revision, body));
                }
                WalRecord::Delete(key, revision) => {
                    self.advance_revision(revision)?;
                    self.objects.remove(&key).ok_or("a deleted object did not exist")?;
                }
                WalRecord::SnapshotEnd(_) if self.complete => return Err("the log contains a second snapshot"),
                WalRecord::SnapshotEnd(revision) => {
                    self.complete = true;
                    self.revision = revision;
                }
            }
        }
        Ok(())
    }

    /// After the snapshot, which is in the order of the objects, revisions only grow.
    fn advance_revision(&mut self, revision: u64) -> Result<(), &'static str> {
        if self.complete && revision <= self.revision {
            return Err("a revision is not greater than the previous one");
        }
        if self.complete {
            self.revision = revision;
        }
        Ok(())
    }
}
