//! Keys of JSON lines that say what OTLP has a field for, in the spellings of many libraries.

mod severity;
mod trace_context;

pub(crate) use severity::read_severity;
pub(crate) use trace_context::{read_flags, read_span_id, read_trace_context, read_trace_id};

/// What a key says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyMeaning {
    Message,
    Severity,
    TraceId(IdForm),
    SpanId(IdForm),
    TraceFlags,
    /// `traceparent` of W3C Trace Context, which says all three.
    TraceParent,
}

/// How an id is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdForm {
    /// Hexadecimal digits.
    Hex,
    /// A decimal number of 64 bits, or hexadecimal digits.
    Decimal,
    /// The name of a resource, whose last part is the id.
    ResourceName,
}

/// A well-known key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WellKnownKey {
    pub(crate) name: &'static str,
    pub(crate) meaning: KeyMeaning,
    /// Of several keys of a line with the same meaning, the one with the lowest rank counts.
    pub(crate) rank: u8,
}

const fn key(name: &'static str, meaning: KeyMeaning, rank: u8) -> WellKnownKey {
    WellKnownKey { name, meaning, rank }
}

/// The keys, by their length. The fields of OpenTelemetry and of Elastic's schema come first, then those that libraries
/// such as Micrometer, OpenTelemetry for Python, Google's and Datadog's write.
static KEYS_3: [WellKnownKey; 2] = [key("msg", KeyMeaning::Message, 0), key("lvl", KeyMeaning::Severity, 4)];
static KEYS_5: [WellKnownKey; 1] = [key("level", KeyMeaning::Severity, 1)];
static KEYS_6: [WellKnownKey; 2] =
    [key("spanId", KeyMeaning::SpanId(IdForm::Hex), 2), key("spanID", KeyMeaning::SpanId(IdForm::Hex), 3)];
static KEYS_7: [WellKnownKey; 5] = [
    key("message", KeyMeaning::Message, 1),
    key("span_id", KeyMeaning::SpanId(IdForm::Hex), 0),
    key("span.id", KeyMeaning::SpanId(IdForm::Hex), 1),
    key("traceId", KeyMeaning::TraceId(IdForm::Hex), 2),
    key("traceID", KeyMeaning::TraceId(IdForm::Hex), 3),
];
static KEYS_8: [WellKnownKey; 3] = [
    key("severity", KeyMeaning::Severity, 2),
    key("trace_id", KeyMeaning::TraceId(IdForm::Hex), 0),
    key("trace.id", KeyMeaning::TraceId(IdForm::Hex), 1),
];
static KEYS_9: [WellKnownKey; 1] = [key("log.level", KeyMeaning::Severity, 0)];
static KEYS_10: [WellKnownKey; 3] = [
    key("traceFlags", KeyMeaning::TraceFlags, 1),
    key("otelSpanID", KeyMeaning::SpanId(IdForm::Hex), 4),
    key("dd.span_id", KeyMeaning::SpanId(IdForm::Decimal), 6),
];
static KEYS_11: [WellKnownKey; 4] = [
    key("trace_flags", KeyMeaning::TraceFlags, 0),
    key("traceparent", KeyMeaning::TraceParent, 0),
    key("otelTraceID", KeyMeaning::TraceId(IdForm::Hex), 4),
    key("dd.trace_id", KeyMeaning::TraceId(IdForm::Decimal), 6),
];
static KEYS_13: [WellKnownKey; 1] = [key("severity_text", KeyMeaning::Severity, 3)];
static KEYS_16: [WellKnownKey; 1] = [key("otelTraceSampled", KeyMeaning::TraceFlags, 2)];
static KEYS_28: [WellKnownKey; 1] = [key("logging.googleapis.com/trace", KeyMeaning::TraceId(IdForm::ResourceName), 5)];
static KEYS_29: [WellKnownKey; 1] = [key("logging.googleapis.com/spanId", KeyMeaning::SpanId(IdForm::Hex), 5)];
static KEYS_36: [WellKnownKey; 1] = [key("logging.googleapis.com/trace_sampled", KeyMeaning::TraceFlags, 3)];

/// The well-known key with this name.
#[inline]
pub(crate) fn lookup_key(name: &[u8]) -> Option<&'static WellKnownKey> {
    let keys: &'static [WellKnownKey] = match name.len() {
        3 => &KEYS_3,
        5 => &KEYS_5,
        6 => &KEYS_6,
        7 => &KEYS_7,
        8 => &KEYS_8,
        9 => &KEYS_9,
        10 => &KEYS_10,
        11 => &KEYS_11,
        13 => &KEYS_13,
        16 => &KEYS_16,
        28 => &KEYS_28,
        29 => &KEYS_29,
        36 => &KEYS_36,
        _ => return None,
    };
    keys.iter().find(|key| key.name.as_bytes() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_is_found_and_ranks_of_a_meaning_differ() {
        let tables: [&'static [WellKnownKey]; 13] = [
            &KEYS_3, &KEYS_5, &KEYS_6, &KEYS_7, &KEYS_8, &KEYS_9, &KEYS_10, &KEYS_11, &KEYS_13, &KEYS_16, &KEYS_28,
            &KEYS_29, &KEYS_36,
        ];
        let keys: Vec<_> = tables.into_iter().flatten().collect();
        for key in &keys {
            assert_eq!(lookup_key(key.name.as_bytes()), Some(*key));
            let same = |other: &&&WellKnownKey| {
                std::mem::discriminant(&other.meaning) == std::mem::discriminant(&key.meaning) && other.rank == key.rank
            };
            assert_eq!(keys.iter().filter(same).count(), 1, "{}", key.name);
        }
        assert_eq!(lookup_key(b"Level"), None);
        assert_eq!(lookup_key(b""), None);
    }
}
