//! Reading a log back.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, BufReader, Read as _, Seek as _, SeekFrom},
    path::Path,
};

use bytes::Bytes;

use super::frame::{HEAD, MAGIC, Record, checksum, read_head, read_record};
use crate::{
    api::ObjectKey,
    store::{OpenError, Stored, WriteError},
};

/// The file's name for itself and the version of its format.
pub(super) const HEADER: [u8; 12] = *b"kw-store\x01\0\0\0";

/// What a log held.
#[derive(Debug, Default)]
pub(in crate::store) struct Recovered {
    /// Every object.
    pub(in crate::store) objects: Vec<Stored>,
    /// The newest revision.
    pub(in crate::store) revision: u64,
    /// The length of what is whole.
    pub(super) len: u64,
}

/// A place in the file.
struct Reader<'a> {
    path: &'a Path,
    file: BufReader<&'a File>,
    at: u64,
    size: u64,
}

/// What was read so far.
#[derive(Default)]
struct Replay {
    /// With the offset of the frame, for the message if the body is damaged.
    objects: HashMap<ObjectKey, (u64, u64, Bytes)>,
    revision: u64,
    /// Whether the snapshot ended.
    complete: bool,
}

/// Reads a whole log. A torn tail is left out, with one line in the log of the process.
pub(super) fn read(path: &Path, file: &File) -> Result<Recovered, OpenError> {
    let failed = |source| OpenError::Io { path: path.to_owned(), source };
    let size = file.metadata().map_err(failed)?.len();
    let mut reader = Reader { path, file: BufReader::with_capacity(256 << 10, file), at: 0, size };
    reader.header()?;
    let mut replay = Replay::default();
    while let Some(payload) = reader.frame()? {
        let start = reader.at - (HEAD + payload.len()) as u64;
        replay.frame(start, &payload).map_err(|why| reader.corrupt(start, why))?;
    }
    if !replay.complete {
        return Err(reader.corrupt(reader.at, "the snapshot ends too early"));
    }
    if reader.at < size {
        let (offset, bytes) = (reader.at, size - reader.at);
        tracing::warn!(file = %path.display(), offset, bytes, "cut off an unfinished write at the end of the log");
    }
    let (revision, len) = (replay.revision, reader.at);
    let objects = replay.objects.into_iter().map(|(key, (offset, revision, body))| {
        decode(key, revision, &body).map_err(|why| reader.corrupt(offset, &why))
    });
    Ok(Recovered { objects: objects.collect::<Result<_, _>>()?, revision, len })
}

fn decode(key: ObjectKey, revision: u64, body: &[u8]) -> Result<Stored, String> {
    let object = serde_json::from_slice(body).map_err(|error| format!("a body is no JSON: {error}"))?;
    Stored::of(key, revision, &object).map_err(|error: WriteError| error.to_string())
}

impl Reader<'_> {
    fn corrupt(&self, offset: u64, why: &str) -> OpenError {
        OpenError::Corrupt { path: self.path.to_owned(), offset, why: why.to_owned() }
    }

    fn failed(&self, source: io::Error) -> OpenError {
        OpenError::Io { path: self.path.to_owned(), source }
    }

    fn header(&mut self) -> Result<(), OpenError> {
        let mut header = [0; HEADER.len()];
        if self.size < HEADER.len() as u64 {
            return Err(self.corrupt(0, "the header is not whole"));
        }
        self.file.read_exact(&mut header).map_err(|error| self.failed(error))?;
        let (Some((name, version)), Some((our_name, _))) = (header.split_at_checked(8), HEADER.split_at_checked(8))
        else {
            return Err(self.corrupt(0, "the header is not whole"));
        };
        if name != our_name {
            return Err(self.corrupt(0, "this is no store of Kubewake"));
        }
        if header != HEADER {
            let version = version.try_into().map_or(0, u32::from_le_bytes);
            return Err(OpenError::Version { path: self.path.to_owned(), version });
        }
        self.at = HEADER.len() as u64;
        Ok(())
    }

    /// The payload of the next frame; none at the end and at a torn tail.
    fn frame(&mut self) -> Result<Option<Vec<u8>>, OpenError> {
        match self.whole_frame().map_err(|error| self.failed(error))? {
            Some(payload) => {
                self.at += (HEAD + payload.len()) as u64;
                Ok(Some(payload))
            }
            None if self.at == self.size => Ok(None),
            None => self.torn_tail().map(|()| None),
        }
    }

    fn whole_frame(&mut self) -> io::Result<Option<Vec<u8>>> {
        let left = self.size - self.at;
        if left < HEAD as u64 {
            return Ok(None);
        }
        let mut head = [0; HEAD];
        self.file.read_exact(&mut head)?;
        let Some((len, sum)) = read_head(&head) else { return Ok(None) };
        // A length is believed only if the file has as much.
        if u64::from(len) > left - HEAD as u64 {
            return Ok(None);
        }
        let mut payload = vec![0; len as usize];
        self.file.read_exact(&mut payload)?;
        Ok((checksum(len, &payload) == sum).then_some(payload))
    }

    /// Makes sure that nothing whole follows: else what is broken was once whole, and was answered.
    fn torn_tail(&mut self) -> Result<(), OpenError> {
        let mut tail = Vec::new();
        let read = self.file.seek(SeekFrom::Start(self.at)).and_then(|_| self.file.read_to_end(&mut tail));
        read.map_err(|error| self.failed(error))?;
        let starts = tail.windows(MAGIC.len()).enumerate().skip(1).filter(|(_, bytes)| *bytes == MAGIC);
        for (start, _) in starts {
            if tail.get(start..).is_some_and(is_whole) {
                let why = format!("the checksum is wrong, and a whole frame follows {start} bytes later");
                return Err(self.corrupt(self.at, &why));
            }
        }
        Ok(())
    }
}

/// Whether a whole frame is at the start of this.
fn is_whole(bytes: &[u8]) -> bool {
    let Some((len, sum)) = read_head(bytes) else { return false };
    let payload = bytes.get(HEAD..).and_then(|rest| rest.get(..len as usize));
    payload.is_some_and(|payload| checksum(len, payload) == sum)
}

impl Replay {
    /// Applies a frame whose checksum is right.
    fn frame(&mut self, offset: u64, mut payload: &[u8]) -> Result<(), &'static str> {
        while !payload.is_empty() {
            match read_record(&mut payload).ok_or("a record is malformed")? {
                Record::Put(key, revision, body) => {
                    self.step(revision)?;
                    self.objects.insert(key, (offset, revision, body));
                }
                Record::Delete(key, revision) => {
                    self.step(revision)?;
                    self.objects.remove(&key).ok_or("an object was deleted that was not there")?;
                }
                Record::SnapshotEnd(_) if self.complete => return Err("a second snapshot"),
                Record::SnapshotEnd(revision) => {
                    self.complete = true;
                    self.revision = revision;
                }
            }
        }
        Ok(())
    }

    /// After the snapshot, whose order is that of the objects, revisions only grow.
    fn step(&mut self, revision: u64) -> Result<(), &'static str> {
        if self.complete && revision <= self.revision {
            return Err("a revision is not above the one before it");
        }
        if self.complete {
            self.revision = revision;
        }
        Ok(())
    }
}
