//! Requests that a Collector refuses and accepts, case by case.

use super::*;
use crate::wire::{LEN, put_bytes, put_tag, put_uint};

/// A field with that content.
fn field(number: u32, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_bytes(&mut out, number, content);
    out
}

/// A request of one record in one scope of one resource.
fn request(record: &[u8]) -> Vec<u8> {
    field(1, &field(2, &field(2, record)))
}

fn refused(signal: Signal, bytes: &[u8]) -> ScanError {
    scan(signal, bytes).expect_err("it is refused")
}

const HEADER: usize = 6;

#[test]
fn nothing_is_a_request_of_nothing() {
    for signal in Signal::ALL {
        assert_eq!(scan(signal, &[]), Ok(ScanSummary::default()));
        let empty_entry = scan(signal, &[0x0a, 0x00]).unwrap();
        assert_eq!(empty_entry, ScanSummary { resources: 1, ..ScanSummary::default() });
    }
}

#[test]
fn a_record_is_counted_with_its_scope_and_resource() {
    let one = ScanSummary { items: 1, records: 1, resources: 1, scopes: 1, ..ScanSummary::default() };
    let found = scan(Signal::Traces, &request(&field(5, b"name"))).unwrap();
    assert_eq!(ScanSummary { traits: SpanTraits::default(), ..found }, one);
    assert_eq!(scan(Signal::Logs, &request(&field(3, b"INFO"))), Ok(one));
    let two_points = field(5, &[field(1, b""), field(1, b"")].concat());
    assert_eq!(scan(Signal::Metrics, &request(&two_points)), Ok(ScanSummary { items: 2, ..one }));
}

#[test]
fn what_all_spans_have_in_common_is_known() {
    let traits = |spans: &[Vec<u8>]| {
        let spans: Vec<u8> = spans.iter().flat_map(|span| field(2, span)).collect();
        scan(Signal::Traces, &field(1, &field(2, &spans))).unwrap().traits
    };
    let plain = [field(1, &[1; 16]), field(2, &[1; 8])].concat();
    let with = |more: Vec<u8>| [plain.clone(), more].concat();
    let key = |length: usize| field(9, &field(1, &vec![b'k'; length]));
    assert!(traits(std::slice::from_ref(&plain)).has_plain_ids());
    assert!(traits(&[plain.clone(), with([field(5, b"name"), key(3), field(13, b"link")].concat())]).has_plain_ids());
    for other in [
        with(field(3, b"a=b")),
        with(field(1, &[2; 16])),
        [field(2, &[1; 8]), field(1, &[1; 16])].concat(),
        [field(1, &[1; 16]), field(2, &[0; 8])].concat(),
        field(5, b"name"),
        Vec::new(),
    ] {
        assert!(!traits(&[plain.clone(), other.clone(), plain.clone()]).has_plain_ids(), "{other:?}");
    }
    let short = "k".repeat(17);
    let long = "k".repeat(200);
    assert!(!traits(&[with(key(16)), with(key(18))]).may_have(&short));
    assert!(traits(&[with(key(16)), with(key(17))]).may_have(&short));
    assert!(!traits(&[with(key(17))]).may_have(&long));
    assert!(traits(&[with(key(200))]).may_have(&long), "also where it is not short");
    let behind_value = field(9, &[field(2, b""), field(1, short.as_bytes())].concat());
    assert!(traits(&[with(behind_value)]).may_have(&short));
    assert!(SpanTraits::default().may_have(&short) && !SpanTraits::default().has_plain_ids());
}

#[test]
fn metric_with_several_data_messages_is_refused() {
    let gauge = field(5, &field(1, b"").repeat(3));
    let sum = field(7, &field(1, b""));
    assert_eq!(scan(Signal::Metrics, &request(&gauge)).unwrap().items, 3);
    for twice in [[gauge.clone(), sum].concat(), gauge.repeat(2)] {
        assert_eq!(refused(Signal::Metrics, &request(&twice)).kind, ScanErrorKind::RepeatedData);
    }
}

#[test]
fn a_length_past_the_end_is_refused_where_it_stands() {
    let past_end = [0x0a, 0x05, 0x00];
    assert_eq!(refused(Signal::Traces, &past_end), ScanError { kind: WireError::Length.into(), offset: 0 });
    // A name longer than its span, with bytes enough behind the span.
    let mut bytes = request(&[0x2a, 0x7f, b'x']);
    bytes.extend(field(1, &[0; 200]));
    assert_eq!(refused(Signal::Traces, &bytes), ScanError { kind: WireError::Length.into(), offset: HEADER });
}

#[test]
fn a_truncated_tag_and_a_long_varint_are_refused() {
    assert_eq!(refused(Signal::Logs, &[0x80]).kind, WireError::Truncated.into());
    let mut eleven = vec![0x08];
    eleven.extend([0xff; 11]);
    assert_eq!(refused(Signal::Traces, &request(&eleven)).kind, ScanErrorKind::FieldType { number: 1, wire: 0 });
    let mut unknown = vec![0xa0, 0x1f];
    unknown.extend([0xff; 11]);
    assert_eq!(refused(Signal::Traces, &request(&unknown)).kind, WireError::VarintOverflow.into());
}

