//! Persists requests on disk, so that traces survive a restart.
//!
//! Requests are appended to a segment, a file that begins with the version of its format. When a segment is
//! full another one begins, and the oldest are deleted when all together are too large. At startup all of them
//! are read in order. Nothing is appended to the segment of an earlier run, as its last record may be
//! incomplete.
//!
//! *Guaranteed.* A record is read back as it was written, which a checksum verifies; reading a segment ends at
//! the first record that fails. Only one process uses a folder. *Not done.* Appended records are not synced one
//! by one: a power failure loses the last seconds, a killed process loses nothing.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The start of a segment: file type and version of the format.
const SEGMENT_MAGIC: &[u8; 8] = b"KWTRACE1";
/// The header of a record: length, checksum, and time of arrival.
const RECORD_HEADER_BYTES: usize = 4 + 8 + 8;
/// The size limit in full segments.
const SEGMENT_COUNT: u64 = 16;

/// Traces are readable for their owner only.
const FILE_MODE: u32 = 0o600;

#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    #[error("{0} is in use by another viewer")]
    InUse(PathBuf),
    #[error("failed to open folder {0}")]
    Io(PathBuf, #[source] io::Error),
}

#[derive(Debug)]
pub struct SegmentStore {
    folder: PathBuf,
    limit: u64,
    /// Segments that are full or of earlier runs, with their sizes; the oldest first.
    old: Vec<(PathBuf, u64)>,
    open: Option<(File, PathBuf, u64)>,
    next: u64,
    failed: bool,
    /// Locked as long as this exists.
    _lock: File,
}

impl SegmentStore {
    /// Opens a folder, and replays its requests with their times of arrival.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be used. Segments that cannot be read are skipped and logged.
    pub fn open(folder: &Path, limit: u64, mut each: impl FnMut(&[u8], u64)) -> Result<Self, DiskError> {
        let failed = |error| DiskError::Io(folder.to_owned(), error);
        // Traces hold data of programs: they are not for other users of this machine.
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        let lock = private_file_options().create(true).truncate(false).open(folder.join("lock")).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(DiskError::InUse(folder.to_owned())),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let mut disk =
            Self { folder: folder.to_owned(), limit, old: Vec::new(), open: None, next: 1, failed: false, _lock: lock };
        for (number, path) in list_segments(folder).map_err(failed)? {
            disk.next = disk.next.max(number + 1);
            // Earlier versions created segments that others can read.
            if let Err(error) = fs::set_permissions(&path, Permissions::from_mode(FILE_MODE)) {
                tracing::warn!(%error, path = %path.display(), "failed to restrict a trace segment to its owner");
            }
            match read_segment(&path, &mut each) {
                Ok(size) => disk.old.push((path, size)),
                Err(error) => {
                    tracing::warn!(%error, path = %path.display(), "failed to read a trace segment, skipping it")
                }
            }
        }
        disk.make_room(0);
        Ok(disk)
    }

    /// Appends a request. On a disk error the request is lost; the first error is logged.
    pub fn append(&mut self, request: &[u8], received: u64) {
        match self.try_append(request, received) {
            Ok(()) => self.failed = false,
            Err(error) => {
                // A record that is written in part ends the segment.
                self.close_segment();
                if !std::mem::replace(&mut self.failed, true) {
                    tracing::error!(%error, folder = %self.folder.display(), "failed to write traces to disk, keeping them in memory only");
                }
            }
        }
    }

