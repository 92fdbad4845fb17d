//! The operators of the Collector's `file_log` and their expressions, without I/O.
//!
//! docs/decisions/0021-log-files-are-the-buffer.md states its place.
