//! Processors.

use std::collections::HashSet;

use super::{cursor::Cursor, field_reader::FieldReader, report::DecodeReport, scalar};
use crate::model::{BatchProcessor, MemoryLimit, MemoryLimiter};

pub(crate) fn batch(at: &Cursor<'_>, report: &DecodeReport) -> Option<BatchProcessor> {
    let default = BatchProcessor::default();
    let mut fields = FieldReader::new(at, report);
    let batch = BatchProcessor {
        timeout: fields.get_or("timeout", default.timeout, scalar::duration),
        send_batch_size: fields.get_or("send_batch_size", default.send_batch_size, scalar::u32),
        send_batch_max_size: fields.get_or("send_batch_max_size", default.send_batch_max_size, scalar::u32),
        metadata_keys: fields.get("metadata_keys", metadata_keys).unwrap_or_default(),
        metadata_cardinality_limit: fields.get_or(
            "metadata_cardinality_limit",
            default.metadata_cardinality_limit,
            scalar::u32,
        ),
    };
    if batch.send_batch_max_size > 0 && batch.send_batch_max_size < batch.send_batch_size {
        let max = batch.send_batch_max_size;
        let size = batch.send_batch_size;
        let message = format!("`send_batch_max_size` ({max}) is less than `send_batch_size` ({size})");
        let help = fields.has("send_batch_size").then_some("raise the one or lower the other");
        let help = help.unwrap_or("`send_batch_size` is 8192 by default: set it, too");
        report.error(&fields.cursor_at("send_batch_max_size"), message, Some(help.into()));
    }
    fields.finish();
    Some(batch)
}

/// Names of headers in lower case, without duplicates.
pub(crate) fn metadata_keys(at: &Cursor<'_>, report: &DecodeReport) -> Option<Vec<String>> {
    let keys: Vec<String> = scalar::texts(at, report)?.iter().map(|key| key.to_lowercase()).collect();
    let mut seen = HashSet::new();
    if let Some(twice) = keys.iter().find(|key| !seen.insert(*key)) {
        report.error(
            at,
            format!("`metadata_keys` contains {} twice; keys are case-insensitive", at.quote(twice)),
            None,
        );
        return None;
    }
    Some(keys)
}

pub(crate) fn memory_limiter(at: &Cursor<'_>, report: &DecodeReport) -> Option<MemoryLimiter> {
    let mut fields = FieldReader::new(at, report);
    check_interval(&mut fields);
    collection_intervals(&mut fields);
    let limit_mib = fields.get("limit_mib", scalar::u32).unwrap_or(0);
    let spike_mib = fields.get("spike_limit_mib", scalar::u32).unwrap_or(0);
    let limit_percent = fields.get("limit_percentage", percentage).unwrap_or(0);
    let spike_percent = fields.get("spike_limit_percentage", percentage).unwrap_or(0);
    if limit_mib == 0 && limit_percent == 0 && !fields.failed("limit_percentage") {
        let help = "set `limit_mib`, or `limit_percentage` of the memory that the process may use";
        fields.require("limit_mib", "`limit_mib` or `limit_percentage` must be greater than zero", Some(help.into()));
    }
    check_spike_below_limit(&fields, ("spike_limit_mib", spike_mib), ("limit_mib", limit_mib));
    check_spike_below_limit(&fields, ("spike_limit_percentage", spike_percent), ("limit_percentage", limit_percent));
    fields.finish();
    // A fifth is the Collector's default; a limit in bytes takes precedence over a percentage.
    let spike_or_fifth = |spike: u32, limit: u32| if spike == 0 { limit / 5 } else { spike };
    let limit = if limit_mib > 0 {
        let limit = u64::from(limit_mib) << 20;
        let spike = if spike_mib == 0 { limit / 5 } else { u64::from(spike_mib) << 20 };
        MemoryLimit::Bytes { limit, spike }
    } else {
        MemoryLimit::Percent { limit: limit_percent, spike: spike_or_fifth(spike_percent, limit_percent) }
    };
    Some(MemoryLimiter { limit })
}

/// `check_interval` is required, as in the Collector, so that a document that runs here runs there.
fn check_interval(fields: &mut FieldReader<'_, '_>) {
    let help = Some("set `check_interval` to 1s; this collector enforces the limit at all times".to_owned());
    match fields.find("check_interval") {
        None => fields.require("check_interval", "`check_interval` must be greater than zero", help),
        Some(at) => {
            if scalar::nanoseconds(&at, fields.report).is_some_and(|interval| interval <= 0) {
                fields.report.error(&at, "`check_interval` must be greater than zero", help);
            }
        }
    }
}

/// Checks the intervals of Go's garbage collector, and the rule between them; they have no effect here.
fn collection_intervals(fields: &mut FieldReader<'_, '_>) {
    let soft = fields.get_or("min_gc_interval_when_soft_limited", 10_000_000_000, scalar::nanoseconds);
    let hard = fields.get_or("min_gc_interval_when_hard_limited", 0, scalar::nanoseconds);
    if soft < hard {
        let message = "`min_gc_interval_when_hard_limited` is greater than `min_gc_interval_when_soft_limited`";
        fields.report.error(&fields.cursor_at("min_gc_interval_when_hard_limited"), message, None);
    }
}

fn percentage(at: &Cursor<'_>, report: &DecodeReport) -> Option<u32> {
    scalar::integer_in_range(at, report, 0, 100).and_then(|value| value.try_into().ok())
}

fn check_spike_below_limit(
    fields: &FieldReader<'_, '_>,
    (spike_name, spike): (&str, u32),
    (limit_name, limit): (&str, u32),
) {
    if limit > 0 && limit <= spike {
        let message = format!("`{spike_name}` ({spike}) must be smaller than `{limit_name}` ({limit})");
        fields.report.error(&fields.cursor_at(spike_name), message, Some("the default is a fifth of the limit".into()));
    }
}
