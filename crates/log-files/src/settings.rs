//! The settings of `LogFiles`. Their defaults are those of the Collector's `file_log`, where it has them.

use std::{path::PathBuf, time::Duration};

use crate::{file_order::OrderingCriteria, glob::GlobPattern};

/// Less of a file than this tells it from no other one.
pub const MIN_FINGERPRINT_SIZE: usize = 16;

/// The default size of fingerprints, as in the Collector.
pub const DEFAULT_FINGERPRINT_SIZE: usize = 1000;

/// Which files are read, and how.
#[derive(Debug, Clone)]
pub struct LogFilesSettings {
    /// Files that match one of these are read…
    pub include: Vec<GlobPattern>,
    /// …unless they match one of these.
    pub exclude: Vec<GlobPattern>,
    pub start_at: StartAt,
    /// How often a directory is listed that cannot be watched. Directories that can be watched are read when they
    /// change.
    pub poll_interval: Duration,
    /// How often everything is listed again, in case that a change was not announced.
    pub rescan_interval: Duration,
    /// How much of the start of a file tells it from others, in bytes. At least `MIN_FINGERPRINT_SIZE`.
    pub fingerprint_size: usize,
    /// A file that was not written for this long is not opened.
    pub exclude_older_than: Option<Duration>,
    pub ordering: Option<OrderingCriteria>,
    pub compression: FileCompression,
    pub links: LinkPolicy,
    pub on_truncate: OnTruncate,
    /// Files outside of containers' directories are deleted when all outputs have committed all of them.
    pub delete_after_read: bool,
    pub limits: FileLimits,
    /// How often positions are stored at most while they change. A change after a quiet time is stored at once.
    pub checkpoint_interval: Duration,
}

impl LogFilesSettings {
    /// The defaults, for files that match one of the patterns.
    pub fn new(include: Vec<GlobPattern>) -> Self {
        Self {
            include,
            exclude: Vec::new(),
            start_at: StartAt::End,
            poll_interval: Duration::from_millis(200),
            rescan_interval: Duration::from_secs(30),
            fingerprint_size: DEFAULT_FINGERPRINT_SIZE,
            exclude_older_than: None,
            ordering: None,
            compression: FileCompression::None,
            links: LinkPolicy::Refuse,
            on_truncate: OnTruncate::Ignore,
            delete_after_read: false,
            limits: FileLimits::default(),
            checkpoint_interval: Duration::from_secs(1),
        }
    }
}

/// Where a file begins that was there before the first start, when no position of it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartAt {
    Beginning,
    End,
}

/// Which files are decompressed. The rotated files of a kubelet are, whatever this says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileCompression {
    /// None; a compressed file is read as it is.
    None,
    /// All of them.
    Gzip,
    /// Those that begin as gzip does, whatever their names.
    Auto,
}

/// Which symbolic links are followed below the directories of the patterns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkPolicy {
    /// None.
    Refuse,
    /// Those that lead below one of these directories.
    Into(Vec<PathBuf>),
    /// All. Whoever can create a link in a directory of logs can then have any file read.
    Follow,
}

/// What happens to a file that was cut while its fingerprint remained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnTruncate {
    /// Nothing is read until the file is longer than it was. What then stands there is read from the start, unless
    /// the bytes before the old end are still the same.
    Ignore,
    /// It is read from its start.
    ReadWholeFile,
    /// What is appended from now on is read.
    ReadNew,
}

/// Bounds. What exceeds one is reported as a problem.
#[derive(Debug, Clone)]
pub struct FileLimits {
    /// Streams that are followed at a time.
    pub streams: usize,
    /// Files that are open at a time. Beyond it, files are closed that have been read to their end.
    pub open_files: usize,
    /// Entries that are read of one directory.
    pub directory_entries: usize,
    /// Directories that are visited.
    pub directories: usize,
    /// Bytes of a path.
    pub path_bytes: usize,
    /// Disk space of files that were removed while their bytes had not been read by all outputs.
    pub deleted: DeletedFileLimits,
}

impl Default for FileLimits {
    fn default() -> Self {
        Self {
            // A node has at most some hundred pods, a few containers each.
            streams: 16_384,
            open_files: 8_192,
            directory_entries: 65_536,
            directories: 65_536,
            path_bytes: 4_096,
            deleted: DeletedFileLimits::default(),
        }
    }
}

/// How much disk space deleted files may hold because they are still being read. The smaller of both counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeletedFileLimits {
    pub bytes: u64,
    /// Hundredths of the file system.
    pub percent: u8,
    /// All deleted files are released while less than this is free, in hundredths of the file system.
    pub min_free_percent: u8,
}

impl Default for DeletedFileLimits {
    fn default() -> Self {
        Self { bytes: 1 << 30, percent: 5, min_free_percent: 15 }
    }
}
