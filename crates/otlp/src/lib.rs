//! OTLP on the wire: requests as the bytes that arrived.
//!
//! A payload is never decoded only to be passed on. [`scan`] checks it once and counts what is in it. [`join`], [`split`],
//! [`retain`], [`select`], [`select_traces`], [`group_by_trace`], [`partition`] and [`rewrite`] make other requests of it
//! by copying raw slices, and [`view`] reads single fields in place. Unknown fields survive all of it. [`probability`] and [`TraceState`]
//! are the arithmetic and the notation of consistent sampling.
//!
//! What an operation allocates depends on what a stranger sent. Those whose name ends in `within` ask an [`Allowance`] before they
//! allocate; the others are for requests of trusted origin, and for tests.
//!
//! No function touches a network, a clock or a disk, and none panics, whatever the bytes. `scan` is the one that judges
//! them; all the others assume that it accepted them, and say what they do if it did not.

mod edit;
mod group;
mod join;
pub mod json;
mod level;
mod memory;
mod numbers;
pub mod opencensus;
mod partition;
mod plan;
pub mod probability;
mod retain;
mod rewrite;
mod scan;
mod schema;
mod signal;
mod split;
mod trace_state;
pub mod view;
pub mod wire;
mod zero_ids;

pub use group::{TraceGroup, TraceGroups, group_by_trace};
pub use join::join;
pub use memory::{Allowance, NoMemory, Unlimited, work_bytes};
pub use partition::{Grain, Share, Shares, partition, partition_within};
pub use retain::{
    Fate, Retained, TraceId, retain, retain_within, select, select_traces, select_traces_within, select_within,
};
pub use rewrite::{AttributeList, Change, Edit, Editor, Edits, Rules, Value, Verdict, When, rewrite, rewrite_within};
pub use scan::{Index, IndexedRecord, ScanError, ScanErrorKind, Summary, Traits, Visitor, index, scan, scan_with};
pub use signal::Signal;
pub use split::{Limit, Piece, Split, split, split_within};
pub use trace_state::{TraceState, TraceStateError};
pub use zero_ids::{clear_zero_ids, clear_zero_ids_within};