    fn try_append(&mut self, request: &[u8], received: u64) -> io::Result<()> {
        let Ok(length) = u32::try_from(request.len()) else { return Ok(()) };
        let size = RECORD_HEADER_BYTES as u64 + u64::from(length);
        if self.open.as_ref().is_some_and(|(_, _, used)| used + size > self.limit / SEGMENT_COUNT) {
            self.close_segment();
        }
        self.make_room(size);
        let (file, _, used) = match &mut self.open {
            Some(open) => open,
            None => {
                let open = create_segment(&self.folder, self.next)?;
                self.next += 1;
                self.open.insert(open)
            }
        };
        let mut record = Vec::with_capacity(RECORD_HEADER_BYTES + request.len());
        record.extend_from_slice(&length.to_le_bytes());
        record.extend_from_slice(&xxh3_64_with_seed(request, received).to_le_bytes());
        record.extend_from_slice(&received.to_le_bytes());
        record.extend_from_slice(request);
        file.write_all(&record)?;
        *used += size;
        Ok(())
    }

    fn close_segment(&mut self) {
        if let Some((_, path, used)) = self.open.take() {
            self.old.push((path, used));
        }
    }

    /// Deletes the oldest segments until `size` bytes fit.
    fn make_room(&mut self, size: u64) {
        let open = self.open.as_ref().map_or(0, |(_, _, used)| *used);
        while !self.old.is_empty() && self.old.iter().map(|(_, used)| used).sum::<u64>() + open + size > self.limit {
            let (path, _) = self.old.remove(0);
            if let Err(error) = fs::remove_file(&path) {
                tracing::warn!(%error, path = %path.display(), "failed to delete an old trace segment");
            }
        }
    }

    /// Syncs the open segment to disk.
    pub fn sync(&mut self) {
        if let Some((file, path, _)) = &self.open
            && let Err(error) = file.sync_all()
        {
            tracing::warn!(%error, path = %path.display(), "failed to sync a trace segment to disk");
        }
    }
}

fn private_file_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(FILE_MODE);
    options
}

fn create_segment(folder: &Path, number: u64) -> io::Result<(File, PathBuf, u64)> {
    let path = folder.join(format!("segment-{number:010}"));
    let mut file = private_file_options().create_new(true).open(&path)?;
    file.write_all(SEGMENT_MAGIC)?;
    Ok((file, path, SEGMENT_MAGIC.len() as u64))
}

fn list_segments(folder: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let number =
            name.to_str().and_then(|name| name.strip_prefix("segment-")).and_then(|number| number.parse().ok());
        found.extend(number.map(|number| (number, entry.path())));
    }
    found.sort();
    Ok(found)
}

/// Reads a segment, and returns its size. A damaged end is truncated, so that it is logged only once.
fn read_segment(path: &Path, each: &mut impl FnMut(&[u8], u64)) -> io::Result<u64> {
    let mut content = Vec::new();
    File::open(path)?.read_to_end(&mut content)?;
    let Some(mut rest) = content.strip_prefix(SEGMENT_MAGIC) else {
        return Err(io::Error::other("the segment has another format version"));
    };
    while let Some((request, received, behind)) = parse_record(rest) {
        each(request, received);
        rest = behind;
    }
    if !rest.is_empty() {
        tracing::warn!(path = %path.display(), bytes = rest.len(), "the end of a trace segment is damaged, truncating the segment");
        let whole = (content.len() - rest.len()) as u64;
        match OpenOptions::new().write(true).open(path).and_then(|file| file.set_len(whole)) {
            Ok(()) => return Ok(whole),
            Err(error) => tracing::warn!(%error, path = %path.display(), "failed to truncate a damaged trace segment"),
        }
    }
    Ok(content.len() as u64)
}

