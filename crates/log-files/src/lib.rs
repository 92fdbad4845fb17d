//! The log files of a node: found, followed across rotations, and read from positions that survive a restart.
//!
//! It knows files and bytes, and neither lines nor pipelines. docs/decisions/0021-log-files-are-the-buffer.md states
//! its place.
