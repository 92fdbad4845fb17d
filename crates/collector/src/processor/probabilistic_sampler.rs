//! `probabilistic_sampler`: keeps a percentage of spans and log records, by whole traces.
//!
//! Each item is decided by its own bytes alone: its trace id, or its record of earlier sampling. So a trace
//! gets the same decision on every replica and in every tier, without any state. Kept items record the
//! probability (`ot=th` in a span's trace state, `sampling.threshold` on a log record), so that counts made
//! from samples can be true. Where a scan has shown that all spans of a request begin with their trace ids and
//! none records earlier sampling, only the trace ids of dropped spans are read; else their fields are walked
//! over. Kept data is copied once, as slices.
//!
//! *Guaranteed*: decisions and annotations are those of the Collector's processor of that name. *Differs* from
//! it where its documentation and its code disagree: a log record's priority of 0 drops it, and one of more
//! than 100 keeps it, as documented. *Assumed*: requests were scanned.

mod decision_counts;
mod hash;
mod logs;
mod sampler;
mod spans;

#[cfg(test)]
mod tests;

use kubewake_config::{ComponentId, model::ProbabilisticSampler as Settings};
use kubewake_otlp::{Allowance, EditList, NoMemory, Signal, select_within, view::RecordRef};

use self::{
    decision_counts::{DecisionTally, PolicyCounters, SamplerWarnings},
    logs::LogAttributeKeys,
    sampler::ProbabilitySampler,
};
use super::transform::{RequestTransform, TransformedRequest};
use crate::{
    components::{BuildError, PreparedProcessor, ProcessorContext},
    core::{Part, SamplerStats},
};

pub(crate) fn prepare(settings: &Settings, _: &ProcessorContext<'_>) -> Result<PreparedProcessor, BuildError> {
    let settings = settings.clone();
    Ok(PreparedProcessor::transform(move |id, stats| ProbabilisticSampler::new(id, &settings, &stats.sampled)))
}

/// The processor, shared by the pipelines of one signal.
pub struct ProbabilisticSampler {
    sampler: ProbabilitySampler,
    keys: LogAttributeKeys,
    counts: PolicyCounters,
    warnings: SamplerWarnings,
}

impl ProbabilisticSampler {
    pub fn new(id: &ComponentId, settings: &Settings, stats: &SamplerStats) -> Self {
        Self {
            sampler: ProbabilitySampler::new(settings),
            keys: LogAttributeKeys::new(settings),
            counts: PolicyCounters::new(stats, settings.from_attribute.as_deref()),
            warnings: SamplerWarnings::for_processor(id),
        }
    }
}

impl RequestTransform for ProbabilisticSampler {
    fn transform(
        &self,
        signal: Signal,
        part: &Part,
        memory: &mut dyn Allowance,
    ) -> Result<TransformedRequest, NoMemory> {
        let (retained, tally) = match signal {
            Signal::Traces => spans::sample(&self.sampler, part, memory)?,
            Signal::Logs => {
                let mut tally = DecisionTally::default();
                let keep = |record: &RecordRef<'_>, edits: &mut EditList| {
                    let decide = |log| tally.note(logs::decide(&self.sampler, &self.keys, log, edits), 1);
                    record.log().is_none_or(decide)
                };
                (select_within(signal, &part.bytes, keep, memory)?, tally)
            }
            // Validation refuses a document with this processor in a metrics pipeline.
            Signal::Metrics => return Ok(TransformedRequest::unchanged(part)),
        };
        self.counts.add(&tally);
        self.warnings.log_once(&tally, signal, self.sampler.fails_closed());
        Ok(retained.into())
    }
}
