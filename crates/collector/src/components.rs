//! The one place that knows which components there are.

use std::{sync::Arc, time::Duration};

use kubewake_config::model::{Queue, Retry};

use crate::core::{Destination, Exporter};

/// An exporter as it was built from its settings, for one signal.
pub struct BuiltExporter {
    /// Who sends.
    pub exporter: Arc<dyn Exporter>,
    /// Limit of one attempt.
    pub timeout: Option<Duration>,
    /// Whether and how often to try again.
    pub retry: Option<Retry>,
    /// The buffer in front of it.
    pub queue: Option<Queue>,
    /// Where it sends to, for labels.
    pub destination: Destination,
}

/// Why a component could not be built. The message holds no secret.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BuildError(pub String);
