//! `probabilistic_sampler`.

use kubewake_otlp::Signal;

use crate::{
    component::{ComponentSettings, PipelinePlace, PlaceProblem, ProcessorSettings},
    decode::{Cursor, DecodeReport, sampler},
    model::{ProbabilisticSampler, SamplerMode},
    processor::ProcessorConfig,
};

impl ComponentSettings for ProbabilisticSampler {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        sampler::probabilistic(at, report)
    }
}

impl ProcessorSettings for ProbabilisticSampler {
    fn signals(&self) -> &'static [Signal] {
        &[Signal::Traces, Signal::Logs]
    }

    /// Warns about a sampler by hash behind another sampler: kept items carry a probability, which a hash cannot
    /// continue from.
    fn check_place(&self, place: &PipelinePlace<'_>) -> Vec<PlaceProblem> {
        let is_sampler = |processor: &&ProcessorConfig| matches!(processor, ProcessorConfig::ProbabilisticSampler(_));
        let sampled_before = place.processors_before.iter().any(is_sampler);
        if !sampled_before || self.mode != SamplerMode::HashSeed || !self.fail_closed {
            return Vec::new();
        }
        vec![PlaceProblem::warning(
            format!(
                "the processor `{}` drops all items: `mode: hash_seed` does not support items that another sampler \
                 has sampled",
                place.id
            ),
            "use `mode: proportional` or `mode: equalizing`, which continue from the earlier probability",
        )]
    }
}
