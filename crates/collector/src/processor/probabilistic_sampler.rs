//! `probabilistic_sampler`: keeps a percentage of spans and log records, whole traces of them.
//!
//! Every item is decided by itself and by nothing but its own bytes: the trace id, or what the item says about earlier
//! sampling. So the same trace gets the same answer on every replica and in every tier, without any state. What is kept
//! says at which probability that was (`ot=th` in a span's trace state, `sampling.threshold` on a log record), so that
//! counts made from samples can be true. Where all spans of a request begin with their trace ids and none says anything of earlier
//! sampling, which a scan has seen, no more than the trace id is read of those that are dropped; else their fields are walked over.
//! What is kept is copied once, as slices.
//!
//! *Guarantees.* The decisions, and what is written on what is kept, are those of the Collector's processor of that name.
//! *Differs* from it where its documentation and its code disagree: a log record's priority of 0 drops it, and one
//! of more than 100 keeps it, as documented.
//! *Assumes* that requests were scanned.

mod count;
mod decide;
mod hash;
mod logs;
mod spans;

#[cfg(test)]
mod tests;

use kubewake_config::{ComponentId, model::ProbabilisticSampler as Settings};
use kubewake_otlp::{Allowance, Edits, NoMemory, Signal, select_within, view::RecordRef};

use self::{
    count::{Counts, Tally, Warnings},
    decide::Sampler,
    logs::LogKeys,
};
use super::map::{Mapped, Mapper};
use crate::core::{Part, SamplerStats};

/// The processor, in the pipelines of one signal.
pub struct ProbabilisticSampler {
    sampler: Sampler,
    keys: LogKeys,
    counts: Counts,
    warnings: Warnings,
}

impl ProbabilisticSampler {
    /// A sampler by these settings.
    pub fn new(id: &ComponentId, settings: &Settings, stats: &SamplerStats) -> Self {
        Self {
            sampler: Sampler::new(settings),
            keys: LogKeys::new(settings),
            counts: Counts::new(stats, settings.from_attribute.as_deref()),
            warnings: Warnings::of(id),
        }
    }
}

impl Mapper for ProbabilisticSampler {
    fn map(&self, signal: Signal, part: &Part, memory: &mut dyn Allowance) -> Result<Mapped, NoMemory> {
        let (retained, tally) = match signal {
            Signal::Traces => spans::sample(&self.sampler, part, memory)?,
            Signal::Logs => {
                let mut tally = Tally::default();
                let keep = |record: &RecordRef<'_>, edits: &mut Edits| {
                    let decide = |log| tally.note(logs::decide(&self.sampler, &self.keys, log, edits), 1);
                    record.log().is_none_or(decide)
                };
                (select_within(signal, &part.bytes, keep, memory)?, tally)
            }
            // The document was refused that had it in such a pipeline.
            Signal::Metrics => return Ok(Mapped::unchanged(part)),
        };
        self.counts.add(&tally);
        self.warnings.tell(&tally, signal, self.sampler.fails_closed());
        Ok(retained.into())
    }
}
