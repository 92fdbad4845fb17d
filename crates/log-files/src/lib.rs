//! The log files of a node: found, followed across rotations, and read from positions that survive a restart.
//!
//! It knows files and bytes, and neither lines nor pipelines. docs/decisions/0021-log-files-are-the-buffer.md states
//! its place.

mod events;
mod file_order;
mod glob;
mod position;
mod settings;

pub use events::{FileProblem, LogEvent, LossCause, LostBytes, LostRange, ProblemKind};
pub use file_order::{OrderingCriteria, SortKind, SortRule};
pub use glob::{GlobError, GlobPattern};
pub use position::{LogPosition, MAX_OUTPUTS, OutputId, OutputSet, ReaderId, StreamId};
pub use settings::{
    DEFAULT_FINGERPRINT_SIZE, DeletedFileLimits, FileCompression, FileLimits, LinkPolicy, LogFilesSettings,
    MIN_FINGERPRINT_SIZE, OnTruncate, StartAt,
};
