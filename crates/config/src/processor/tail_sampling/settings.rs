//! Decodes the settings of `tail_sampling`.

use std::collections::BTreeSet;

use super::{SamplingRule, SamplingStrategy, TailSamplingProcessor, policy};
use crate::decode::{Cursor, DecodeReport, FieldReader, scalar};

/// More shards are a mistake.
const MAX_SHARDS: i64 = 256;
/// More cached decisions, about a GiB of them, are a mistake: the memory is taken when the collector starts.
const MAX_CACHED_DECISIONS: i64 = 100_000_000;

pub(super) const SAMPLING_STRATEGIES: [(&str, SamplingStrategy); 2] =
    [("trace-complete", SamplingStrategy::TraceComplete), ("span-ingest", SamplingStrategy::SpanIngest)];

pub(super) fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<TailSamplingProcessor> {
    let default = TailSamplingProcessor::default();
    let mut fields = FieldReader::new(at, report);
    fields.accept_without_effect(&["expected_new_traces_per_sec"], count);
    fields.unsupported(&["tail_storage"]);
    let (sampled_cache_size, non_sampled_cache_size) = fields.get("decision_cache", caches).unwrap_or_default();
    let settings = TailSamplingProcessor {
        decision_wait: fields.get_or("decision_wait", default.decision_wait, scalar::duration),
        decision_wait_after_root: fields.get_or(
            "decision_wait_after_root_received",
            default.decision_wait_after_root,
            scalar::duration,
        ),
        num_traces: fields.get_or("num_traces", default.num_traces, count),
        block_on_overflow: fields.flag("block_on_overflow"),
        sampled_cache_size,
        non_sampled_cache_size,
        sample_on_first_match: fields.flag("sample_on_first_match"),
        strategy: fields.get_or("sampling_strategy", default.strategy, |at, report| {
            scalar::keyword(at, report, &SAMPLING_STRATEGIES)
        }),
        drop_pending_on_shutdown: fields.flag("drop_pending_traces_on_shutdown"),
        maximum_trace_size: fields.get_or("maximum_trace_size_bytes", 0, |at, report| {
            scalar::integer_in_range(at, report, 0, i64::MAX).map(i64::unsigned_abs)
        }),
        num_shards: fields.get_or("num_shards", default.num_shards, |at, report| {
            scalar::integer_in_range(at, report, 0, MAX_SHARDS).and_then(|value| value.try_into().ok())
        }),
        record_policy: fields.flag("record_policy"),
        late_error_wait: fields.get_or("late_error_wait", default.late_error_wait, scalar::duration),
        overload_percentage: fields.get_or("overload_sampling_percentage", default.overload_percentage, percentage),
        policies: fields.get("policies", policy::policies).unwrap_or_default(),
    };
    if settings.policies.is_empty() && !fields.failed("policies") {
        let place = fields.cursor_at("policies");
        let help = "without `policies` no trace is kept; to keep all traces, remove the processor";
        report.warning(&place, "the processor has no policies", Some(help.into()));
    }
    if settings.num_traces == 0 {
        let help =
            "to limit by memory only, set `num_traces` above the number of traces that arrive within `decision_wait`";
        let message = "`num_traces: 0` means 1: each trace is decided when the next trace arrives";
        report.warning(&fields.cursor_at("num_traces"), message, Some(help.into()));
    }
    warn_different_salts(&fields, &settings);
    if settings.strategy == SamplingStrategy::SpanIngest {
        check_policies_stateless(&fields, &settings);
        warn_drop_policies(&fields, &settings);
    }
    fields.finish();
    Some(settings)
}

/// Refuses policies that need the whole trace where decisions are made part by part.
fn check_policies_stateless(fields: &FieldReader<'_, '_>, settings: &TailSamplingProcessor) {
    for policy in settings.policies.iter().filter(|policy| policy.rule.is_stateful()) {
        let place = fields.cursor_at("sampling_strategy");
        let message = format!("`span-ingest` needs stateless policies, and {} is stateful", place.quote(&policy.name));
        let help = "use trace-complete: rate limits and upper bounds of latency and span count need whole traces";
        fields.report.error(&place, message, Some(help.into()));
    }
}

/// Warns about policies that drop: they may match a later part, so a trace cannot be kept before its last part,
/// and no part is known to be the last.
fn warn_drop_policies(fields: &FieldReader<'_, '_>, settings: &TailSamplingProcessor) {
    if settings.policies.iter().any(|policy| matches!(policy.rule, SamplingRule::Drop(_))) {
        let message =
            "no trace is kept: with `span-ingest` no policy may keep a trace that a `drop` policy may still drop";
        let help = "use trace-complete, or policies that keep without `drop`";
        fields.report.warning(&fields.cursor_at("sampling_strategy"), message, Some(help.into()));
    }
}

/// Warns about probabilities with different hashes: these are independent, but the adjusted count of a kept
/// trace is written as if they were not.
fn warn_different_salts(fields: &FieldReader<'_, '_>, settings: &TailSamplingProcessor) {
    let keeping = settings.policies.iter().filter(|policy| !matches!(policy.rule, SamplingRule::Drop(_)));
    let salts: BTreeSet<&str> = keeping.flat_map(|policy| policy.rule.salts()).collect();
    if salts.len() > 1 {
        let message = "probabilistic policies have different `hash_salt`s: counts are wrong for traces that several \
                       of them decide on";
        let help = "use one `hash_salt` for all of them";
        fields.report.warning(&fields.cursor_at("policies"), message, Some(help.into()));
    }
}

fn caches(at: &Cursor<'_>, report: &DecodeReport) -> Option<(usize, usize)> {
    let mut fields = FieldReader::new(at, report);
    let sizes =
        (fields.get_or("sampled_cache_size", 0, remembered), fields.get_or("non_sampled_cache_size", 0, remembered));
    fields.finish();
    Some(sizes)
}

/// The Collector treats values below one as none.
fn remembered(at: &Cursor<'_>, report: &DecodeReport) -> Option<usize> {
    let size = scalar::integer(at, report)?;
    if size > MAX_CACHED_DECISIONS {
        let help = "a dropped trace takes 8 bytes, a kept one 16";
        report.error(at, format!("`{}` must be at most {MAX_CACHED_DECISIONS}", at.name()), Some(help.into()));
        return None;
    }
    Some(usize::try_from(size).unwrap_or(0))
}

fn count(at: &Cursor<'_>, report: &DecodeReport) -> Option<usize> {
    scalar::integer_in_range(at, report, 0, i64::MAX).and_then(|value| value.try_into().ok())
}

fn percentage(at: &Cursor<'_>, report: &DecodeReport) -> Option<f64> {
    let value = scalar::float(at, report)?;
    if (0.0..=100.0).contains(&value) {
        return Some(value);
    }
    report.error(at, format!("`{}` must be between 0 and 100", at.name()), None);
    None
}
