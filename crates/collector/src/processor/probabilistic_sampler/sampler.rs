//! The sampling decision on one item, of any signal.

use kubewake_config::model::{ProbabilisticSampler as Settings, SamplerMode};
use kubewake_otlp::{
    TraceId,
    probability::{MIN_PROBABILITY, Randomness, Threshold},
};

use super::{decision_counts::SamplerPolicy, hash};

pub(super) struct ProbabilitySampler {
    mode: DecisionMode,
    fail_closed: bool,
    pub(super) precision: u8,
}

#[derive(Clone, Copy)]
pub(super) enum DecisionMode {
    /// Keeps only items with priority.
    Never,
    Hash {
        seed: u32,
        threshold: Threshold,
    },
    Equalizing {
        threshold: Threshold,
    },
    /// Reduces by a factor; `unsampled` is the threshold for items that were not sampled before.
    Proportional {
        ratio: f64,
        unsampled: Threshold,
    },
}

/// The sampling facts of an item.
pub(super) struct SamplingInput {
    /// Decides the item; `None` if the item carries none.
    pub(super) randomness: Option<Randomness>,
    pub(super) policy: SamplerPolicy,
    /// Why the item cannot be decided.
    pub(super) problem: Option<SamplingProblem>,
    /// Its record of earlier sampling; `None` if that must not be changed.
    pub(super) prior: Option<PriorSampling>,
}

/// An item's record of earlier sampling.
#[derive(Clone, Copy, Default)]
pub(super) struct PriorSampling {
    pub(super) threshold: Option<Threshold>,
    /// Randomness to be added to the item.
    pub(super) new_randomness: Option<Randomness>,
}

/// Why an item cannot be decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SamplingProblem {
    /// The record of earlier sampling cannot be read.
    Unreadable,
    /// It has an `rv`, which a hash would contradict.
    RandomnessInUse,
    /// It has a `th`, which a hash would contradict.
    ThresholdInUse,
    /// There is no trace id or attribute.
    NoRandomness,
    /// The randomness is below the threshold: earlier sampling should have dropped it.
    Inconsistent,
}

impl SamplingProblem {
    pub(super) const ALL: [Self; 5] =
        [Self::Unreadable, Self::RandomnessInUse, Self::ThresholdInUse, Self::NoRandomness, Self::Inconsistent];

    /// The message for the operator of the collector.
    pub(super) fn message(self) -> &'static str {
        match self {
            Self::Unreadable => "items carry an invalid trace state or invalid sampling attributes",
            Self::RandomnessInUse => "items carry an explicit randomness; use mode proportional or equalizing",
            Self::ThresholdInUse => "items were sampled before; use mode proportional or equalizing",
            Self::NoRandomness => "items have neither a trace id nor the attribute to sample by",
            Self::Inconsistent => "items carry a threshold at which they should not have been sampled",
        }
    }
}

/// The decision on an item.
#[derive(Clone, Copy)]
pub(super) struct ItemDecision {
    pub(super) kept: bool,
    pub(super) policy: SamplerPolicy,
    pub(super) problem: Option<SamplingProblem>,
    /// The annotation that the item gets.
    pub(super) annotation: Option<SamplingAnnotation>,
}

/// The sampling record of a kept item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SamplingAnnotation {
    pub(super) threshold: Threshold,
    pub(super) new_randomness: Option<Randomness>,
}

impl ProbabilitySampler {
    pub(super) fn new(settings: &Settings) -> Self {
        let precision = settings.precision;
        Self { mode: mode(settings, precision), fail_closed: settings.fail_closed, precision }
    }

    pub(super) fn mode(&self) -> DecisionMode {
        self.mode
    }

    pub(super) fn fails_closed(&self) -> bool {
        self.fail_closed
    }

