use std::sync::Arc;

use bytes::Bytes;
use kubewake_config::model::{AttributeSource, SamplerMode};
use kubewake_otlp::{ScanSummary, Signal, SpanTraits, UnlimitedAllowance, json, view};
use proptest::prelude::*;

use super::*;
use crate::core::{Charge, Origin};

fn id() -> ComponentId {
    ComponentId::new("probabilistic_sampler")
}

fn settings(mode: SamplerMode, percentage: f32) -> Settings {
    // All digits, as in the specification's cases.
    Settings { mode, percentage, precision: 14, fail_closed: false, ..Settings::default() }
}

fn part(signal: Signal, text: &str) -> Part {
    let bytes = Bytes::from(json::decode(signal, text.as_bytes()).unwrap());
    let ScanSummary { items, traits, .. } = kubewake_otlp::scan(signal, &bytes).unwrap();
    Part { traits, ..Part::new(bytes, items, Arc::new(Origin::default()), Arc::new(Charge::exempt())) }
}

fn spans(spans: &str) -> Part {
    part(Signal::Traces, &format!(r#"{{"resourceSpans": [{{"scopeSpans": [{{"spans": [{spans}]}}]}}]}}"#))
}

fn logs(records: &str) -> Part {
    part(Signal::Logs, &format!(r#"{{"resourceLogs": [{{"scopeLogs": [{{"logRecords": [{records}]}}]}}]}}"#))
}

fn span(trace_id: &str, state: &str) -> String {
    format!(r#"{{"traceId": "{trace_id}", "traceState": "{state}", "name": "n"}}"#)
}

fn sample(settings: &Settings, signal: Signal, part: &Part) -> TransformedRequest {
    let map = |part: &Part| {
        ProbabilisticSampler::new(&id(), settings, &SamplerStats::default())
            .transform(signal, part, &mut UnlimitedAllowance)
            .unwrap()
    };
    let mapped = map(part);
    let unknown = map(&Part { traits: SpanTraits::default(), ..part.clone() });
    assert_eq!((&mapped.bytes, mapped.items), (&unknown.bytes, unknown.items), "what is known only saves time");
    assert_eq!(kubewake_otlp::scan(signal, &mapped.bytes).unwrap().items, mapped.items);
    mapped
}

/// The trace states of the spans that are kept.
fn states(settings: &Settings, part: &Part) -> Vec<String> {
    let mapped = sample(settings, Signal::Traces, part);
    let entries = view::resources(&mapped.bytes).flat_map(|entry| entry.scopes().collect::<Vec<_>>());
    let spans = entries.flat_map(|scope| scope.spans().collect::<Vec<_>>());
    spans.map(|span| view::lossy(span.trace_state()).into_owned()).collect()
}

/// The attributes of the log records that are kept.
fn attributes(settings: &Settings, record: &str) -> Option<Vec<(String, String)>> {
    let mapped = sample(settings, Signal::Logs, &logs(record));
    let entries = view::resources(&mapped.bytes).flat_map(|entry| entry.scopes().collect::<Vec<_>>());
    let mut records = entries.flat_map(|scope| scope.log_records().collect::<Vec<_>>());
    let text = |bytes: &[u8]| view::lossy(bytes).into_owned();
    records.next().map(|record| {
        record.attributes().iter().map(|pair| (text(pair.key()), text(&pair.value().to_text()))).collect()
    })
}

const HALF: &str = "fefefefefefefefefe80000000000000";
const RARE: &str = "111111111111111111ffffffffffffff";

/// Modes, percentage, precision, trace id and trace state, and the trace state of the kept span.
type Case<'a> = (&'a [SamplerMode], f32, u8, &'a str, &'a str, Option<&'a str>);

#[test]
fn consistent_modes_follow_the_specification() {
    use SamplerMode::{Equalizing, Proportional};
    let both = [Equalizing, Proportional];
    let one = [Equalizing];
    let other = [Proportional];
    let cases: &[Case<'_>] = &[
        (&both, 100.0, 4, HALF, "", Some("ot=th:0")),
        (&both, 200.0, 4, HALF, "", Some("ot=th:0")),
        (&both, 50.0, 4, HALF, "", Some("ot=th:8")),
        (&both, 49.0, 4, HALF, "", None),
        (&both, 25.0, 4, "ddddddddddddddddddc0000000000000", "", Some("ot=th:c")),
        (&both, 25.0, 4, "ddddddddddddddddddb0000000000000", "", None),
        (&both, 1.0, 14, HALF, "ot=rv:FD70A3D70A3D71", Some("ot=rv:FD70A3D70A3D71;th:fd70a3d70a3d71")),
        (&both, 1.0, 14, HALF, "ot=rv:FD70A3D70A3D70", None),
        (&both, 1.0, 4, HALF, "ot=rv:FD70A3D70A3D71", Some("ot=rv:FD70A3D70A3D71;th:fd70a")),
        (&both, 1.0, 3, HALF, "ot=rv:FD70A3D70A3D71", None),
        (&both, 1.0, 4, "a0a0a0a0a0a0a0a0a0fe000000000000", "x=y", Some("ot=th:fd70a,x=y")),
        (&one, 50.0, 4, HALF, "ot=rv:90000000000000;th:80000000000000", Some("ot=rv:90000000000000;th:8")),
        (&other, 50.0, 4, HALF, "ot=rv:90000000000000;th:80000000000000", None),
        (&both, 25.0, 4, HALF, "ot=th:8", None),
        (&one, 25.0, 4, RARE, "ot=th:8", Some("ot=th:c")),
        (&other, 25.0, 4, RARE, "ot=th:8", Some("ot=th:e")),
        (&one, 40.0, 6, "a0a0a0a0a0a0a0a0a0d0000000000000", "ot=th:8", Some("ot=th:99999a")),
        (&other, 40.0, 6, "a0a0a0a0a0a0a0a0a0d0000000000000", "ot=th:8", Some("ot=th:cccccd")),
        (&one, 100.0 / 16384.0, 14, RARE, "ot=th:fffc", Some("ot=th:fffc")),
        (&other, 100.0 / 16384.0, 14, RARE, "ot=th:fffc", Some("ot=th:fffffff")),
        (&one, 0.0625, 14, RARE, "ot=th:fffffffffffff8", Some("ot=th:fffffffffffff8")),
        (&other, 0.0625, 14, RARE, "ot=th:fffffffffffff8", None),
    ];
    for (modes, percentage, precision, trace_id, state, expected) in cases {
        for mode in *modes {
            let settings = Settings { precision: *precision, ..settings(*mode, *percentage) };
            let kept = states(&settings, &spans(&span(trace_id, state)));
            assert_eq!(kept.first().map(String::as_str), *expected, "{mode:?} {percentage} {trace_id} {state}");
        }
    }
}

#[test]
fn what_cannot_be_decided_is_dropped_or_kept_as_the_settings_say() {
    let zero = "0".repeat(32);
    let cases = [
        (zero.as_str(), "", "ot=th:0"),
        (HALF, "ot=rv:abababababababab", "ot=rv:abababababababab"),
        (HALF, "ot=th:-1", "ot=th:-1"),
        (HALF, "not a state", "not a state"),
        ("ffffffffffffffffff70000000000000", "ot=th:8", "ot=th:0"),
        (HALF, "ot=th:8;rv:70000000000000", "ot=rv:70000000000000;th:0"),
    ];
    for mode in [SamplerMode::Equalizing, SamplerMode::Proportional] {
        for (trace_id, state, open) in cases {
            let part = spans(&span(trace_id, state));
            let fails_open = settings(mode, 1.0);
            assert_eq!(states(&fails_open, &part), [open], "{mode:?} {state}");
            let fails_closed = Settings { fail_closed: true, ..settings(mode, 100.0) };
            assert_eq!(states(&fails_closed, &part), [""; 0], "{mode:?} {state}");
        }
    }
}

#[test]
fn a_hash_says_what_it_decided_by() {
    // The hash of the Collector, with its seed of little-endian bytes.
    assert_eq!(hash::fnv1a(0, b""), 0x4b95_f515);
    for (percentage, threshold) in
        [(100.0, "0"), (75.0, "4"), (50.0, "8"), (25.0, "c"), (10.0, "e668"), (100.0 / 3.0, "aaac")]
    {
        let settings = Settings { hash_seed: 22, ..settings(SamplerMode::HashSeed, percentage) };
        let ids: Vec<String> = (1..2000_u128)
            .map(|n| format!("{:032x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c834)))
            .collect();
        let all: Vec<String> = ids.iter().map(|id| span(id, "")).collect();
        let kept = states(&settings, &spans(&all.join(",")));
        let share = kept.len() as f32 / ids.len() as f32 * 100.0;
        assert!((share - percentage).abs() < 5.0, "{share} of {percentage}");
        for state in kept {
            let state = kubewake_otlp::TraceState::parse(state.as_bytes()).unwrap();
            let sampled_at = state.threshold().unwrap();
            assert_eq!(sampled_at.hex().as_str(), threshold);
            assert!(sampled_at.keeps(state.randomness().unwrap()), "whoever looks at it decides the same");
        }
    }
}

#[test]
fn a_hash_leaves_alone_what_was_sampled_before() {
    for state in ["ot=th:8", "ot=rv:ffffffffffffff"] {
        let part = spans(&span(RARE, state));
        let open = settings(SamplerMode::HashSeed, 1.0);
        assert_eq!(states(&open, &part), [state]);
        assert_eq!(states(&Settings { fail_closed: true, ..open }, &part), [""; 0]);
    }
}

#[test]
fn a_span_with_priority_is_kept_or_dropped() {
    let with = |value: &str, state: &str| {
        spans(&format!(
            r#"{{"traceId": "{HALF}", "traceState": "{state}",
                "attributes": [{{"key": "a", "value": {{"stringValue": "b"}}}}, {{"key": "sampling.priority", "value": {value}}}]}}"#
        ))
    };
    let low = settings(SamplerMode::Proportional, 1.0);
    for value in [r#"{"intValue": 2}"#, r#"{"doubleValue": 0.5}"#, r#"{"stringValue": "1"}"#] {
        assert_eq!(states(&low, &with(value, "")), ["ot=th:0"], "{value}");
        assert_eq!(states(&settings(SamplerMode::Equalizing, 0.0), &with(value, "")), ["ot=th:0"], "{value}");
    }
    assert_eq!(states(&low, &with(r#"{"intValue": 2}"#, "ot=th:8")), ["ot=th:8"], "a probability never rises");
    for value in [r#"{"intValue": 0}"#, r#"{"doubleValue": 0}"#, r#"{"stringValue": "0.0"}"#] {
        assert_eq!(states(&settings(SamplerMode::HashSeed, 100.0), &with(value, "")), [""; 0], "{value}");
    }
    for value in [r#"{"intValue": -1}"#, r#"{"stringValue": "high"}"#, r#"{"boolValue": true}"#] {
        assert_eq!(states(&low, &with(value, "")), [""; 0], "{value}");
    }
}

#[test]
fn log_records_are_sampled_by_their_trace() {
    let threshold = |settings: &Settings, attributes: &str| {
        let record = format!(r#"{{"traceId": "{RARE}", "attributes": [{attributes}]}}"#);
        let found = super::tests::attributes(settings, &record)?;
        Some(found.into_iter().filter(|(key, _)| key.starts_with("sampling.")).collect::<Vec<_>>())
    };
    let text = |key: &str, value: &str| format!(r#"{{"key": "{key}", "value": {{"stringValue": "{value}"}}}}"#);
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let half = settings(SamplerMode::Proportional, 50.0);
    assert_eq!(threshold(&half, ""), Some(vec![pair("sampling.threshold", "8")]));
    assert_eq!(threshold(&half, &text("sampling.threshold", "c")), Some(vec![pair("sampling.threshold", "e")]));
    assert_eq!(threshold(&half, &text("sampling.randomness", "70000000000000")), None);
    let kept = Some(vec![pair("sampling.threshold", "no")]);
    assert_eq!(threshold(&half, &text("sampling.threshold", "no")), kept, "fails open, as it is");
    let closed = Settings { fail_closed: true, ..half };
    assert_eq!(threshold(&closed, &text("sampling.threshold", "no")), None);
}

#[test]
fn log_records_are_sampled_by_an_attribute() {
    let by = Settings {
        attribute_source: AttributeSource::Record,
        from_attribute: Some("id".into()),
        hash_seed: 49,
        fail_closed: true,
        ..settings(SamplerMode::HashSeed, 100.0)
    };
    let value = |value: &str| format!(r#"{{"traceId": "{HALF}", "attributes": [{{"key": "id", "value": {value}}}]}}"#);
    let randomness = |record: &str| attributes(&by, record).unwrap().into_iter().nth(1).unwrap().1;
    let expected = hash::randomness(49, b"1234").hex().to_string();
    for same in [r#"{"stringValue": "1234"}"#, r#"{"intValue": 1234}"#, r#"{"bytesValue": "MTIzNA=="}"#] {
        assert_eq!(randomness(&value(same)), expected, "{same}");
    }
    for missing in [value(r#"{"stringValue": ""}"#), format!(r#"{{"traceId": "{HALF}"}}"#)] {
        assert_eq!(attributes(&by, &missing), None);
    }
    // Where the trace is the source, the attribute stands in for one that is missing.
    let trace = Settings { attribute_source: AttributeSource::TraceId, ..by };
    let record = r#"{"attributes": [{"key": "id", "value": {"stringValue": "1234"}}]}"#;
    assert_eq!(attributes(&trace, record).unwrap().into_iter().nth(1).unwrap().1, expected);
}

/// How many of the hundred records in the Collector's own tests are kept, by these tests.
#[test]
fn the_same_records_are_kept_as_by_the_collector() {
    let record = |n: u8| {
        let id = [[0; 8], [n; 8]].concat();
        let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut attributes = vec![format!(r#"{{"key": "rando", "value": {{"intValue": {}}}}}"#, hash::fnv1a(123, &id))];
        if n.is_multiple_of(2) {
            let bytes = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, &id);
            attributes.push(format!(r#"{{"key": "foo", "value": {{"bytesValue": "{bytes}"}}}}"#));
            let text = if n == 0 { "" } else { &hex };
            attributes.push(format!(r#"{{"key": "bar", "value": {{"stringValue": "{text}"}}}}"#));
        }
        if n.is_multiple_of(4) {
            attributes.push(r#"{"key": "priority", "value": {"doubleValue": 100}}"#.to_owned());
        }
        format!(r#"{{"traceId": "{hex}", "attributes": [{}]}}"#, attributes.join(","))
    };
    let all = logs(&(0..100).map(record).collect::<Vec<_>>().join(","));
    for (percentage, source, priority, fail_closed, expected) in [
        (100.0, None, None, false, 100),
        (0.0, None, None, true, 0),
        (50.0, None, None, true, 45),
        (0.0, Some("foo"), None, false, 0),
        (100.0, Some("foo"), None, false, 100),
        (50.0, Some("foo"), None, true, 23),
        (50.0, Some("bar"), None, true, 29),
        (0.0, Some("rando"), Some("priority"), false, 25),
        (50.0, Some("rando"), Some("priority"), false, 64),
        (100.0, Some("rando"), Some("priority"), false, 100),
        (0.0, None, Some("priority"), false, 25),
        (50.0, None, Some("priority"), false, 57),
        (0.0, Some("foo"), Some("priority"), false, 25),
    ] {
        let settings = Settings {
            attribute_source: if source.is_some() { AttributeSource::Record } else { AttributeSource::TraceId },
            from_attribute: source.map(str::to_owned),
            sampling_priority: priority.map(str::to_owned),
            fail_closed,
            ..settings(SamplerMode::HashSeed, percentage)
        };
        let kept = sample(&settings, Signal::Logs, &all).items;
        assert_eq!(kept, expected, "{percentage} {source:?} {priority:?}");
    }
}

#[test]
fn a_log_record_can_ask_for_a_percentage() {
    // Whatever the others get, even nothing.
    for others in [0.0, 1.0] {
        let by = Settings { sampling_priority: Some("p".into()), ..settings(SamplerMode::Proportional, others) };
        let kept = |value: &str| {
            let record = format!(r#"{{"traceId": "{HALF}", "attributes": [{{"key": "p", "value": {value}}}]}}"#);
            attributes(&by, &record).map(|found| found.into_iter().nth(1).unwrap().1)
        };
        assert_eq!(kept(r#"{"intValue": 100}"#).as_deref(), Some("0"));
        assert_eq!(kept(r#"{"doubleValue": 250}"#).as_deref(), Some("0"));
        assert_eq!(kept(r#"{"doubleValue": 50}"#).as_deref(), Some("8"));
        for no in [r#"{"intValue": 0}"#, r#"{"intValue": 10}"#, r#"{"intValue": -5}"#, r#"{"stringValue": "100"}"#] {
            assert_eq!(kept(no), None, "{no}");
        }
    }
}

#[test]
fn decisions_are_counted_by_what_made_them() {
    let stats = SamplerStats::default();
    let by = Settings { from_attribute: Some("id".into()), ..settings(SamplerMode::HashSeed, 100.0) };
    let sampler = ProbabilisticSampler::new(&id(), &by, &stats);
    sampler
        .transform(
            Signal::Traces,
            &spans(&[span(HALF, ""), span(RARE, ""), span("", "")].join(",")),
            &mut UnlimitedAllowance,
        )
        .unwrap();
    sampler
        .transform(
            Signal::Logs,
            &logs(r#"{"attributes": [{"key": "id", "value": {"intValue": 1}}]}"#),
            &mut UnlimitedAllowance,
        )
        .unwrap();
    let counts = |policy: &str| (stats.policy(policy).kept(), stats.policy(policy).dropped());
    assert_eq!(counts("trace_id_hash"), (2, 0));
    assert_eq!(counts("missing_randomness"), (1, 0));
    assert_eq!(counts("id"), (1, 0));
    assert_eq!(stats.policies().len(), 6);
}

#[test]
fn nothing_of_what_is_kept_gets_lost() {
    let part = spans(&format!(
        r#"{{"traceId": "{HALF}", "spanId": "0102030405060708", "name": "n", "kind": 3, "startTimeUnixNano": "5",
            "attributes": [{{"key": "a", "value": {{"intValue": 1}}}}], "events": [{{"name": "e"}}], "status": {{"code": 2}}}}"#
    ));
    let mapped = sample(&settings(SamplerMode::Equalizing, 50.0), Signal::Traces, &part);
    let mut before = Vec::new();
    let mut after = Vec::new();
    json::encode(Signal::Traces, &part.bytes, &mut before).unwrap();
    json::encode(Signal::Traces, &mapped.bytes, &mut after).unwrap();
    let after = String::from_utf8(after).unwrap();
    assert_eq!(after.replace(r#""traceState":"ot=th:8","#, ""), String::from_utf8(before).unwrap());
}

proptest! {
    /// The traits of a scan change no decision on the request's spans.
    #[test]
    fn spans_are_decided_on_alike_whoever_stands_beside_them(
        of in prop::collection::vec((0_u128..4, 0..12), 1..12), percentage in 1.0_f32..100.0, mode in 0..3
    ) {
        let mode = [SamplerMode::HashSeed, SamplerMode::Equalizing, SamplerMode::Proportional][mode as usize];
        let each = of.iter().map(|(trace, kind)| {
            let id = trace.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835) | 1;
            let more = match kind {
                0 => r#", "traceState": "ot=th:8""#,
                1 => r#", "attributes": [{"key": "sampling.priority", "value": {"intValue": 1}}]"#,
                2 => r#", "attributes": [{"key": "service.namespace", "value": {"intValue": 1}}]"#,
                _ => "",
            };
            format!(r#"{{"traceId": "{id:032x}", "spanId": "0102030405060708"{more}, "name": "n"}}"#)
        });
        let each: Vec<String> = each.collect();
        let by = settings(mode, percentage);
        let alone: Vec<String> = each.iter().flat_map(|span| states(&by, &spans(span))).collect();
        prop_assert_eq!(states(&by, &spans(&each.join(","))), alone);
    }

    /// Items kept at a probability are kept at every higher one.
    #[test]
    fn modes_are_consistent(id in any::<u128>(), low in 0.01_f32..100.0, more in 0.0_f32..50.0, mode in 0..3) {
        let mode = [SamplerMode::HashSeed, SamplerMode::Equalizing, SamplerMode::Proportional][mode as usize];
        let part = spans(&span(&format!("{:032x}", id.max(1)), ""));
        let kept = |percentage| sample(&settings(mode, percentage), Signal::Traces, &part).items;
        prop_assert!(kept(low) <= kept(low + more));
    }

    /// No trace state makes the sampler fail, and every written one can be read.
    #[test]
    fn any_state_is_handled(state in "(ot=)?[a-z0-9:;,= ]{0,30}") {
        for mode in [SamplerMode::HashSeed, SamplerMode::Equalizing, SamplerMode::Proportional] {
            for written in states(&settings(mode, 60.0), &spans(&span(HALF, &state))) {
                prop_assert!(written == state || kubewake_otlp::TraceState::parse(written.as_bytes()).is_ok());
            }
        }
    }
}
