//! Samplers.

use super::{cursor::Cursor, field_reader::FieldReader, report::DecodeReport, scalar};
use crate::model::{AttributeSource, ProbabilisticSampler, SamplerMode};

/// The smallest probability that the specification can express.
const MIN_PROBABILITY: f64 = 1.0 / (1_u64 << 56) as f64;
/// The number of the hash's buckets per percent.
const HASH_BUCKETS_PER_PERCENT: f32 = 163.84;

pub(crate) fn probabilistic(at: &Cursor<'_>, report: &DecodeReport) -> Option<ProbabilisticSampler> {
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
    let known = [
        ("hash_seed", SamplerMode::HashSeed),
        ("proportional", SamplerMode::Proportional),
        ("equalizing", SamplerMode::Equalizing),
    ];
    // In the Collector an empty text means no mode, and so the default.
    if scalar::text(at, report)?.is_empty() { None } else { scalar::keyword(at, report, &known) }
}

fn attribute_source(at: &Cursor<'_>, report: &DecodeReport) -> Option<AttributeSource> {
    let known = [("traceID", AttributeSource::TraceId), ("record", AttributeSource::Record)];
    // In the Collector an empty text does not mean the trace id, and so means the record.
    if scalar::text(at, report)?.is_empty() {
        return Some(AttributeSource::Record);
    }
    scalar::keyword(at, report, &known)
}

fn precision(at: &Cursor<'_>, report: &DecodeReport) -> Option<u8> {
    scalar::integer_in_range(at, report, 1, 14).and_then(|value| value.try_into().ok())
}
