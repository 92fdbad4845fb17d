//! The configurations in which builds are compared and functions are listed.

use super::{
    config::{Parts, forward},
    sampling,
};

/// What a program does while it is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Workload {
    Plain,
    Gzip,
    Sampling,
}

impl Workload {
    /// All of a collector's. A relay has no sampler.
    pub(crate) const ALL: [Self; 3] = [Self::Plain, Self::Gzip, Self::Sampling];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plain => "uncompressed",
            Self::Gzip => "gzip",
            Self::Sampling => "probabilistic sampling",
        }
    }

    pub(crate) fn is_gzip(self) -> bool {
        matches!(self, Self::Gzip)
    }

    /// Whether everything that is acknowledged is to arrive.
    pub(crate) fn keeps_all(self) -> bool {
        !matches!(self, Self::Sampling)
    }

    /// The configuration of a collector. Its last processor is `batch`, and its last exporter `otlp`.
    pub(crate) fn parts(self, backend: &str) -> Parts {
        match self {
            Self::Plain => forward(backend, false),
            Self::Gzip => forward(backend, true),
            Self::Sampling => sampling::parts(backend, "hash_seed"),
        }
    }
}
