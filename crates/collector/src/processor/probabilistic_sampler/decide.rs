//! The decision on one item, whatever it is.

use kubewake_config::model::{ProbabilisticSampler as Settings, SamplerMode};
use kubewake_otlp::{
    TraceId,
    probability::{MIN_PROBABILITY, Randomness, Threshold},
};

use super::{count::Policy, hash};

/// Settings as numbers.
pub(super) struct Sampler {
    mode: Mode,
    fail_closed: bool,
    pub(super) precision: u8,
}

#[derive(Clone, Copy)]
pub(super) enum Mode {
    /// Keeps nothing but what has priority.
    Never,
    /// By a hash.
    Hash { seed: u32, threshold: Threshold },
    /// Down to a threshold.
    Equalizing { threshold: Threshold },
    /// Down by a factor; `unsampled` is the threshold of what was not sampled before.
    Proportional { ratio: f64, unsampled: Threshold },
}

/// What is known of an item.
pub(super) struct Item {
    /// What decides; none if there is nothing that could.
    pub(super) randomness: Option<Randomness>,
    /// Where it is from.
    pub(super) policy: Policy,
    /// Why it cannot be decided.
    pub(super) trouble: Option<Trouble>,
    /// What it says of earlier sampling; none if it must not be changed.
    pub(super) carried: Option<Carried>,
}

/// What an item says of earlier sampling.
#[derive(Clone, Copy, Default)]
pub(super) struct Carried {
    pub(super) threshold: Option<Threshold>,
    /// Randomness that it does not have yet, and is to have.
    pub(super) new_randomness: Option<Randomness>,
}

/// Why an item cannot be decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// What it says of earlier sampling cannot be read.
    Unreadable,
    /// It has `rv`, which a hash would contradict.
    RandomnessInUse,
    /// It has `th`, which a hash would contradict.
    ThresholdInUse,
    /// There is no trace id, or no attribute.
    NoRandomness,
    /// It should not be here: its randomness is below its threshold.
    Inconsistent,
}

impl Trouble {
    pub(super) const ALL: [Self; 5] =
        [Self::Unreadable, Self::RandomnessInUse, Self::ThresholdInUse, Self::NoRandomness, Self::Inconsistent];

    /// What to tell whoever runs the collector.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Unreadable => "the trace state or the sampling attributes cannot be read",
            Self::RandomnessInUse => "items come with an explicit randomness; use mode proportional or equalizing",
            Self::ThresholdInUse => "items were sampled before; use mode proportional or equalizing",
            Self::NoRandomness => "items have no trace id, nor the attribute to sample by",
            Self::Inconsistent => "items come with a threshold at which they should not have been sampled",
        }
    }
}

/// What became of an item.
#[derive(Clone, Copy)]
pub(super) struct Verdict {
    pub(super) kept: bool,
    pub(super) policy: Policy,
    pub(super) trouble: Option<Trouble>,
    /// What it is to say from now on.
    pub(super) mark: Option<Mark>,
}

/// What a kept item says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) threshold: Threshold,
    pub(super) new_randomness: Option<Randomness>,
}

impl Sampler {
    pub(super) fn new(settings: &Settings) -> Self {
        let precision = settings.precision;
        Self { mode: mode(settings, precision), fail_closed: settings.fail_closed, precision }
    }

    pub(super) fn mode(&self) -> Mode {
        self.mode
    }

    pub(super) fn fails_closed(&self) -> bool {
        self.fail_closed
    }

