//! The key of a pipeline: its kind and its name.

use std::fmt;

use kubewake_api::{Signal, TelemetryPipeline};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PipelineKey {
    /// The signal, which determines the kind.
    pub signal: Signal,
    pub name: String,
}

/// The id in documents: `traces/backend`.
impl fmt::Display for PipelineKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.signal, self.name)
    }
}

impl From<&TelemetryPipeline> for PipelineKey {
    fn from(pipeline: &TelemetryPipeline) -> Self {
        Self { signal: pipeline.signal, name: pipeline.name.clone() }
    }
}
