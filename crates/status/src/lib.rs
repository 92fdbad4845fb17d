//! The `/status` document of a collector. The collector writes these types; operator, viewer and command line read
//! them. `docs/status.md` describes the fields for users.
//!
//! *Guaranteed*: what one version writes, every other version reads: unknown fields are ignored, fields that an old
//! collector does not send have a neutral default, and words that a reader does not know are `Unknown`. *Not done*:
//! nothing is computed here, and no request is made.

mod collector;
mod pipeline;
#[cfg(test)]
mod tests;

pub use collector::{
    ClusterReport, CollectorPhase, CollectorStatus, EventTime, LogFilesReport, LogOutputReport, RefusalReport,
    RevisionReport, SamplerReport, SamplerState,
};
pub use pipeline::{
    DropReport, EndedPipelineReport, ExporterReport, MemoryReport, PipelineDiagnosis, PipelineReport, SendState,
};

/// The port on which collectors serve health and status, that of the Collector's `health_check` extension.
pub const STATUS_PORT: u16 = 13133;
/// The path of the document.
pub const STATUS_PATH: &str = "/status";