#[test]
fn a_known_field_with_another_wire_type_is_refused_at_every_level() {
    let as_varint = |number| {
        let mut out = Vec::new();
        put_uint(&mut out, number, 1);
        out
    };
    let wrong = |number| ScanErrorKind::FieldType { number, wire: 0 };
    for signal in Signal::ALL {
        assert_eq!(refused(signal, &as_varint(1)).kind, wrong(1), "resource entry");
        assert_eq!(refused(signal, &field(1, &as_varint(2))).kind, wrong(2), "scope entry");
        assert_eq!(refused(signal, &field(1, &field(2, &as_varint(3)))).kind, wrong(3), "schema url");
        assert_eq!(refused(signal, &request(&as_varint(3))).kind, wrong(3), "text of a record");
    }
    assert_eq!(refused(Signal::Traces, &request(&as_varint(5))).kind, wrong(5), "name of a span");
    assert_eq!(refused(Signal::Metrics, &request(&field(5, &as_varint(1)))).kind, wrong(1), "points of a gauge");
    assert_eq!(refused(Signal::Metrics, &request(&field(5, &field(1, &as_varint(7))))).kind, wrong(7), "of a point");
}

#[test]
fn groups_and_unknown_wire_types_are_refused_down_to_the_record() {
    for wire in [3, 4, 6, 7] {
        let mut bad = Vec::new();
        put_tag(&mut bad, 100, wire);
        for level in [bad.clone(), field(1, &bad), field(1, &field(2, &bad)), request(&bad)] {
            for signal in Signal::ALL {
                assert_eq!(refused(signal, &level).kind, WireError::WireType(wire).into());
            }
        }
        let point = request(&field(9, &field(1, &bad)));
        assert_eq!(refused(Signal::Metrics, &point).kind, WireError::WireType(wire).into());
    }
    assert_eq!(refused(Signal::Traces, &request(&[0x00, 0x01])).kind, WireError::FieldZero.into());
}

#[test]
fn ids_have_their_length_or_none() {
    for (signal, trace_id, span_ids) in [(Signal::Traces, 1, &[2, 4][..]), (Signal::Logs, 9, &[10][..])] {
        for len in [1, 15, 17] {
            let bytes = request(&field(trace_id, &vec![1; len]));
            let expected = ScanError { kind: ScanErrorKind::TraceId(len), offset: HEADER };
            assert_eq!(refused(signal, &bytes), expected);
        }
        assert!(scan(signal, &request(&field(trace_id, &[]))).is_ok());
        for &number in span_ids {
            assert_eq!(refused(signal, &request(&field(number, &[1; 7]))).kind, ScanErrorKind::SpanId(7));
            assert_eq!(refused(signal, &request(&field(number, &[1; 16]))).kind, ScanErrorKind::SpanId(16));
            assert!(scan(signal, &request(&field(number, &[]))).is_ok());
        }
    }
}

#[test]
fn ids_of_zeroes_are_accepted_and_reported() {
    let zero = |signal, number, len| scan(signal, &request(&field(number, &vec![0; len]))).unwrap().zero_ids;
    assert!(zero(Signal::Traces, 1, 16) && zero(Signal::Traces, 2, 8) && zero(Signal::Traces, 4, 8));
    assert!(zero(Signal::Logs, 9, 16) && zero(Signal::Logs, 10, 8));
    assert!(!scan(Signal::Traces, &request(&field(1, &[1; 16]))).unwrap().zero_ids);
}

#[test]
fn a_request_of_another_signal_is_refused_when_its_fields_differ() {
    // A metric named "cpu" has three bytes where a span has its trace id.
    let metrics = request(&field(1, b"cpu"));
    assert!(scan(Signal::Metrics, &metrics).is_ok());
    assert_eq!(refused(Signal::Traces, &metrics).kind, ScanErrorKind::TraceId(3));
}

#[test]
fn what_a_collector_takes_is_taken() {
    let twice = [field(5, b"first"), field(5, b"second")].concat();
    let mut unknown_enum = Vec::new();
    put_uint(&mut unknown_enum, 6, 99);
    let mut unknown_field = Vec::new();
    put_tag(&mut unknown_field, 1000, LEN);
    unknown_field.push(0);
    for span in [field(5, b"\xff\xfe"), twice, unknown_enum, unknown_field.clone(), Vec::new()] {
        assert!(scan(Signal::Traces, &request(&span)).is_ok());
    }
    // `instrumentation_library_spans`, which OTLP has removed.
    assert!(scan(Signal::Traces, &field(1, &unknown_field)).is_ok());
    // The content of an attribute is not checked.
    assert!(scan(Signal::Traces, &request(&field(9, b"\xff\xff"))).is_ok());
    // Bucket counts, packed and not.
    let unpacked = [0x31, 1, 0, 0, 0, 0, 0, 0, 0];
    for point in [field(6, &[0; 16]), unpacked.to_vec()] {
        assert!(scan(Signal::Metrics, &request(&field(9, &field(1, &point)))).is_ok());
    }
}

#[test]
fn an_error_says_what_and_where() {
    let error = refused(Signal::Traces, &request(&field(1, &[1; 15])));
    assert_eq!(error.to_string(), "at byte 6: a trace id has 15 bytes, not 16");
}
