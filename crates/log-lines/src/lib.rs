//! Turns the bytes of logs into OTLP, without I/O and without a struct for each line.
//!
//! docs/decisions/0021-log-files-are-the-buffer.md states its place.
