//! The high-water mark: a small file beside the log, `data_dir/store.mark`, with the extent of the log.
//!
//! It is written after every frame, without being synced, and therefore never ahead of a synced log. It tells a
//! log that was cut short, even at the end of a frame, from one whose last write was not finished; and the
//! revisions of the missing writes are not reused. Without a mark, or with an unreadable one, a truncated log
//! is not detected.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{FileExt as _, OpenOptionsExt as _},
    path::Path,
};

use super::frame::checksum;

const MARK_FILE: &str = "store.mark";

/// The magic number of the file and the version of its format.
const HEADER: [u8; 8] = *b"kw-mark\x01";

const MARK_BYTES: usize = 28;

/// The extent of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LogExtent {
    pub(super) revision: u64,
    pub(super) len: u64,
}

#[derive(Debug)]
pub(super) struct HighWaterMark(File);

impl HighWaterMark {
    /// Opens the mark of a directory, or creates one. Its extent is none if it cannot be decoded.
    pub(super) fn open(dir: &Path) -> io::Result<(Self, Option<LogExtent>)> {
        let path = dir.join(MARK_FILE);
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(&path)?;
        let reach = match file.metadata()?.len() {
            0 => None,
            _ => {
                let reach = read(&file);
                if reach.is_none() {
                    tracing::warn!(file = %path.display(), "failed to read the high-water mark of the store's log, writing a new one");
                }
                reach
            }
        };
        Ok((Self(file), reach))
    }

    /// Records the extent of the log.
    pub(super) fn write(&self, reach: LogExtent) {
        let mut bytes = Vec::with_capacity(MARK_BYTES);
        bytes.extend_from_slice(&HEADER);
        bytes.extend_from_slice(&reach.revision.to_le_bytes());
        bytes.extend_from_slice(&reach.len.to_le_bytes());
        bytes.extend_from_slice(&checksum(0, &bytes).to_le_bytes());
        // An old mark is still true: the log was at least that long.
        if let Err(error) = self.0.write_all_at(&bytes, 0) {
            tracing::debug!(%error, "failed to write the high-water mark of the store's log");
        }
    }
}

fn read(file: &File) -> Option<LogExtent> {
    let mut bytes = [0; MARK_BYTES];
    file.read_exact_at(&mut bytes, 0).ok()?;
    let (body, sum) = bytes.split_last_chunk::<4>()?;
    if checksum(0, body) != u32::from_le_bytes(*sum) {
        return None;
    }
    let (revision, rest) = body.strip_prefix(&HEADER)?.split_first_chunk()?;
    let (len, _) = rest.split_first_chunk()?;
    Some(LogExtent { revision: u64::from_le_bytes(*revision), len: u64::from_le_bytes(*len) })
}
