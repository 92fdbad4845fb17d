//! Processors.

#[cfg(feature = "processor-attributes")]
pub mod attributes;
#[cfg(feature = "processor-batch")]
pub mod batch;
#[cfg(feature = "processor-filter")]
pub mod filter;
pub mod map;
#[cfg(any(feature = "processor-attributes", feature = "processor-filter"))]
mod matching;
