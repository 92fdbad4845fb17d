//! Processors.

#[cfg(feature = "processor-batch")]
pub mod batch;
