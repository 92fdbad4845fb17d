//! Processors: change, drop, group or hold data between receivers and exporters.
//!
//! To add one, add its folder, its `mod` line and its row here; docs/adding-a-component.md is the recipe.

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
#[cfg(feature = "processor-memory-limiter")]
pub mod memory_limiter;
#[cfg(feature = "processor-probabilistic-sampler")]
pub mod probabilistic_sampler;
#[cfg(feature = "processor-redaction")]
pub mod redaction;
#[cfg(feature = "processor-attributes")]
pub mod resource;
#[cfg(feature = "processor-tail-sampling")]
pub mod tail_sampling;
pub mod transform;

use kubewake_config::model::ProcessorConfig;

use crate::components::{PreparedProcessor, ProcessorContext, component_table};

component_table! {
    fn prepare(ProcessorConfig, ProcessorContext<'_>) -> PreparedProcessor;
    "processor-batch", Batch => batch;
    "processor-memory-limiter", MemoryLimiter => memory_limiter;
    "processor-filter", Filter => filter;
    "processor-attributes", Attributes => attributes;
    "processor-attributes", Resource => resource;
    "processor-redaction", Redaction => redaction;
    "processor-probabilistic-sampler", ProbabilisticSampler => probabilistic_sampler;
    "processor-tail-sampling", TailSampling => tail_sampling;
    "processor-k8sattributes", KubernetesAttributes => k8s_attributes;
}
