//! OTLP on the wire: requests as the bytes that arrived.
//!
//! A payload is never decoded only to be passed on. [`scan`] validates it once and counts its content.
//! [`join`], [`split`], [`retain`], [`select`], [`select_traces`], [`group_by_trace`], [`partition`] and
//! [`rewrite`] produce new requests by copying raw slices, and [`view`] reads single fields in place. All of
//! them preserve unknown fields. [`probability`] and [`TraceState`] implement the arithmetic and the notation
//! of consistent sampling.
//!
//! The memory that an operation allocates depends on a stranger's input. Operations whose name ends in `within`
//! reserve it from an [`Allowance`] before they allocate; the others are for requests of trusted origin, and
//! for tests.
//!
//! No function touches a network, a clock or a disk, and none panics, whatever the bytes. `scan` validates
//! them; all other functions assume valid bytes, and document their behaviour for others.

mod edit_visitor;
mod field_numbers;
mod group;
mod join;
pub mod json;
mod memory;
mod nesting;
pub mod opencensus;
mod partition;
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
mod write_plan;
mod zero_ids;

pub use group::{TraceGroup, TraceGroups, group_by_trace};
pub use join::join;
pub use memory::{Allowance, NoMemory, UnlimitedAllowance, work_bytes};
pub use partition::{PartitionGrain, PartitionShare, PartitionShares, partition, partition_within};
pub use retain::{
    RetainedRecords, SpanDisposition, TraceId, retain, retain_within, select, select_traces, select_traces_within,
    select_within,
};
pub use rewrite::{
    AttributeChange, AttributeDisposition, AttributeList, EditList, MessageEdit, RecordEditor, SetCondition,
    UniformEditor, Value, rewrite, rewrite_within,
};
pub use scan::{
    IndexedRecord, RequestIndex, ScanError, ScanErrorKind, ScanSummary, ScanVisitor, SpanTraits, index, scan, scan_with,
};
pub use signal::Signal;
pub use split::{SplitLimit, SplitPiece, SplitPieces, split, split_within};
pub use trace_state::{TraceState, TraceStateError};
pub use zero_ids::{clear_zero_ids, clear_zero_ids_within};
