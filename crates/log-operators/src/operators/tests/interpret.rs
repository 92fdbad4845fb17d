use super::*;

#[test]
fn severities_are_words_and_numbers_of_the_preset() {
    let severity = |text: &str| {
        let entry = one("[{type: severity_parser, parse_from: body}]", text);
        (entry.severity_number, String::from_utf8(entry.severity_text).unwrap())
    };
    for (text, number) in
        [("trace", 1), ("WARN", 13), ("Warning", 13), ("err", 17), ("fatal4", 24), ("9", 9), ("critical", 0), ("25", 0)]
    {
        assert_eq!(severity(text), (number, text.to_owned()));
    }
}

#[test]
fn severity_of_a_number_is_its_text() {
    let operators = "[{type: json_parser, severity: {parse_from: attributes.level}}]";
    let severity = |text: &str| {
        let entry = one(operators, text);
        (entry.severity_number, String::from_utf8(entry.severity_text).unwrap())
    };
    assert_eq!(severity(r#"{"level": 9}"#), (9, "9".into()));
    assert_eq!(severity(r#"{"level": 30}"#), (0, "30".into()));
    assert_eq!(severity(r#"{"level": true}"#), (0, String::new()));
    let overwritten = one("[{type: severity_parser, parse_from: body, overwrite_text: true}]", "warning2");
    assert_eq!((overwritten.severity_number, overwritten.severity_text.as_slice()), (14, b"WARN2".as_slice()));
}

#[test]
fn time_of_a_record_comes_from_a_field() {
    let operators = "[{type: time_parser, parse_from: body, layout: '%Y-%m-%dT%H:%M:%S.%LZ'}]";
    assert_eq!(one(operators, "2023-11-14T22:13:20.5Z").timestamp, 1_700_000_000 * SECOND + SECOND / 2);
    assert_eq!(one(operators, "yesterday").timestamp, 0);
    assert_eq!(run("[{type: time_parser, parse_from: body, layout: '%Y', on_error: drop}]", &["x", "2023"]).len(), 1);
    let go = "[{type: time_parser, parse_from: body, layout_type: gotime, layout: 'Jan 2 2006 15:04:05'}]";
    assert_eq!(one(go, "Nov 14 2023 22:13:20").timestamp, 1_700_000_000 * SECOND);
    let half_day = "[{type: time_parser, parse_from: body, layout: '%m/%d/%y %I:%M:%S %p'}]";
    assert_eq!(one(half_day, "11/14/23 10:13:20 PM").timestamp, 1_700_000_000 * SECOND);
}

#[test]
fn ids_come_from_the_body_unless_other_fields_are_named() {
    let text =
        r#"{"trace_id": "0102030405060708090a0b0c0d0e0f10", "span_id": "A1A2A3A4A5A6A7A8", "trace_flags": "01"}"#;
    let entry = one("[{type: json_parser, parse_to: body}, {type: trace_parser}]", text);
    assert_eq!(entry.trace_id, Some([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]));
    assert_eq!(entry.span_id, Some([0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8]));
    assert_eq!(entry.trace_flags, Some(1));
    let entry = one("[{type: json_parser, trace: {}}]", text);
    assert_eq!((entry.trace_id, entry.span_id), (None, None));
}

#[test]
fn id_that_is_not_hexadecimal_does_not_hide_the_others() {
    let operators = "[{type: json_parser}, {type: trace_parser, trace_id: {parse_from: attributes.t}, span_id: {parse_from: attributes.s}}]";
    let entry = one(operators, r#"{"t": "0x01", "s": "a1a2a3a4a5a6a7a8"}"#);
    assert_eq!((entry.trace_id, entry.span_id), (None, Some([0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8])));
    assert_eq!(one(operators, r#"{"t": "odd", "s": ""}"#).span_id, None);
    assert_eq!(one(operators, r#"{"s": "ff"}"#).span_id, Some([0xff, 0, 0, 0, 0, 0, 0, 0]));
}

#[test]
fn scope_has_the_name_of_a_field() {
    assert_eq!(one("[{type: scope_name_parser, parse_from: body}]", "shop").scope_name, b"shop");
}
