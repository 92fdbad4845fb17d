//! `memory_limiter`.

use kubewake_otlp::Signal;

use crate::{
    component::{ComponentSettings, ProcessorSettings},
    decode::{Cursor, DecodeReport, FieldReader, scalar},
    encode::YamlMap,
};

/// A limit in bytes, or as a share of the memory that the process may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryLimit {
    /// `limit_mib` and `spike_limit_mib`, in bytes here.
    Bytes {
        limit: u64,
        /// The part of it that is reserved for requests in flight.
        spike: u64,
    },
    Percent {
        limit: u32,
        /// The part of it that is reserved for requests in flight.
        spike: u32,
    },
}

/// `memory_limiter`. Memory is not polled here, so `check_interval` is checked, but has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimiter {
    pub limit: MemoryLimit,
}

impl ComponentSettings for MemoryLimiter {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        let mut fields = FieldReader::new(at, report);
        check_interval(&mut fields);
        collection_intervals(&mut fields);
        let limit_mib = fields.get("limit_mib", scalar::u32).unwrap_or(0);
        let spike_mib = fields.get("spike_limit_mib", scalar::u32).unwrap_or(0);
        let limit_percent = fields.get("limit_percentage", percentage).unwrap_or(0);
        let spike_percent = fields.get("spike_limit_percentage", percentage).unwrap_or(0);
        if limit_mib == 0 && limit_percent == 0 && !fields.failed("limit_percentage") {
            let help = "set `limit_mib`, or `limit_percentage` of the memory that the process may use";
            fields.require(
                "limit_mib",
                "`limit_mib` or `limit_percentage` must be greater than zero",
                Some(help.into()),
            );
        }
        check_spike_below_limit(&fields, ("spike_limit_mib", spike_mib), ("limit_mib", limit_mib));
        check_spike_below_limit(
            &fields,
            ("spike_limit_percentage", spike_percent),
            ("limit_percentage", limit_percent),
        );
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

    fn encode(&self) -> YamlMap {
        let map = YamlMap::default().with_field("check_interval", "1s");
        match self.limit {
            MemoryLimit::Bytes { limit, spike } => {
                let spike = (spike != limit / 5).then_some(spike >> 20);
                map.with_field("limit_mib", limit >> 20).with_optional("spike_limit_mib", spike)
            }
            MemoryLimit::Percent { limit, spike } => {
                let spike = (spike != limit / 5).then_some(spike);
                map.with_field("limit_percentage", limit).with_optional("spike_limit_percentage", spike)
            }
        }
    }
}

impl ProcessorSettings for MemoryLimiter {
    fn signals(&self) -> &'static [Signal] {
        &Signal::ALL
    }
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
