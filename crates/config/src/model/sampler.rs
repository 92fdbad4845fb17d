//! Samplers.

#[derive(Clone, Debug, PartialEq)]
pub struct ProbabilisticSampler {
    /// `sampling_percentage`: 0 drops all, 100 keeps all. It has the Collector's precision, so that both keep
    /// the same.
    pub percentage: f32,
    pub mode: SamplerMode,
    pub hash_seed: u32,
    /// `fail_closed`: undecidable items are dropped; otherwise they are kept.
    pub fail_closed: bool,
    /// `sampling_precision`: hexadecimal digits of a threshold, 1 to 14.
    pub precision: u8,
    pub attribute_source: AttributeSource,
    /// `from_attribute`, of logs: the source of randomness where that is not the trace id.
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
            // Enough for 14 bits of a hash.
            precision: 4,
            attribute_source: AttributeSource::TraceId,
            from_attribute: None,
            sampling_priority: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SamplerMode {
    /// `hash_seed`: by 14 bits of a hash with a seed.
    HashSeed,
    /// `proportional`: lowers the probability that an item came with by the percentage.
    Proportional,
    /// `equalizing`: lowers it to the percentage.
    Equalizing,
}

/// The source of a log record's randomness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttributeSource {
    TraceId,
    Record,
}
