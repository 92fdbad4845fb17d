//! Frames and the records in them.
//!
//! A frame consists of a magic number that no UTF-8 text contains, the length of the payload, a CRC-32 of
//! length and payload, and the payload. A record has a byte for its kind, the revision and, for an object, its
//! names and its body. Numbers are little-endian.

use std::io;

use bytes::Bytes;
use flate2::Crc;

use crate::{
    api::{GroupResource, ObjectKey},
    store::{EventKind, Stored},
};

/// No name and no body contains it, since both are UTF-8: a search for it finds frames only.
pub(super) const FRAME_MAGIC: [u8; 4] = [0xff, b'K', b'W', 0xfe];

pub(super) const FRAME_HEAD_BYTES: usize = 12;

const PUT: u8 = 1;
const DELETE: u8 = 2;
const SNAPSHOT_END: u8 = 3;

/// A frame that is being filled.
#[derive(Debug)]
pub(in crate::store) struct WalFrame {
    bytes: Vec<u8>,
}

/// One write, or the end of a snapshot.
#[derive(Debug, PartialEq)]
pub(super) enum WalRecord {
    Put(ObjectKey, u64, Bytes),
    Delete(ObjectKey, u64),
    SnapshotEnd(u64),
}

impl WalFrame {
    pub(in crate::store) fn new() -> Self {
        Self { bytes: vec![0; FRAME_HEAD_BYTES] }
    }

    pub(in crate::store) fn push(&mut self, kind: EventKind, object: &Stored) {
        let deleted = kind == EventKind::Deleted;
        self.bytes.push(if deleted { DELETE } else { PUT });
        self.bytes.extend_from_slice(&object.revision.to_le_bytes());
        let ObjectKey { resource, namespace, name } = &object.key;
        for text in [&resource.group, &resource.resource, namespace, name] {
            self.push_slice(text.as_bytes());
        }
        if !deleted {
            self.push_slice(&object.body);
        }
    }

    /// Adds the end record of a snapshot.
    pub(super) fn push_end(&mut self, revision: u64) {
        self.bytes.push(SNAPSHOT_END);
        self.bytes.extend_from_slice(&revision.to_le_bytes());
    }

    /// A body is at most [`MAX_OBJECT_BYTES`](crate::store::MAX_OBJECT_BYTES) long and a name comes from a
    /// path, so that the length fits; if it did not, `bytes` refuses the frame.
    fn push_slice(&mut self, slice: &[u8]) {
        self.bytes.extend_from_slice(&u32::try_from(slice.len()).unwrap_or(u32::MAX).to_le_bytes());
        self.bytes.extend_from_slice(slice);
    }

    pub(in crate::store) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Completes the frame with its header.
    pub(in crate::store) fn seal(&mut self) {
        if let Some((head, payload)) = self.bytes.split_first_chunk_mut::<FRAME_HEAD_BYTES>() {
            let len = u32::try_from(payload.len()).unwrap_or(u32::MAX);
            let (magic, rest) = head.split_at_mut(FRAME_MAGIC.len());
            magic.copy_from_slice(&FRAME_MAGIC);
            let (length, sum) = rest.split_at_mut(size_of::<u32>());
            length.copy_from_slice(&len.to_le_bytes());
            sum.copy_from_slice(&checksum(len, payload).to_le_bytes());
        }
    }

    pub(super) fn bytes(&self) -> io::Result<&[u8]> {
        match u32::try_from(self.bytes.len()) {
            Ok(_) => Ok(&self.bytes),
            Err(_) => Err(io::Error::new(io::ErrorKind::InvalidInput, "more than 4 GiB in one frame")),
        }
    }
}

/// The length and the checksum in a frame's header, if it is one.
pub(super) fn read_head(head: &[u8]) -> Option<(u32, u32)> {
    let rest = head.strip_prefix(&FRAME_MAGIC)?;
    let (len, rest) = rest.split_first_chunk()?;
    let (sum, _) = rest.split_first_chunk()?;
    Some((u32::from_le_bytes(*len), u32::from_le_bytes(*sum)))
}

/// The checksum covers the length too.
pub(super) fn checksum(len: u32, payload: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(&len.to_le_bytes());
    crc.update(payload);
    crc.sum()
}

/// Removes the next record from a payload; none if it is malformed.
pub(super) fn read_record(payload: &mut &[u8]) -> Option<WalRecord> {
    let (kind, rest) = payload.split_first()?;
    let (revision, rest) = rest.split_first_chunk()?;
    let revision = u64::from_le_bytes(*revision);
    *payload = rest;
    if *kind == SNAPSHOT_END {
        return Some(WalRecord::SnapshotEnd(revision));
    }
    let resource = GroupResource::new(read_text(payload)?, read_text(payload)?);
    let key = ObjectKey::new(resource, read_text(payload)?, read_text(payload)?);
    match *kind {
        PUT => Some(WalRecord::Put(key, revision, Bytes::copy_from_slice(read_slice(payload)?))),
        DELETE => Some(WalRecord::Delete(key, revision)),
        _ => None,
    }
}

fn read_text<'a>(payload: &mut &'a [u8]) -> Option<&'a str> {
    std::str::from_utf8(read_slice(payload)?).ok()
}

fn read_slice<'a>(payload: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (len, rest) = payload.split_first_chunk()?;
    let (slice, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
    *payload = rest;
    Some(slice)
}
