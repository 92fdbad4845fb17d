//! Processors.

use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchProcessor {
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

impl Default for BatchProcessor {
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
        limit: u64,
        /// The part of it that is reserved for requests in flight.
        spike: u64,
    },
    Percent {
        limit: u32,
        /// The part of it that is reserved for requests in flight.
        spike: u32,
    },
}

/// `memory_limiter`. Memory is not polled here, so `check_interval` is checked, but has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimiter {
    pub limit: MemoryLimit,
}
