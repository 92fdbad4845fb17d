//! What `LogFiles` tells its owner: streams that begin, move and end, losses, and problems of single files.

use std::{
    fmt,
    path::{Path, PathBuf},
    time::SystemTime,
};

use crate::position::{LogPosition, OutputSet, StreamId};

/// Something that the owner has to know. Events of one stream are in order.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum LogEvent {
    /// A stream was found. The owner opens readers for it (`LogFiles::reader_groups`); until then nothing is read.
    Opened(StreamId),
    /// The live file of the stream has another path (`LogStream::path`).
    Moved(StreamId),
    /// The stream was forgotten and its readers were closed: its files are gone, and all outputs have committed its
    /// end.
    Ended(StreamId),
    /// Bytes that an output has not read and can no longer get.
    Lost(LostRange),
    /// A file or the state directory needs attention; reading of everything else goes on.
    Problem(FileProblem),
}

/// How many bytes were lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LostBytes {
    /// Exactly as many: the file was seen to its end.
    Exact(u64),
    /// At least as many; more may have been written and removed unseen.
    AtLeast(u64),
}

impl LostBytes {
    /// The bytes that are known to be lost.
    pub fn known(self) -> u64 {
        match self {
            Self::Exact(bytes) | Self::AtLeast(bytes) => bytes,
        }
    }
}

/// Why bytes were lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LossCause {
    /// The file was removed before it was read, while it was not open.
    Removed,
    /// The file was removed, and closed to free its disk space.
    DiskSpace,
    /// The file was cut or overwritten before it was read.
    Truncated,
    /// The file, or its compressed copy, cannot be read.
    Unreadable,
}

impl LossCause {
    /// As a label of a metric.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Removed => "removed",
            Self::DiskSpace => "disk_space",
            Self::Truncated => "truncated",
            Self::Unreadable => "unreadable",
        }
    }
}

/// Bytes of a stream that some outputs will never get. No byte of a generation is reported twice to one output.
#[derive(Debug, Clone)]
pub struct LostRange {
    pub stream: StreamId,
    /// The path of the live file.
    pub path: PathBuf,
    pub outputs: OutputSet,
    /// Where the bytes would have begun.
    pub position: LogPosition,
    pub bytes: LostBytes,
    /// Not before this time, if it is known: when the last byte that was read had been written, or the log began.
    pub after: Option<SystemTime>,
    /// Not after this time: when the file was last written or seen.
    pub before: Option<SystemTime>,
    pub cause: LossCause,
}

/// Which kind of problem it is, for counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProblemKind {
    /// The file or directory cannot be opened or read; it is tried again.
    Unreadable,
    /// A symbolic link that leads to where it must not.
    RefusedLink,
    /// A bound (streams, directory entries, path length) was reached; what is beyond it is not read for now.
    Limit,
    /// The directory cannot be watched and is polled instead.
    NotWatched,
    /// The stored positions could not be read; they were set aside, and reading starts as `start_at` says.
    BadCheckpoint,
    /// A file that was read cannot be deleted, as it should.
    NotDeleted,
    /// The positions cannot be stored; it is tried again, and a restart would read from older ones.
    CheckpointNotSaved,
}

impl ProblemKind {
    /// As a label of a metric.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unreadable => "unreadable",
            Self::RefusedLink => "refused_link",
            Self::Limit => "limit",
            Self::NotWatched => "not_watched",
            Self::BadCheckpoint => "bad_checkpoint",
            Self::NotDeleted => "not_deleted",
            Self::CheckpointNotSaved => "checkpoint_not_saved",
        }
    }
}

/// A problem of one path. It is reported when it begins, and counted each time (`LogFiles::statistics`).
#[derive(Debug, Clone)]
pub struct FileProblem {
    pub kind: ProblemKind,
    pub path: PathBuf,
    /// What failed and why, without the path.
    pub message: String,
}

impl FileProblem {
    pub(crate) fn new(kind: ProblemKind, path: &Path, message: impl Into<String>) -> Self {
        Self { kind, path: path.to_path_buf(), message: message.into() }
    }
}

impl fmt::Display for FileProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.message)
    }
}
