//! The mark: a few bytes beside the log, in `data_dir/store.mark`, that say how far it went.
//!
//! It is written after every frame, without being synced, and therefore never ahead of a log that is synced. With it a log that was cut
//! short, even at the end of a frame, is told from one whose last write was not finished; and the revisions that the missing writes
//! had are not given to others. Without a mark, or with one that cannot be read, a log is what it is.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{FileExt as _, OpenOptionsExt as _},
    path::Path,
};

use super::frame::checksum;

const MARK: &str = "store.mark";

/// The file's name for itself and the version of its format.
const HEADER: [u8; 8] = *b"kw-mark\x01";

/// Header, revision, length, checksum.
const SIZE: usize = 28;

/// How far a log went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reach {
    /// Its newest revision.
    pub(super) revision: u64,
    /// Its length.
    pub(super) len: u64,
}

/// The file of the mark.
#[derive(Debug)]
pub(super) struct Mark(File);

impl Mark {
    /// Opens the mark of a directory, or makes one. What it says is none if it says nothing that can be understood.
    pub(super) fn open(dir: &Path) -> io::Result<(Self, Option<Reach>)> {
        let path = dir.join(MARK);
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(&path)?;
        let reach = match file.metadata()?.len() {
            0 => None,
            _ => {
                let reach = read(&file);
                if reach.is_none() {
                    tracing::warn!(file = %path.display(), "cannot read the mark of the log, it is written anew");
                }
                reach
            }
        };
        Ok((Self(file), reach))
    }

    /// Says how far the log goes now.
    pub(super) fn write(&self, reach: Reach) {
        let mut bytes = Vec::with_capacity(SIZE);
        bytes.extend_from_slice(&HEADER);
        bytes.extend_from_slice(&reach.revision.to_le_bytes());
        bytes.extend_from_slice(&reach.len.to_le_bytes());
        bytes.extend_from_slice(&checksum(0, &bytes).to_le_bytes());
        // An old mark is still true: the log went at least so far.
        if let Err(error) = self.0.write_all_at(&bytes, 0) {
            tracing::debug!(%error, "could not write the mark of the log");
        }
    }
}

fn read(file: &File) -> Option<Reach> {
    let mut bytes = [0; SIZE];
    file.read_exact_at(&mut bytes, 0).ok()?;
    let (body, sum) = bytes.split_last_chunk::<4>()?;
    if checksum(0, body) != u32::from_le_bytes(*sum) {
        return None;
    }
    let (revision, rest) = body.strip_prefix(&HEADER)?.split_first_chunk()?;
    let (len, _) = rest.split_first_chunk()?;
    Some(Reach { revision: u64::from_le_bytes(*revision), len: u64::from_le_bytes(*len) })
}
