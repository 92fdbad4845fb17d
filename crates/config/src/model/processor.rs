//! Processors.

use std::time::Duration;

use kubewake_otlp::Signal;

use super::{Attributes, Filter, KubernetesAttributes, ProbabilisticSampler, Redaction, Resource, TailSampling};

/// A configured processor.
#[derive(Clone, Debug, PartialEq)]
pub enum Processor {
    /// `batch`
    Batch(Batch),
    /// `memory_limiter`
    MemoryLimiter(MemoryLimiter),
    /// `filter`
    Filter(Box<Filter>),
    /// `attributes`
    Attributes(Box<Attributes>),
    /// `resource`
    Resource(Resource),
    /// `redaction`
    Redaction(Box<Redaction>),
    /// `k8s_attributes`, also `k8sattributes`
    KubernetesAttributes(Box<KubernetesAttributes>),
    /// `probabilistic_sampler`
    ProbabilisticSampler(ProbabilisticSampler),
    /// `tail_sampling`
    TailSampling(Box<TailSampling>),
}

impl Processor {
    /// What it can work on.
    pub fn signals(&self) -> &'static [Signal] {
        match self {
            Self::ProbabilisticSampler(_) => &[Signal::Traces, Signal::Logs],
            Self::TailSampling(_) => &[Signal::Traces],
            _ => &Signal::ALL,
        }
    }
}

/// `batch`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// `timeout`: a batch leaves this long after its first item; zero: at once.
    pub timeout: Duration,
    /// `send_batch_size`, in items: a batch of this size leaves; zero: only by time.
    pub send_batch_size: u32,
    /// `send_batch_max_size`, in items: a larger one is cut; zero: never.
    pub send_batch_max_size: u32,
    /// `metadata_keys`: one batch for each combination of these headers' values.
    pub metadata_keys: Vec<String>,
    /// `metadata_cardinality_limit`: how many combinations there may be at once.
    pub metadata_cardinality_limit: u32,
}

impl Default for Batch {
    fn default() -> Self {
        Self {
            timeout: Duration::from_millis(200),
            send_batch_size: 8192,
            send_batch_max_size: 0,
            metadata_keys: Vec::new(),
            metadata_cardinality_limit: 1000,
        }
    }
}

/// A limit in bytes, or as a share of the memory that the process may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryLimit {
    /// `limit_mib` and `spike_limit_mib`, in bytes here.
    Bytes {
        /// The hard limit.
        limit: u64,
        /// The part of it that is kept for what is already under way.
        spike: u64,
    },
    /// `limit_percentage` and `spike_limit_percentage`.
    Percent {
        /// The hard limit.
        limit: u32,
        /// The part of it that is kept for what is already under way.
        spike: u32,
    },
}

/// `memory_limiter`. There is no polling here, so `check_interval` is read and checked, and has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimiter {
    /// What may be held.
    pub limit: MemoryLimit,
}
