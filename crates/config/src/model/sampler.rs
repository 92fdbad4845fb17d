//! Samplers.

/// `probabilistic_sampler`
#[derive(Clone, Debug, PartialEq)]
pub struct ProbabilisticSampler {
    /// `sampling_percentage`: 0 drops all, 100 keeps all. In the precision of the Collector, so that both keep the same.
    pub percentage: f32,
    /// `mode`
    pub mode: SamplerMode,
    /// `hash_seed`
    pub hash_seed: u32,
    /// `fail_closed`: what cannot be decided is dropped; otherwise it is kept.
    pub fail_closed: bool,
    /// `sampling_precision`: hexadecimal digits of a threshold, 1 to 14.
    pub precision: u8,
    /// `attribute_source`, of logs.
    pub attribute_source: AttributeSource,
    /// `from_attribute`, of logs: where the trace id is not the source, this attribute is.
    pub from_attribute: Option<String>,
    /// `sampling_priority`, of logs: an attribute that holds a percentage of its own.
    pub sampling_priority: Option<String>,
}

impl Default for ProbabilisticSampler {
    fn default() -> Self {
        Self {
            percentage: 0.0,
            mode: SamplerMode::HashSeed,
            hash_seed: 0,
            fail_closed: true,
            // What 14 bits of a hash need.
            precision: 4,
            attribute_source: AttributeSource::TraceId,
            from_attribute: None,
            sampling_priority: None,
        }
    }
}

/// How a sampler decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SamplerMode {
    /// `hash_seed`: by 14 bits of a hash with a seed.
    HashSeed,
    /// `proportional`: lowers the probability that an item came with by the percentage.
    Proportional,
    /// `equalizing`: lowers it to the percentage.
    Equalizing,
}

/// Where a log record's randomness is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttributeSource {
    /// `traceID`
    TraceId,
    /// `record`: the attribute `from_attribute`.
    Record,
}
