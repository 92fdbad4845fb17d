use super::*;

#[test]
fn json_becomes_attributes_or_the_body() {
    let text = r#"{"a": 1, "c": "x", "d": true, "e": null, "f": [1, "y"], "g": {"h": 1}}"#;
    attributes("[{type: json_parser}]", text, "{a: 1.0, c: 'x', d: true, e: null, f: [1.0, 'y'], g: {h: 1.0}}");
    attributes("[{type: json_parser, parse_ints: true}]", r#"{"a": 1, "b": 1.5}"#, "{a: 1, b: 1.5}");
    attributes("[{type: json_parser, parse_to: attributes.json}]", r#"{"a": 1}"#, "{json: {a: 1.0}}");
    let entry = one("[{type: json_parser, parse_to: body}]", r#"{"a": {"k": "v"}}"#);
    assert_eq!(shown(&entry.body), "{a: {k: 'v'}}");
    let entry = one("[{type: json_parser, parse_to: resource}]", r#"{"a": "x"}"#);
    assert_eq!((map_text(&entry.resource), entry.attributes.len()), ("{a: 'x'}".into(), 0));
}

#[test]
fn text_that_is_no_object_is_sent_or_dropped() {
    for text in ["no json", "[1, 2]", "5", "null"] {
        let entry = one("[{type: json_parser}]", text);
        assert_eq!((shown(&entry.body), entry.attributes.len()), (text.to_owned(), 0));
    }
    let mut chain = chain("[{type: json_parser, on_error: drop_quiet}]");
    let mut out = Vec::new();
    chain.process(line("no json", 0), &mut out);
    chain.process(line("also none", 1), &mut out);
    assert_eq!(out, []);
    let failure = chain.take_failures().remove(0);
    assert_eq!(
        (failure.operator.as_str(), failure.failures, failure.dropped, failure.is_quiet),
        ("json_parser", 2, 2, true)
    );
    assert!(failure.error.to_string().contains("not JSON"), "{failure:?}");
}

#[test]
fn body_is_replaced_by_a_field_that_was_parsed() {
    let operators = "[{type: json_parser, body: attributes.msg}]";
    assert_eq!(shown(&one(operators, r#"{"msg": "hi"}"#).body), "hi");
    assert_eq!(shown(&one(operators, r#"{"k": 2}"#).body), r#"{"k": 2}"#);
}

#[test]
fn parsers_within_a_parser_all_run_even_if_one_fails() {
    let operators = "[{type: json_parser, timestamp: {parse_from: attributes.ts, layout: '%Y'}, severity: {parse_from: attributes.level}}]";
    let entry = one(operators, r#"{"level": "error", "ts": "bad"}"#);
    assert_eq!((entry.timestamp, entry.severity_number), (0, 17));
}

#[test]
fn named_groups_become_attributes() {
    attributes(r"[{type: regex_parser, regex: '^(?P<x>a)(?P<y>b)?(c)?$'}]", "a", "{x: 'a', y: ''}");
    attributes(r"[{type: regex_parser, regex: '^(?P<n>\d+)$'}]", "none", "{}");
    attributes(
        r"[{type: regex_parser, regex: '(?P<j>\{.*)'}, {type: json_parser, parse_from: attributes.j}, {type: remove, field: attributes.j}]",
        "x {\"a\": 1}",
        "{a: 1.0}",
    );
    attributes("[{type: json_parser, parse_from: attributes.none}]", "x", "{}");
}

#[test]
fn pairs_of_keys_and_values_may_be_quoted() {
    attributes(
        "[{type: key_value_parser}]",
        r#"a=1 b="two words" c='x y' e= f=x=y"#,
        "{a: '1', b: 'two words', c: 'x y', e: '', f: 'x=y'}",
    );
    attributes("[{type: key_value_parser, delimiter: ':', pair_delimiter: ';'}]", "a:1; b: 2;", "{a: '1', b: '2'}");
    for text in ["a=1 d", "a='open", ""] {
        attributes("[{type: key_value_parser}]", text, "{}");
    }
}

#[test]
fn row_of_a_table_has_the_columns_of_its_header() {
    attributes(
        "[{type: csv_parser, header: 'a,b,c'}]",
        r#"1,"two, ""three""",4"#,
        "{a: '1', b: 'two, \"three\"', c: '4'}",
    );
    attributes(
        "[{type: csv_parser, header: 'a;b', delimiter: ';', ignore_quotes: true}]",
        "\"1;2\"",
        "{a: '\"1', b: '2\"'}",
    );
    attributes("[{type: csv_parser, header: 'a,b', lazy_quotes: true}]", "x\"y,\"p\"q\"", "{a: 'x\"y', b: 'p\"q'}");
    attributes(
        "[{type: add, field: attributes.h, value: 'x|y'}, {type: csv_parser, header_attribute: h, header_delimiter: '|'}]",
        "1,2",
        "{h: 'x|y', x: '1', y: '2'}",
    );
    for text in ["1,2", "x\"y,1,2", "\"open,1,2", ""] {
        attributes("[{type: csv_parser, header: 'a,b,c'}]", text, "{}");
    }
}

#[test]
fn array_of_json_is_a_value_or_has_a_header() {
    attributes("[{type: json_array_parser, parse_to: attributes.l}]", "[1, \"two\"]", "{l: [1, 'two']}");
    attributes("[{type: json_array_parser, header: 'a,b'}]", "[1, \"two\"]", "{a: 1, b: 'two'}");
    attributes("[{type: json_array_parser}]", "[1]", "{}");
}

#[test]
fn uri_has_parts() {
    attributes(
        "[{type: uri_parser}]",
        "https://u:p@shop.example:8443/c%20art?x=1&x=a+b&y=%33#top",
        "{host: 'shop.example', path: '/c%20art', port: '8443', query: {x: ['1', 'a b'], y: ['3']}, scheme: 'https', user: 'u'}",
    );
    attributes("[{type: uri_parser}]", "http://[::1]:80", "{host: '::1', port: '80', scheme: 'http'}");
    attributes("[{type: uri_parser}]", "/path?q", "{path: '/path', query: {q: ['']}}");
    for text in ["", "no uri", ":x", "http://h:port/", "/x?%zz"] {
        attributes("[{type: uri_parser}]", text, "{}");
    }
}

#[test]
fn syslog_of_rfc_5424_is_parsed() {
    let text = r#"<86>1 2023-11-14T22:13:20.5+00:00 host app 12 - [a@1 k="v \"q\"" l="2"][b] the message"#;
    let entry = one("[{type: syslog_parser, protocol: rfc5424}]", text);
    assert_eq!(
        map_text(&entry.attributes),
        "{appname: 'app', facility: 10, facility_text: 'authpriv', hostname: 'host', message: 'the message', priority: 86, \
         proc_id: '12', structured_data: {a@1: {k: 'v \"q\"', l: '2'}, b: {}}, version: 1}"
    );
    assert_eq!((entry.timestamp, entry.severity_number), (1_700_000_000 * SECOND + SECOND / 2, 9));
    assert_eq!(entry.severity_text, b"info");
    attributes(
        "[{type: syslog_parser, protocol: rfc5424, allow_skip_pri_header: true}]",
        "1 - - - - - - m",
        "{message: 'm', version: 1}",
    );
}

#[test]
fn syslog_of_rfc_3164_is_parsed() {
    let operators = "[{type: syslog_parser, protocol: rfc3164}]";
    let entry = one(operators, "<34>Nov 14 22:13:20 host su[7]: 'su root' failed");
    assert_eq!(
        map_text(&entry.attributes),
        "{appname: 'su', facility: 4, facility_text: 'auth', hostname: 'host', message: ''su root' failed', priority: 34, \
         proc_id: '7'}"
    );
    assert_eq!((entry.timestamp, entry.severity_number), (1_700_000_000 * SECOND, 18));
    assert_eq!(shown(&one(operators, "<34>Nov  4 22:13:20 host no tag").attributes["message"]), "no tag");
}

#[test]
fn syslog_messages_may_have_a_frame() {
    let counted = "[{type: syslog_parser, protocol: rfc5424, enable_octet_counting: true}]";
    assert_eq!(shown(&one(counted, "21 <13>1 - - - - - - m rest").attributes["message"]), "m r");
    let trailed = "[{type: syslog_parser, protocol: rfc5424, non_transparent_framing_trailer: LF}]";
    assert_eq!(shown(&one(trailed, "<13>1 - - - - - - m\n").attributes["message"]), "m");
    attributes(
        "[{type: syslog_parser, protocol: none}]",
        "<13>x",
        "{facility: 1, facility_text: 'user', message: '<13>x', priority: 13}",
    );
    for text in ["", "<192>1 - - - - - - m", "<13>x", "<13>1 - - - - -", "<13>1 - - - - - [a m", "no priority"] {
        attributes("[{type: syslog_parser, protocol: rfc5424}]", text, "{}");
    }
}
