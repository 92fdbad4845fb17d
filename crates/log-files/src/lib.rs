//! The log files of a node: found, followed across rotations, and read from positions that survive a restart.
//!
//! It knows files and bytes, and neither lines nor pipelines. docs/decisions/0021-log-files-are-the-buffer.md states
//! its place: the files are the buffer, and each output has a position of its own in each log.
//!
//! # Terms
//!
//! A [`LogStream`] is one log with all of its generations. The log of one run of a container
//! (`NAMESPACE_POD_UID/CONTAINER/N.log`) has a generation for each rotation; those that the kubelet compressed are
//! among them, whether or not the patterns match their names. Any other file is a stream by itself, under whatever
//! name, and has a new generation after it was truncated. A [`LogPosition`] is a generation and an offset in it, in
//! uncompressed bytes; it only grows.
//!
//! # Use
//!
//! All I/O blocks, and the crate has no async runtime: one thread of its own runs a [`LogFiles`]. What happens
//! elsewhere reaches it through a [`LogFilesHandle`], which commits positions and ends the wait of `poll`. The
//! documentation of [`LogFiles`] has an example.
//!
//! An output whose backend hangs leaves the shared reader (`set_reader_outputs`) and later gets one of its own at its
//! committed position (`open_reader`). A reader whose requests in flight are as many as they may be is paused.
//!
//! At `ReadEnd::EndOfGeneration` everything has to be consumed, or the reader never goes on: a line that is not
//! finished there goes on in the next generation, and the owner keeps its part.
//!
//! # Guarantees
//!
//! - Each output gets every byte of a matching file in the order in which it was written, as long as any file that was
//!   found has it: under another name, compressed, in a copy made by `copytruncate`, or deleted but open. Files that
//!   not all outputs have committed stay open.
//! - What an output can get no more is reported to it once ([`LostRange`]): exactly, if the file had been seen to its
//!   end, else as a lower bound with a time range.
//! - A byte is read twice only when the process ended without `shut_down`, from the positions stored last, or after a
//!   truncation whose policy says so.
//! - Readers get turns in proportion to bytes, however many wait.
//! - Idle files cost nothing: directories are watched, and listed again from time to time in case that a change was
//!   not announced. Listing takes at most half a percent of the time.
//! - Numbers of streams, open files, directories, entries and bytes of deleted files are bounded ([`FileLimits`]).
//! - No symbolic link is followed below the directory of a pattern unless [`LinkPolicy`] allows it.
//!
//! # Assumes
//!
//! - A file is appended to, or replaced as a whole. Changes in the middle of what was read are not noticed.
//! - Two logs differ in their first line, or in the 256 bytes before what was read.
//!
//! # Does not
//!
//! - Know lines. The end of a file is no end of a line.
//! - See writes of other machines to a shared file system before everything is listed again.

mod checkpoint;
mod commit_table;
mod directory_tree;
mod directory_watch;
mod disk_space;
mod events;
mod file_content;
mod file_opener;
mod file_order;
mod fingerprint;
mod generation;
mod glob;
mod kubelet_layout;
mod log_files;
mod log_stream;
mod open_file;
mod position;
mod position_store;
mod reader;
mod settings;

pub use commit_table::LogFilesHandle;
pub use events::{FileProblem, LogEvent, LossCause, LostBytes, LostRange, ProblemKind};
pub use file_order::{OrderingCriteria, SortKind, SortRule};
pub use glob::{GlobError, GlobPattern};
pub use log_files::{LogFiles, LogFilesStatistics, OpenError, ReadEnd, ReadOutcome};
pub use log_stream::{LogLayout, LogStream};
pub use open_file::FileDescription;
pub use position::{LogPosition, MAX_OUTPUTS, OutputId, OutputSet, ReaderId, StreamId};
pub use position_store::{DirectoryStore, PositionStore};
pub use reader::ReadTurn;
pub use settings::{
    DEFAULT_FINGERPRINT_SIZE, DeletedFileLimits, FileCompression, FileLimits, LinkPolicy, LogFilesSettings,
    MIN_FINGERPRINT_SIZE, OnTruncate, StartAt,
};
