//! `probabilistic_sampler`.

use kubewake_otlp::Signal;

use super::ProcessorConfig;
use crate::{
    component::{ComponentSettings, PipelinePlace, PlaceProblem, ProcessorSettings},
    decode::{Cursor, DecodeReport, FieldReader, scalar},
    encode::{self, YamlMap},
};

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

const MODES: [(&str, SamplerMode); 3] = [
    ("hash_seed", SamplerMode::HashSeed),
    ("proportional", SamplerMode::Proportional),
    ("equalizing", SamplerMode::Equalizing),
];
const ATTRIBUTE_SOURCES: [(&str, AttributeSource); 2] =
    [("traceID", AttributeSource::TraceId), ("record", AttributeSource::Record)];

impl ComponentSettings for ProbabilisticSampler {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        let default = ProbabilisticSampler::default();
        let mut fields = FieldReader::new(at, report);
        let sampler = ProbabilisticSampler {
            percentage: fields.get_or("sampling_percentage", default.percentage, percentage),
            mode: fields.get_or("mode", default.mode, mode),
            hash_seed: fields.get_or("hash_seed", default.hash_seed, scalar::u32),
            fail_closed: fields.get_or("fail_closed", default.fail_closed, scalar::boolean),
            precision: fields.get_or("sampling_precision", default.precision, precision),
            attribute_source: fields.get_or("attribute_source", default.attribute_source, attribute_source),
            from_attribute: fields.text("from_attribute"),
            sampling_priority: fields.text("sampling_priority"),
        };
        let place = fields.cursor_at("sampling_percentage");
        let share = sampler.percentage;
        if !fields.has("sampling_percentage") {
            let help = Some("set `sampling_percentage` to the percentage to keep".to_owned());
            report.warning(&place, "without `sampling_percentage` all items are dropped", help);
        } else if sampler.mode == SamplerMode::HashSeed && share > 0.0 && share * HASH_BUCKETS_PER_PERCENT < 1.0 {
            let help = Some("use `mode: proportional` or `mode: equalizing`".to_owned());
            report.warning(&place, "`mode: hash_seed` drops all items below 0.0062 percent", help);
        }
        if sampler.mode != SamplerMode::HashSeed && sampler.attribute_source == AttributeSource::Record {
            let help = Some("use `mode: hash_seed`".to_owned());
            let message = "`attribute_source` has no effect: only `mode: hash_seed` samples by an attribute";
            report.warning(&fields.cursor_at("attribute_source"), message, help);
        } else if sampler.attribute_source == AttributeSource::Record && sampler.from_attribute.is_none() {
            let help = Some("set `from_attribute` to the key of the attribute".to_owned());
            let message = "`attribute_source: record` has no effect without `from_attribute`";
            report.warning(&fields.cursor_at("attribute_source"), message, help);
        }
        fields.finish();
        Some(sampler)
    }

    fn encode(&self) -> YamlMap {
        let default = Self::default();
        let mode = |sampler: &Self| encode::keyword(&MODES, &sampler.mode);
        let source = |sampler: &Self| encode::keyword(&ATTRIBUTE_SOURCES, &sampler.attribute_source);
        YamlMap::default()
            .with_changed("mode", mode(self), mode(&default))
            .with_field("sampling_percentage", self.percentage)
            .with_changed("hash_seed", self.hash_seed, default.hash_seed)
            .with_changed("fail_closed", self.fail_closed, default.fail_closed)
            .with_changed("sampling_precision", u32::from(self.precision), u32::from(default.precision))
            .with_changed("attribute_source", source(self), source(&default))
            .with_optional("from_attribute", self.from_attribute.as_deref())
            .with_optional("sampling_priority", self.sampling_priority.as_deref())
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

/// The smallest probability that the specification can express.
const MIN_PROBABILITY: f64 = 1.0 / (1_u64 << 56) as f64;
/// The number of the hash's buckets per percent.
const HASH_BUCKETS_PER_PERCENT: f32 = 163.84;

fn percentage(at: &Cursor<'_>, report: &DecodeReport) -> Option<f32> {
    // The Collector reads 32 bits, and samples by the result.
    let value = scalar::float(at, report)? as f32;
    let wrong = match f64::from(value) / 100.0 {
        share if !share.is_finite() => "must be a number from 0 to 100",
        share if share < 0.0 => "must not be negative",
        share if share > 0.0 && share < MIN_PROBABILITY => "is smaller than one in 2^56",
        _ => return Some(value),
    };
    report.error(at, format!("`{}` {wrong}", at.name()), Some("0 drops all, 100 keeps all".into()));
    None
}

fn mode(at: &Cursor<'_>, report: &DecodeReport) -> Option<SamplerMode> {
    // In the Collector an empty text means no mode, and so the default.
    if scalar::text(at, report)?.is_empty() { None } else { scalar::keyword(at, report, &MODES) }
}

fn attribute_source(at: &Cursor<'_>, report: &DecodeReport) -> Option<AttributeSource> {
    // In the Collector an empty text does not mean the trace id, and so means the record.
    if scalar::text(at, report)?.is_empty() {
        return Some(AttributeSource::Record);
    }
    scalar::keyword(at, report, &ATTRIBUTE_SOURCES)
}

fn precision(at: &Cursor<'_>, report: &DecodeReport) -> Option<u8> {
    scalar::integer_in_range(at, report, 1, 14).and_then(|value| value.try_into().ok())
}
