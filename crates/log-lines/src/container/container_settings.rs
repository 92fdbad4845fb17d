//! How the log of a container is read.

use crate::limits::{BlankTrimming, OversizeBehavior};

/// The formats that lines may have. A line of another one is handed on as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContainerFormat {
    /// Each line says by its first byte which format it is.
    #[default]
    Auto,
    /// containerd and CRI-O, whose formats are the same.
    Cri,
    /// Docker's driver `json-file`.
    Docker,
}

/// What becomes of the lines of Docker, which end in the line feed that the container wrote, except for parts of lines
/// of more than 16 KiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DockerBodies {
    /// Parts are joined, and the line feed is removed, as in other formats.
    #[default]
    Joined,
    /// Each line is a record and keeps its line feed, as the Collector does.
    AsWritten,
}

/// How the log of a container is read.
#[derive(Clone, Copy, Debug)]
pub struct ContainerSettings {
    pub format: ContainerFormat,
    pub docker: DockerBodies,
    /// Bytes of a body from which on no further part is joined to it.
    pub max_record_bytes: usize,
    pub oversize: OversizeBehavior,
    /// Blanks that are removed from the ends of a body. Parts are joined before.
    pub trimming: BlankTrimming,
    /// Whether the lines of a stack trace become one record. A line that may be the head of a trace is then held until
    /// the next line of its stream, or until [`flush_due`](crate::ContainerLogDecoder::flush_due).
    pub joins_stack_traces: bool,
}

impl Default for ContainerSettings {
    fn default() -> Self {
        Self {
            format: ContainerFormat::Auto,
            docker: DockerBodies::Joined,
            max_record_bytes: 1024 * 1024,
            oversize: OversizeBehavior::Split,
            trimming: BlankTrimming::default(),
            joins_stack_traces: false,
        }
    }
}