    /// Decides an item. A threshold given by priority overrides everything else.
    pub(super) fn decide(&self, mut item: SamplingInput, priority: Option<Threshold>) -> ItemDecision {
        item.validate();
        let threshold = match (priority, item.problem) {
            (Some(priority), _) => priority,
            (None, Some(_)) if self.fail_closed => Threshold::NEVER,
            (None, Some(_)) => Threshold::ALWAYS,
            (None, None) => self.threshold(item.prior.and_then(|carried| carried.threshold)),
        };
        let kept = threshold.keeps(item.randomness.unwrap_or(Randomness::MAX));
        let mark = item.prior.filter(|_| kept).map(|carried| SamplingAnnotation {
            // A probability never rises again: dropped items are not there to be counted.
            threshold: carried.threshold.map_or(threshold, |earlier| earlier.max(threshold)),
            new_randomness: carried.new_randomness,
        });
        let policy = if priority.is_some() { SamplerPolicy::Priority } else { item.policy };
        ItemDecision { kept, policy, problem: item.problem, annotation: mark }
    }

    /// Decides a trace by its id alone, as for nearly all; `None` if the id does not suffice.
    pub(super) fn decide_plain(&self, trace_id: &TraceId) -> Option<ItemDecision> {
        let (randomness, policy, threshold) = match self.mode {
            DecisionMode::Never => return None,
            DecisionMode::Hash { seed, threshold } => {
                (hash::randomness(seed, trace_id), SamplerPolicy::TraceIdHash, threshold)
            }
            DecisionMode::Equalizing { threshold } | DecisionMode::Proportional { unsampled: threshold, .. } => {
                (Randomness::from_trace_id(trace_id)?, SamplerPolicy::TraceIdW3c, threshold)
            }
        };
        let kept = threshold.keeps(randomness);
        // A later sampler could not derive the hash from the id.
        let new_randomness = (policy == SamplerPolicy::TraceIdHash).then_some(randomness);
        Some(ItemDecision {
            kept,
            policy,
            problem: None,
            annotation: kept.then_some(SamplingAnnotation { threshold, new_randomness }),
        })
    }

    /// The threshold for an item with this earlier threshold.
    fn threshold(&self, earlier: Option<Threshold>) -> Threshold {
        match (self.mode, earlier) {
            (DecisionMode::Never, _) => Threshold::NEVER,
            (DecisionMode::Hash { threshold, .. }, _) => threshold,
            (DecisionMode::Equalizing { threshold }, earlier) => {
                earlier.map_or(threshold, |earlier| earlier.max(threshold))
            }
            (DecisionMode::Proportional { unsampled, .. }, None) => unsampled,
            (DecisionMode::Proportional { ratio, .. }, Some(earlier)) => {
                let probability = earlier.probability() * ratio;
                // Below the least representable probability nothing is kept.
                Threshold::from_probability(probability, self.precision).unwrap_or(Threshold::NEVER)
            }
        }
    }
}

impl SamplingInput {
    /// Checks the consistency of the record. An invalid threshold is removed.
    fn validate(&mut self) {
        if self.problem.is_some() {
            return;
        }
        let Some(randomness) = self.randomness else {
            self.problem = Some(SamplingProblem::NoRandomness);
            return;
        };
        if let Some(carried) = &mut self.prior
            && carried.threshold.is_some_and(|threshold| !threshold.keeps(randomness))
        {
            carried.threshold = None;
            self.problem = Some(SamplingProblem::Inconsistent);
        }
    }
}

fn mode(settings: &Settings, precision: u8) -> DecisionMode {
    let percentage = settings.percentage.min(100.0);
    let ratio = (f64::from(percentage) / 100.0).max(MIN_PROBABILITY);
    let threshold = Threshold::from_probability(ratio, precision).unwrap_or(Threshold::NEVER);
    // Multiplied in 32 bits and truncated, as the Collector does.
    let buckets = (percentage * (hash::HASH_BUCKETS as f32 / 100.0)) as u32;
    match settings.mode {
        _ if percentage <= 0.0 => DecisionMode::Never,
        SamplerMode::Equalizing => DecisionMode::Equalizing { threshold },
        SamplerMode::Proportional => DecisionMode::Proportional { ratio, unsampled: threshold },
        SamplerMode::HashSeed if buckets == 0 => DecisionMode::Never,
        SamplerMode::HashSeed => {
            let rejected = u64::from(hash::HASH_BUCKETS.saturating_sub(buckets));
            let threshold = Threshold::from_rejected(rejected << (56 - hash::HASH_BITS));
            DecisionMode::Hash { seed: settings.hash_seed, threshold }
        }
    }
}
