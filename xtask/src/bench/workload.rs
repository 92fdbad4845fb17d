//! The workloads in which builds are compared and functions are listed.

use super::{
    config::{DocumentParts, forward_parts},
    sampling,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BenchWorkload {
    Plain,
    Gzip,
    Sampling,
}

impl BenchWorkload {
    /// All workloads of a collector. A relay has no sampler.
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

    /// Whether all acknowledged spans must arrive.
    pub(crate) fn keeps_all(self) -> bool {
        !matches!(self, Self::Sampling)
    }

    /// The configuration of a collector. Its last processor is `batch`, and its last exporter `otlp`.
    pub(crate) fn parts(self, backend: &str) -> DocumentParts {
        match self {
            Self::Plain => forward_parts(backend, false),
            Self::Gzip => forward_parts(backend, true),
            Self::Sampling => sampling::sampling_parts(backend, "hash_seed"),
        }
    }
}
