//! The operators of the Collector's `file_log` and their expressions, without I/O.
//!
//! An [`OperatorChain`] is made from the operators of the settings, and takes records as [`LogEntry`]: a tree that
//! operators change in place. What leaves the chain becomes OTLP in [`encode_request`].
//!
//! ```
//! use kubewake_config::file_log::OperatorGraph;
//! use kubewake_log_operators::{LogEntry, LogValue, OperatorChain};
//!
//! let mut chain = OperatorChain::new(&OperatorGraph::default());
//! let mut out = Vec::new();
//! chain.process(LogEntry::new(LogValue::from("sold")), &mut out);
//! assert_eq!(out[0].body, LogValue::from("sold"));
//! ```
//!
//! *Guarantees*: a record leaves the chain at once, is dropped by an operator, or is held by a `recombine` or
//! `container`, within the bounds of [`OperatorChain`]. Records that are not held keep their order. Nothing in a record
//! makes an operator panic, or take time or memory beyond a multiple of the record. *Assumes*: a chain gets the records
//! of one log in their order. *Does not*: read files or clocks.
//!
//! docs/decisions/0021-log-files-are-the-buffer.md states its place.

mod chain;
mod container_only;
mod entry;
mod evaluate;
mod field;
mod header;
mod json;
mod operators;
mod otlp;
mod time;
mod value;

pub use chain::{OperatorChain, OperatorFailure};
pub use container_only::ContainerOnly;
pub use entry::{EntryTemplate, LogEntry};
pub use header::HeaderReader;
pub use operators::{RecordError, parse_container_path};
pub use otlp::encode_request;
pub use value::{LogMap, LogValue};