    /// Decides. A threshold given by priority stands above everything else.
    pub(super) fn decide(&self, mut item: Item, priority: Option<Threshold>) -> Verdict {
        item.check();
        let threshold = match (priority, item.trouble) {
            (Some(priority), _) => priority,
            (None, Some(_)) if self.fail_closed => Threshold::NEVER,
            (None, Some(_)) => Threshold::ALWAYS,
            (None, None) => self.threshold(item.carried.and_then(|carried| carried.threshold)),
        };
        let kept = threshold.keeps(item.randomness.unwrap_or(Randomness::MAX));
        let mark = item.carried.filter(|_| kept).map(|carried| Mark {
            // A probability never rises again: what was dropped is not there to be counted.
            threshold: carried.threshold.map_or(threshold, |earlier| earlier.max(threshold)),
            new_randomness: carried.new_randomness,
        });
        let policy = if priority.is_some() { Policy::Priority } else { item.policy };
        Verdict { kept, policy, trouble: item.trouble, mark }
    }

    /// Decides on a trace of which nothing is known but its id, as nearly all are; none if that does not suffice.
    pub(super) fn decide_plain(&self, trace_id: &TraceId) -> Option<Verdict> {
        let (randomness, policy, threshold) = match self.mode {
            Mode::Never => return None,
            Mode::Hash { seed, threshold } => (hash::randomness(seed, trace_id), Policy::TraceIdHash, threshold),
            Mode::Equalizing { threshold } | Mode::Proportional { unsampled: threshold, .. } => {
                (Randomness::of_trace_id(trace_id)?, Policy::TraceIdW3c, threshold)
            }
        };
        let kept = threshold.keeps(randomness);
        // Nobody else could tell a hash from the id.
        let new_randomness = (policy == Policy::TraceIdHash).then_some(randomness);
        Some(Verdict { kept, policy, trouble: None, mark: kept.then_some(Mark { threshold, new_randomness }) })
    }

    /// The threshold for an item that came with another one.
    fn threshold(&self, earlier: Option<Threshold>) -> Threshold {
        match (self.mode, earlier) {
            (Mode::Never, _) => Threshold::NEVER,
            (Mode::Hash { threshold, .. }, _) => threshold,
            (Mode::Equalizing { threshold }, earlier) => earlier.map_or(threshold, |earlier| earlier.max(threshold)),
            (Mode::Proportional { unsampled, .. }, None) => unsampled,
            (Mode::Proportional { ratio, .. }, Some(earlier)) => {
                let probability = earlier.probability() * ratio;
                // Below the least probability there is none.
                Threshold::from_probability(probability, self.precision).unwrap_or(Threshold::NEVER)
            }
        }
    }
}

impl Item {
    /// Looks whether it is whole. A threshold that cannot be is forgotten.
    fn check(&mut self) {
        if self.trouble.is_some() {
            return;
        }
        let Some(randomness) = self.randomness else {
            self.trouble = Some(Trouble::NoRandomness);
            return;
        };
        if let Some(carried) = &mut self.carried
            && carried.threshold.is_some_and(|threshold| !threshold.keeps(randomness))
        {
            carried.threshold = None;
            self.trouble = Some(Trouble::Inconsistent);
        }
    }
}

fn mode(settings: &Settings, precision: u8) -> Mode {
    let percentage = settings.percentage.min(100.0);
    let ratio = (f64::from(percentage) / 100.0).max(MIN_PROBABILITY);
    let threshold = Threshold::from_probability(ratio, precision).unwrap_or(Threshold::NEVER);
    // Multiplied in 32 bits and cut off, as the Collector always did.
    let buckets = (percentage * (hash::BUCKETS as f32 / 100.0)) as u32;
    match settings.mode {
        _ if percentage <= 0.0 => Mode::Never,
        SamplerMode::Equalizing => Mode::Equalizing { threshold },
        SamplerMode::Proportional => Mode::Proportional { ratio, unsampled: threshold },
        SamplerMode::HashSeed if buckets == 0 => Mode::Never,
        SamplerMode::HashSeed => {
            let rejected = u64::from(hash::BUCKETS.saturating_sub(buckets));
            let threshold = Threshold::from_rejected(rejected << (56 - hash::BITS));
            Mode::Hash { seed: settings.hash_seed, threshold }
        }
    }
}
