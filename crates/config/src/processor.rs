//! Processors, which change, group or limit data.

mod attributes;
mod batch;
mod filter;
mod k8s_attributes;
mod memory_limiter;
mod probabilistic_sampler;
mod redaction;
mod tail_sampling;

use kubewake_otlp::Signal;

pub use self::{
    attributes::{
        AttributeAction, AttributeValueSource, AttributesProcessor, ContextKey, ConvertedType, KeySelector,
        ResourceProcessor,
    },
    batch::BatchProcessor,
    filter::{FilterProcessor, RecordSelection},
    k8s_attributes::{
        AssociationSource, ClusterAuth, ExtractFrom, ExtractKey, Field, FieldExtract, KubernetesAttributesProcessor,
        PodFilter, RelayServiceAccount, VerifySenders,
    },
    memory_limiter::{MemoryLimit, MemoryLimiter},
    probabilistic_sampler::{AttributeSource, ProbabilisticSampler, SamplerMode},
    redaction::{HashFunction, RedactionProcessor, SummaryLevel},
    tail_sampling::{
        CompositePart, PolicyRateLimit, SamplingPolicy, SamplingRule, SamplingStrategy, TailSamplingProcessor,
        TextValues,
    },
};
use crate::{
    component::{PipelinePlace, PlaceProblem, ProcessorSettings, component_table},
    decode::foreign_names,
};

component_table! {
    pub enum ProcessorConfig: ProcessorSettings {
        section: "processors",
        noun: "processor",
        foreign_names: foreign_names::PROCESSORS,
    }
    Batch(BatchProcessor) = ["batch"], feature "processor-batch";
    MemoryLimiter(MemoryLimiter) = ["memory_limiter"], feature "processor-memory-limiter";
    Filter(FilterProcessor) in Box = ["filter"], feature "processor-filter";
    Attributes(AttributesProcessor) in Box = ["attributes"], feature "processor-attributes";
    Resource(ResourceProcessor) = ["resource"], feature "processor-attributes";
    Redaction(RedactionProcessor) in Box = ["redaction"], feature "processor-redaction";
    ProbabilisticSampler(ProbabilisticSampler) = ["probabilistic_sampler"],
        feature "processor-probabilistic-sampler";
    TailSampling(TailSamplingProcessor) in Box = ["tail_sampling"], feature "processor-tail-sampling";
    KubernetesAttributes(KubernetesAttributesProcessor) in Box = ["k8s_attributes", "k8sattributes"],
        feature "processor-k8sattributes";
}

impl ProcessorConfig {
    /// The signals of the pipelines that it may be part of.
    pub fn signals(&self) -> &'static [Signal] {
        self.settings().signals()
    }

    /// Checks its place in a pipeline.
    pub(crate) fn check_place(&self, place: &PipelinePlace<'_>) -> Vec<PlaceProblem> {
        self.settings().check_place(place)
    }

    /// Whether records that leave it still belong to the request that they came with.
    pub(crate) fn keeps_requests(&self) -> bool {
        self.settings().keeps_requests()
    }
}