/// The first record, and the rest.
fn parse_record(rest: &[u8]) -> Option<(&[u8], u64, &[u8])> {
    let (length, rest) = rest.split_first_chunk()?;
    let (checksum, rest) = rest.split_first_chunk()?;
    let (received, rest) = rest.split_first_chunk()?;
    let received = u64::from_le_bytes(*received);
    let (request, behind) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    (xxh3_64_with_seed(request, received) == u64::from_le_bytes(*checksum)).then_some((request, received, behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(folder: &Path, limit: u64) -> (SegmentStore, Vec<(Vec<u8>, u64)>) {
        let mut found = Vec::new();
        let disk =
            SegmentStore::open(folder, limit, |request, received| found.push((request.to_vec(), received))).unwrap();
        (disk, found)
    }

    #[test]
    fn what_was_kept_is_there_again_in_its_order() {
        let folder = tempfile::tempdir().unwrap();
        for run in 0..3u8 {
            let (mut disk, found) = open(folder.path(), 1 << 20);
            assert_eq!(found.len(), usize::from(run) * 10);
            assert!(found.iter().map(|(_, received)| *received).is_sorted());
            (0..10).for_each(|n| disk.append(&[run; 100], u64::from(run) * 10 + n));
        }
    }

    #[test]
    fn the_oldest_go_and_the_limit_holds() {
        let folder = tempfile::tempdir().unwrap();
        let (mut disk, _) = open(folder.path(), 100_000);
        (0..1000u64).for_each(|n| disk.append(&[7; 980], n));
        drop(disk);
        let sizes = list_segments(folder.path())
            .unwrap()
            .iter()
            .map(|(_, path)| fs::metadata(path).unwrap().len())
            .sum::<u64>();
        assert!(sizes <= 100_000 && sizes > 85_000, "{sizes}");
        let (_, found) = open(folder.path(), 100_000);
        assert_eq!(found.last().unwrap().1, 999);
        assert!(found.iter().map(|(_, received)| *received).is_sorted());
        // A lower limit deletes the oldest segments at once.
        let (_, found) = {
            open(folder.path(), 20_000);
            open(folder.path(), 20_000)
        };
        assert!(found.len() < 21 && found.last().unwrap().1 == 999, "{}", found.len());
    }

    #[test]
    fn a_damaged_end_costs_only_itself() {
        let folder = tempfile::tempdir().unwrap();
        let (mut disk, _) = open(folder.path(), 1 << 20);
        (0..10).for_each(|n| disk.append(&[7; 100], n));
        drop(disk);
        let (_, path) = list_segments(folder.path()).unwrap().remove(0);
        let whole = fs::read(&path).unwrap();
        for cut in [whole.len() - 1, whole.len() - 110, 12, 8] {
            fs::write(&path, &whole[..cut]).unwrap();
            assert_eq!(open(folder.path(), 1 << 20).1.len(), (cut - 8) / 120);
            assert_eq!(fs::metadata(&path).unwrap().len() as usize, 8 + (cut - 8) / 120 * 120, "it is told of once");
        }
        let mut changed = whole.clone();
        changed[8 + 5 * 120 + 50] ^= 1;
        fs::write(&path, &changed).unwrap();
        assert_eq!(open(folder.path(), 1 << 20).1.len(), 5);
        // Segments of another version are left alone.
        fs::write(&path, b"KWTRACE9 whatever").unwrap();
        assert_eq!(open(folder.path(), 1 << 20).1.len(), 0);
        assert!(path.exists());
    }

    #[test]
    fn folder_and_files_are_closed_to_other_users() {
        let above = tempfile::tempdir().unwrap();
        let folder = above.path().join("traces");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        open(&folder, 1 << 20).0.append(&[7; 100], 1);
        assert_eq!(mode(&folder), 0o700);
        let (_, segment) = list_segments(&folder).unwrap().remove(0);
        assert_eq!((mode(&segment), mode(&folder.join("lock"))), (0o600, 0o600));
        fs::set_permissions(&segment, Permissions::from_mode(0o644)).unwrap();
        open(&folder, 1 << 20);
        assert_eq!(mode(&segment), 0o600, "also one of an earlier version");
    }

    #[test]
    fn a_folder_has_one_user() {
        let folder = tempfile::tempdir().unwrap();
        let (_disk, _) = open(folder.path(), 1 << 20);
        assert!(matches!(SegmentStore::open(folder.path(), 1 << 20, |_, _| {}), Err(DiskError::InUse(_))));
        let file = folder.path().join("lock");
        assert!(matches!(SegmentStore::open(&file, 1 << 20, |_, _| {}), Err(DiskError::Io(..))));
    }
}
