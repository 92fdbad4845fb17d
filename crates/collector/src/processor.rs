//! Processors.

#[cfg(feature = "processor-batch")]
pub mod batch;
#[cfg(feature = "processor-tail-sampling")]
pub mod tail_sampling;
