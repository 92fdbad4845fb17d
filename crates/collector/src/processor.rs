//! Processors.

#[cfg(feature = "processor-attributes")]
pub mod attributes;
#[cfg(feature = "processor-batch")]
pub mod batch;
#[cfg(feature = "processor-filter")]
pub mod filter;
#[cfg(any(feature = "processor-attributes", feature = "processor-redaction"))]
mod hex;
#[cfg(feature = "processor-k8sattributes")]
pub mod k8s_attributes;
#[cfg(any(feature = "processor-attributes", feature = "processor-filter"))]
mod matching;
#[cfg(feature = "processor-probabilistic-sampler")]
pub mod probabilistic_sampler;
#[cfg(feature = "processor-redaction")]
pub mod redaction;
#[cfg(feature = "processor-tail-sampling")]
pub mod tail_sampling;
pub mod transform;
