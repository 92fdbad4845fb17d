//! The stored form of positions.
//!
//! A value is the magic, the version, the length of the body, the body, and a checksum of everything before it. All
//! numbers are little endian. Streams carry what identifies their files, so that they are found again under other names
//! and in spite of inodes that were used again.
//!
//! *Guarantees*: what was written is read as it was; anything else is an error. Reading allocates no more than a small
//! multiple of the value.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use xxhash_rust::xxh3::xxh3_64;

use crate::{
    fingerprint::{ContentMark, FileKey, HeadPrint},
    log_stream::LogLayout,
    position::{LogPosition, StreamId},
};

const MAGIC: &[u8; 8] = b"KWLOGPOS";

/// Increased with every change that an older version cannot read.
const VERSION: u16 = 1;

/// Everything that is stored.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Checkpoint {
    /// Device numbers mean something only within one boot of the machine.
    pub(crate) boot_id: Vec<u8>,
    pub(crate) next_stream: u64,
    pub(crate) outputs: Vec<String>,
    pub(crate) streams: Vec<StoredStream>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StoredStream {
    pub(crate) id: StreamId,
    pub(crate) layout: LogLayout,
    pub(crate) path: PathBuf,
    pub(crate) last_rotation: Option<String>,
    pub(crate) generations: Vec<StoredGeneration>,
    /// By output.
    pub(crate) positions: Vec<Option<LogPosition>>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StoredGeneration {
    pub(crate) number: u64,
    pub(crate) start: u64,
    pub(crate) key: FileKey,
    pub(crate) first_line: Option<u64>,
    pub(crate) head: HeadPrint,
    pub(crate) mark: Option<ContentMark>,
    pub(crate) size: u64,
    pub(crate) is_size_final: bool,
    pub(crate) rotated_at: Option<String>,
    pub(crate) modified: Option<SystemTime>,
}

/// Why a value is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CheckpointError {
    #[error("it is damaged")]
    Damaged,
    #[error("it was written by a newer version of the program (format {0}, this one reads {VERSION})")]
    NewerVersion(u16),
}

impl Checkpoint {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut body = Writer::default();
        body.bytes(&self.boot_id);
        body.number(self.next_stream);
        body.number(self.outputs.len() as u64);
        self.outputs.iter().for_each(|output| body.bytes(output.as_bytes()));
        body.number(self.streams.len() as u64);
        self.streams.iter().for_each(|stream| stream.write(&mut body));
        let mut value = Writer::default();
        value.0.extend_from_slice(MAGIC);
        value.0.extend_from_slice(&VERSION.to_le_bytes());
        value.number(body.0.len() as u64);
        value.0.append(&mut body.0);
        let checksum = xxh3_64(&value.0);
        value.number(checksum);
        value.0
    }

    pub(crate) fn decode(value: &[u8]) -> Result<Self, CheckpointError> {
        let rest = value.strip_prefix(MAGIC).ok_or(CheckpointError::Damaged)?;
        let (version, rest) = rest.split_first_chunk().ok_or(CheckpointError::Damaged)?;
        match u16::from_le_bytes(*version) {
            VERSION => {}
            newer if newer > VERSION => return Err(CheckpointError::NewerVersion(newer)),
            _ => return Err(CheckpointError::Damaged),
        }
        let (covered, checksum) = value.split_last_chunk().ok_or(CheckpointError::Damaged)?;
        if xxh3_64(covered) != u64::from_le_bytes(*checksum) {
            return Err(CheckpointError::Damaged);
        }
        Self::read(rest).ok_or(CheckpointError::Damaged)
    }

    fn read(rest: &[u8]) -> Option<Self> {
        let mut reader = Reader(rest);
        let length = usize::try_from(reader.number()?).ok()?;
        let mut body = Reader(reader.0.get(..length)?);
        // The checksum is all that follows.
        if reader.0.len() != length.checked_add(8)? {
            return None;
        }
        let boot_id = body.bytes()?.to_vec();
        let next_stream = body.number()?;
        let outputs = body.list(|body| String::from_utf8(body.bytes()?.to_vec()).ok())?;
        let streams = body.list(|body| StoredStream::read(body, outputs.len()))?;
        body.0.is_empty().then_some(Self { boot_id, next_stream, outputs, streams })
    }
}

impl StoredStream {
    fn write(&self, out: &mut Writer) {
        out.number(self.id.0);
        out.0.push(u8::from(self.layout == LogLayout::Kubelet));
        out.bytes(self.path.as_os_str().as_bytes());
        out.optional_text(self.last_rotation.as_deref());
        out.number(self.generations.len() as u64);
        self.generations.iter().for_each(|generation| generation.write(out));
        for position in &self.positions {
            out.optional(*position, |out, position| {
                out.number(position.generation);
                out.number(position.offset);
            });
        }
    }

    fn read(from: &mut Reader<'_>, outputs: usize) -> Option<Self> {
        let id = StreamId(from.number()?);
        let layout = if from.flag()? { LogLayout::Kubelet } else { LogLayout::Plain };
        let path = PathBuf::from(OsStr::from_bytes(from.bytes()?));
        let last_rotation = from.optional(Reader::text)?;
        let generations = from.list(StoredGeneration::read)?;
        let read_position = |from: &mut Reader<'_>| Some(LogPosition::new(from.number()?, from.number()?));
        let positions = (0..outputs).map(|_| from.optional(read_position)).collect::<Option<_>>()?;
        Some(Self { id, layout, path, last_rotation, generations, positions })
    }
}

