//! The log files of a node: found, followed across rotations, and read from positions that survive a restart.
//!
//! It knows files and bytes, and neither lines nor pipelines. docs/decisions/0021-log-files-are-the-buffer.md states
//! its place: the files are the buffer, and each output has a position of its own in each log.
//!
//! # Terms
//!
//! A [`LogStream`] is one log with all of its generations. The log of one run of a container
//! (`NAMESPACE_POD_UID/CONTAINER/N.log`) has a generation for each rotation; those that the kubelet compressed are among
//! them, whether or not the patterns match their names. Any other file is a stream by itself, under whatever name, and
//! has a new generation after it was truncated. A [`LogPosition`] is a generation and an offset in it, in uncompressed
//! bytes; it only grows.
//!
//! # Use
//!
//! All I/O blocks, and the crate has no async runtime: one thread of its own runs a [`LogFiles`]. What happens
//! elsewhere reaches it through a [`LogFilesHandle`], which commits positions and ends the wait of `poll`.
//!
//! ```no_run
//! use std::{collections::HashMap, time::Duration};
//!
//! use kubewake_log_files::{GlobPattern, LogEvent, LogFiles, LogFilesSettings, ReadEnd, ReaderId};
//!
//! # fn send(_: &[u8]) {}
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let include = vec![GlobPattern::parse("/var/log/pods/*/*/*.log")?];
//! let mut files = LogFiles::open(LogFilesSettings::new(include), vec!["loki".to_owned()], None)?;
//! let handle = files.handle();
//! let mut parts: HashMap<ReaderId, Vec<u8>> = HashMap::new();
//! let mut buffer = vec![0; 256 * 1024];
//! loop {
//!     for event in files.poll(Duration::from_secs(1)) {
//!         match event {
//!             // Outputs at the same position share a reader.
//!             LogEvent::Opened(stream) => {
//!                 for (outputs, position) in files.reader_groups(stream) {
//!                     files.open_reader(stream, outputs, position);
//!                 }
//!             }
//!             other => println!("{other:?}"),
//!         }
//!     }
//!     // A few turns, and then a look at what has changed.
//!     for _ in 0..64 {
//!         let Some(turn) = files.next_turn() else { break };
//!         let read = files.read(turn.reader, &mut buffer);
//!         let bytes = &buffer[..read.bytes];
//!         // What follows the last newline is read again, unless the file ends with it.
//!         let is_end = matches!(read.end, ReadEnd::EndOfGeneration | ReadEnd::EndOfStream);
//!         let lines = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
//!         let consumed = if is_end { bytes.len() } else { lines };
//!         send(&bytes[..consumed]);
//!         files.advance(turn.reader, &bytes[..consumed]);
//!         // When the backend has acknowledged; here, at once.
//!         let (Some(position), Some(outputs)) =
//!             (files.reader_position(turn.reader), files.reader_outputs(turn.reader))
//!         else {
//!             continue;
//!         };
//!         outputs.iter().for_each(|output| handle.commit(output, turn.stream, position));
//!     }
//! }
//! # }
//! ```
//!
//! An output whose backend hangs leaves the shared reader (`set_reader_outputs`) and later gets one of its own at its
//! committed position (`open_reader`). A reader whose requests in flight are as many as they may be is paused. In a file
//! that is not complete, a reader that consumes nothing gets its next turn when the file has grown.
//!
//! At `ReadEnd::EndOfGeneration` everything has to be consumed, or the reader never goes on: a line that is not finished
//! there goes on in the next generation, and the owner keeps its part.
//!
//! # Guarantees
//!
//! - Every byte that was written to a matching file is returned to every output in the order in which it was written,
//!   as long as the bytes existed in any file that was found: under another name, compressed, in a copy made by
//!   `copytruncate`, or in a deleted file that is open. Files that are not committed by all outputs stay open.
//! - What no output can get any more is reported ([`LostRange`]), to each output once: exactly, if the file had been
//!   seen to its end, else as a lower bound with a time range.
//! - A byte is read twice only after the process ended without `shut_down`, from the positions stored last, or after a
//!   file was truncated whose policy says so.
//! - Readers get turns in proportion to bytes, whatever the number of bytes that wait.
//! - Idle files cost nothing: directories are watched, and listed again every 30 seconds in case that a change was not
//!   announced. Listing takes at most half a percent of the time.
//! - Numbers of streams, open files, directories, entries and bytes of deleted files are bounded ([`FileLimits`]).
//! - No symbolic link is followed below the directory of a pattern unless [`LinkPolicy`] allows it.
//!
//! # Assumes
//!
//! - A file is appended to, or replaced by other content as a whole. A change in the middle of what was read is not
//!   noticed, except in the 256 bytes before a position.
//! - Two logs differ in their first line, or in the 256 bytes before what was read, and a kubelet alone writes to the
//!   directories that are named as a kubelet names them.
//!
//! # Does not
//!
//! - Know lines. The end of a file is no end of a line.
//! - Run `fsync` more often than positions are stored (`checkpoint_interval`).
//! - See writes of other machines to a shared file system before the next full listing.

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
pub use position::{LogPosition, MAX_OUTPUTS, OutputId, OutputSet, ReaderId, StreamId};
pub use position_store::{DirectoryStore, PositionStore};
pub use reader::ReadTurn;
pub use settings::{
    DEFAULT_FINGERPRINT_SIZE, DeletedFileLimits, FileCompression, FileLimits, LinkPolicy, LogFilesSettings,
    MIN_FINGERPRINT_SIZE, OnTruncate, StartAt,
};