impl StoredGeneration {
    fn write(&self, out: &mut Writer) {
        for number in [self.number, self.start, self.key.device, self.key.inode] {
            out.number(number);
        }
        out.optional(self.first_line, Writer::number);
        out.number(self.head.length);
        out.number(self.head.hash);
        out.optional(self.mark, |out, mark| {
            out.number(mark.offset);
            out.number(mark.hash);
        });
        out.number(self.size);
        out.0.push(u8::from(self.is_size_final));
        out.optional_text(self.rotated_at.as_deref());
        let modified = self.modified.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
        out.optional(modified.map(|since| since.as_secs()), Writer::number);
    }

    fn read(from: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            number: from.number()?,
            start: from.number()?,
            key: FileKey { device: from.number()?, inode: from.number()? },
            first_line: from.optional(Reader::number)?,
            head: HeadPrint { length: from.number()?, hash: from.number()? },
            mark: from.optional(|from| Some(ContentMark { offset: from.number()?, hash: from.number()? }))?,
            size: from.number()?,
            is_size_final: from.flag()?,
            rotated_at: from.optional(Reader::text)?,
            modified: from
                .optional(Reader::number)?
                .and_then(|seconds| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))),
        })
    }
}

#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn optional<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.0.push(u8::from(value.is_some()));
        if let Some(value) = value {
            write(self, value);
        }
    }

    fn optional_text(&mut self, text: Option<&str>) {
        self.optional(text, |out, text| out.bytes(text.as_bytes()));
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    fn flag(&mut self) -> Option<bool> {
        let (flag, rest) = self.0.split_first()?;
        self.0 = rest;
        match flag {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?.to_vec()).ok()
    }

    fn optional<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        if self.flag()? { read(self).map(Some) } else { Some(None) }
    }

    /// The number of items is what the bytes hold, whatever they say.
    fn list<T>(&mut self, read: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.number()?;
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(read(self)?);
        }
        Some(items)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_generation() -> impl Strategy<Value = StoredGeneration> {
        let numbers = any::<(u64, u64, u64, u64, u64, u64, u64)>();
        let optional = any::<(Option<u64>, Option<(u64, u64)>, Option<u32>, bool)>();
        (numbers, optional, proptest::option::of("[0-9-]{15}")).prop_map(|(numbers, optional, rotated_at)| {
            let (number, start, device, inode, length, hash, size) = numbers;
            let (first_line, mark, modified, is_size_final) = optional;
            StoredGeneration {
                number,
                start,
                key: FileKey { device, inode },
                first_line,
                head: HeadPrint { length, hash },
                mark: mark.map(|(offset, hash)| ContentMark { offset, hash }),
                size,
                is_size_final,
                rotated_at,
                modified: modified.map(|seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.into())),
            }
        })
    }

    fn any_checkpoint() -> impl Strategy<Value = Checkpoint> {
        let generations = proptest::collection::vec(any_generation(), 0..4);
        let positions = proptest::collection::vec(any::<Option<(u64, u64)>>(), 2);
        let stream = (any::<u64>(), any::<bool>(), "[a-z/]{0,20}", generations, positions);
        (any::<u64>(), proptest::collection::vec(stream, 0..4)).prop_map(|(next_stream, streams)| Checkpoint {
            boot_id: b"boot".to_vec(),
            next_stream,
            outputs: vec!["a".into(), "b/ü".into()],
            streams: streams
                .into_iter()
                .map(|(id, is_kubelet, path, generations, positions)| StoredStream {
                    id: StreamId(id),
                    layout: if is_kubelet { LogLayout::Kubelet } else { LogLayout::Plain },
                    path: path.into(),
                    last_rotation: is_kubelet.then(|| "20231114-221320".to_owned()),
                    generations,
                    positions: positions
                        .into_iter()
                        .map(|position| position.map(|(generation, offset)| LogPosition::new(generation, offset)))
                        .collect(),
                })
                .collect(),
        })
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(checkpoint in any_checkpoint()) {
            prop_assert_eq!(Checkpoint::decode(&checkpoint.encode()), Ok(checkpoint));
        }

        #[test]
        fn changed_value_is_refused(checkpoint in any_checkpoint(), at in any::<prop::sample::Index>(), bit in 0..8_u8) {
            let mut value = checkpoint.encode();
            let at = at.index(value.len());
            value[at] ^= 1 << bit;
            prop_assert!(Checkpoint::decode(&value).is_err());
            value.truncate(at);
            prop_assert_eq!(Checkpoint::decode(&value), Err(CheckpointError::Damaged));
        }

        #[test]
        fn garbage_behind_a_valid_checksum_is_refused_or_read(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut value = MAGIC.to_vec();
            value.extend(VERSION.to_le_bytes());
            value.extend((body.len() as u64).to_le_bytes());
            value.extend(&body);
            value.extend(xxh3_64(&value).to_le_bytes());
            let _ = Checkpoint::decode(&value);
        }
    }

    #[test]
    fn newer_version_is_named() {
        let mut value = Checkpoint::default().encode();
        value[8] = 9;
        assert_eq!(Checkpoint::decode(&value), Err(CheckpointError::NewerVersion(9)));
    }
}
