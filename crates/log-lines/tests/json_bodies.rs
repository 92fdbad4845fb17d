//! What becomes of lines that are JSON objects, as prost reads it.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/decoded.rs"]
mod decoded;

use std::sync::Arc;

use kubewake_log_lines::{
    BodyParsing, ContainerLogDecoder, ContainerSettings, LinePosition, ParseCounts, RecordEnvelope, RecordSettings,
    RequestBuilder, RequestLimits,
};
use opentelemetry_proto::tonic::logs::v1::LogRecord;

use decoded::{read_records, show, show_attributes};

const WITHOUT_ORIGINAL: BodyParsing = BodyParsing { keeps_original: false, ..BodyParsing::ALL };

fn parse_with(parsing: BodyParsing, line: &[u8]) -> (LogRecord, ParseCounts) {
    let mut envelope = RecordEnvelope::default();
    envelope.add_record_attribute("log.file.name", "0.log");
    let settings = RecordSettings { parsing, ..RecordSettings::default() };
    let limits = RequestLimits { max_bytes: 1 << 24, max_records: 100 };
    let mut builder = RequestBuilder::new(Arc::new(envelope), settings, limits);
    let mut decoder = ContainerLogDecoder::new(ContainerSettings::default());
    // A line in front and one behind show that neither disturbs the other.
    let time = "1970-01-01T00:00:01Z stdout F ";
    let log = [b"first\n", time.as_bytes(), line, b"\nlast\n"].concat();
    assert_eq!(decoder.push(&log, LinePosition::default(), 2, &mut builder), log.len());
    let request = builder.finish(decoder.commit_position()).unwrap();
    let [first, record, last] = <[LogRecord; 3]>::try_from(read_records(&request.body)).unwrap();
    assert_eq!((show(first.body.as_ref()), show(last.body.as_ref())), ("\"first\"".into(), "\"last\"".into()));
    assert_eq!((record.time_unix_nano, record.observed_time_unix_nano), (1_000_000_000, 2));
    (record, builder.take_counts())
}

/// Body and attributes, without those that the agent sets.
fn parse(line: &str) -> (String, String) {
    let (record, _) = parse_with(WITHOUT_ORIGINAL, line.as_bytes());
    let attributes = show_attributes(&record.attributes);
    let own = r#"log.iostream="stdout",log.file.name="0.log""#;
    let attributes = attributes.strip_suffix(own).expect("the agent's attributes").trim_end_matches(',').to_owned();
    (show(record.body.as_ref()), attributes)
}

fn attributes(line: &str) -> String {
    let (body, attributes) = parse(line);
    assert_eq!(body, format!("{line:?}"), "a line without message is the body");
    attributes
}

#[test]
fn members_become_attributes_of_their_types() {
    for (line, expected) in [
        ("{}", ""),
        (" { } ", ""),
        (
            r#"{"a": 1, "b": 1.5, "c": "x", "d": true, "e": null, "f": [1, "y"], "g": {"h": 1}}"#,
            r#"a=1,b=1.5,c="x",d=true,e=null,f=[1,"y"],g={h=1}"#,
        ),
        (
            r#"{"big":9007199254740993,"huge":123456789012345678901234567890,"n":-3}"#,
            "big=9007199254740993,huge=1.2345678901234568e29,n=-3",
        ),
        (r#"{"u":"\u00e9\n","a\tb":"","":0}"#, "u=\"é\\n\",a\tb=\"\",=0"),
        (r#"{"l":[],"o":{},"n":[[],[{}],[null,false]]}"#, "l=[],o={},n=[[],[{}],[null,false]]"),
    ] {
        assert_eq!(attributes(line), expected, "{line}");
    }
}

#[test]
fn long_values_have_long_lengths() {
    for length in [100, 126, 127, 128, 200, 16_000, 16_383, 16_384, 20_000, 70_000] {
        let text = "x".repeat(length);
        let line = format!(r#"{{"a":{{"b":["{text}"]}},"c":"{text}","msg":"{text}"}}"#);
        assert_eq!(parse(&line), (format!("{text:?}"), format!(r#"a={{b=["{text}"]}},c="{text}""#)));
    }
}

#[test]
fn last_of_members_with_the_same_key_remains() {
    for (line, expected) in [
        (r#"{"a":1,"a":2}"#, "a=2"),
        (r#"{"a":1,"b":2,"a":3,"c":4,"a":5}"#, "b=2,c=4,a=5"),
        (r#"{"a":{"x":1,"x":[2,3],"y":{"x":4,"z":5,"x":6}},"x":7}"#, "a={x=[2,3],y={z=5,x=6}},x=7"),
        (r#"{"\u0061":1,"a":2,"ab":3,"ba":4}"#, "a=2,ab=3,ba=4"),
    ] {
        assert_eq!(attributes(line), expected, "{line}");
    }
    assert_eq!(parse(r#"{"msg":"one","msg":"two"}"#), ("\"two\"".into(), String::new()));
}

#[test]
fn lines_that_are_no_objects_stay_as_they_are() {
    for line in [
        "{not json}",
        "{\"a\":1,}",
        "{\"a\" 1}",
        "{\"a\":01}",
        "{\"a\":1}{\"b\":2}",
        "{\"a\":\"\t\"}",
        "{\"a\":\"\\x\"}",
        "{\"a\":1e999}",
        "{\"msg\":\"\\u12\"}",
        "{\"level\":{\"a\":}}",
        "{\"a\":[1,2}",
    ] {
        let (record, counts) = parse_with(BodyParsing::ALL, line.as_bytes());
        assert_eq!(show(record.body.as_ref()), format!("{line:?}"));
        assert_eq!(record.attributes.len(), 2, "{line}");
        assert_eq!(counts, ParseCounts { unparsed_bodies: 1, ..ParseCounts::default() }, "{line}");
    }
    for line in ["[1,2,3]", "5", "\"x\"", "null", "{", "{\"level\":\"warn\",\"broken\":", "text {\"a\":1}"] {
        let (record, counts) = parse_with(BodyParsing::ALL, line.as_bytes());
        assert_eq!(show(record.body.as_ref()), format!("{line:?}"));
        assert_eq!((record.attributes.len(), counts), (2, ParseCounts::default()), "{line}");
    }
}

#[test]
fn objects_that_are_too_deep_or_too_large_stay_as_they_are() {
    let deep = |depth: usize| format!("{{\"a\":{}1{}}}", "[".repeat(depth), "]".repeat(depth));
    let wide = |count: usize| {
        format!("{{{}}}", (0..count).map(|index| format!("\"k{index}\":0")).collect::<Vec<_>>().join(","))
    };
    let long = |count: usize| format!("{{\"a\":[{}]}}", vec!["0"; count].join(","));
    for (line, is_parsed) in [
        (deep(31), true),
        (deep(32), false),
        (deep(100_000), false),
        (wide(1024), true),
        (wide(1025), false),
        (long(4095), true),
        (long(4096), false),
    ] {
        let (_, counts) = parse_with(BodyParsing::ALL, line.as_bytes());
        assert_eq!((counts.parsed_bodies, counts.unparsed_bodies), (u64::from(is_parsed), u64::from(!is_parsed)));
    }
}

#[test]
fn message_becomes_the_body_and_the_line_is_kept_on_request() {
    assert_eq!(parse(r#"{"message":"sold","n":3}"#), ("\"sold\"".into(), "n=3".into()));
    assert_eq!(parse(r#"{"message":"m","msg":"line\none"}"#), ("\"line\\none\"".into(), "message=\"m\"".into()));
    assert_eq!(parse(r#"{"msg":{"a":1},"b":2}"#), ("{a=1}".into(), "b=2".into()));
    assert_eq!(parse(r#"{"msg":""}"#), ("\"\"".into(), String::new()));
    assert_eq!(parse(r#"{"msg":null}"#), (format!("{:?}", r#"{"msg":null}"#), "msg=null".into()));
    let line = r#"{"msg":"sold"}"#;
    let (record, counts) = parse_with(BodyParsing::ALL, line.as_bytes());
    let expected = format!("log.original={line:?},log.iostream=\"stdout\",log.file.name=\"0.log\"");
    assert_eq!((show(record.body.as_ref()), show_attributes(&record.attributes)), ("\"sold\"".into(), expected));
    assert_eq!(counts.parsed_bodies, 1);
}

#[test]
fn levels_become_severities() {
    for (line, number, text, rest) in [
        (r#"{"level":"warn"}"#, 13, "warn", ""),
        (r#"{"level":30}"#, 9, "30", ""),
        (r#"{"level":"9"}"#, 9, "9", ""),
        (r#"{"severity":"ERROR","lvl":"x"}"#, 17, "ERROR", "lvl=\"x\""),
        (r#"{"level":"info","log.level":"error"}"#, 17, "error", "level=\"info\""),
        (r#"{"level":"odd"}"#, 0, "odd", ""),
        (r#"{"level":true}"#, 0, "", "level=true"),
        (r#"{"level":300,"severity":"info"}"#, 9, "info", "level=300"),
        (r#"{"level":"","severity":{"a":1}}"#, 0, "", "level=\"\",severity={a=1}"),
    ] {
        let (record, _) = parse_with(WITHOUT_ORIGINAL, line.as_bytes());
        assert_eq!((record.severity_number, record.severity_text.as_str()), (number, text), "{line}");
        assert_eq!(attributes(line), rest);
    }
}

#[test]
fn ids_of_traces_and_spans_are_found_in_many_spellings() {
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let span = "00f067aa0ba902b7";
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    for (line, ids, rest) in [
        (format!(r#"{{"trace_id":"{trace}","span_id":"{span}","trace_flags":"01"}}"#), (trace, span, 1), ""),
        (format!(r#"{{"traceId":"{trace}","spanId":"{span}"}}"#), (trace, span, 0), ""),
        (format!(r#"{{"trace.id":"{trace}","span.id":"{span}"}}"#), (trace, span, 0), ""),
        (format!(r#"{{"traceparent":"00-{trace}-{span}-01"}}"#), (trace, span, 1), ""),
        (format!(r#"{{"otelTraceID":"{trace}","otelSpanID":"{span}","otelTraceSampled":true}}"#), (trace, span, 1), ""),
        (
            format!(
                r#"{{"logging.googleapis.com/trace":"projects/p/traces/{trace}","logging.googleapis.com/spanId":"{span}","logging.googleapis.com/trace_sampled":true}}"#
            ),
            (trace, span, 1),
            "",
        ),
        (
            r#"{"dd.trace_id":"511","dd.span_id":255}"#.into(),
            ("000000000000000000000000000001ff", "00000000000000ff", 0),
            "",
        ),
        (r#"{"trace_id":"short","span_id":"x"}"#.into(), ("", "", 0), "trace_id=\"short\",span_id=\"x\""),
        (format!(r#"{{"span_id":"{span}"}}"#), ("", "", 0), "span_id=\"00f067aa0ba902b7\""),
        (format!(r#"{{"trace_id":"zz","traceId":"{trace}"}}"#), (trace, "", 0), "trace_id=\"zz\""),
    ] {
        let (record, _) = parse_with(WITHOUT_ORIGINAL, line.as_bytes());
        let found = (hex(&record.trace_id), hex(&record.span_id), record.flags);
        assert_eq!(found, (ids.0.to_owned(), ids.1.to_owned(), ids.2), "{line}");
        assert_eq!(attributes(&line), rest);
    }
}

#[test]
fn parts_are_switched_one_by_one() {
    let line = r#"{"msg":"m","level":"info","trace_id":"4bf92f3577b34da6a3ce929d0e0e4736"}"#;
    let only_json = BodyParsing { parses_json: true, ..BodyParsing::OFF };
    let (record, _) = parse_with(only_json, line.as_bytes());
    assert_eq!(record.attributes.len(), 5);
    assert_eq!((record.severity_number, record.trace_id.len()), (0, 0));
    assert_eq!(show(record.body.as_ref()), format!("{line:?}"));
    let (record, counts) = parse_with(BodyParsing::OFF, line.as_bytes());
    assert_eq!((record.attributes.len(), counts), (2, ParseCounts::default()));
}

#[test]
fn members_do_not_replace_attributes_of_the_agent() {
    let line = r#"{"log.iostream":"stderr","log.file.name":"mine","log.original":"x","logtag":"y","msg":"m"}"#;
    let (record, counts) = parse_with(BodyParsing::ALL, line.as_bytes());
    let expected = format!("logtag=\"y\",log.original={line:?},log.iostream=\"stdout\",log.file.name=\"0.log\"");
    assert_eq!(show_attributes(&record.attributes), expected);
    assert_eq!((record.dropped_attributes_count, counts.dropped_attributes), (3, 3));
}

#[test]
fn line_with_invalid_utf8_is_parsed_with_replacements() {
    let (record, _) = parse_with(WITHOUT_ORIGINAL, b"{\"msg\":\"a\xff\",\"b\xfe\":1}");
    assert_eq!(show(record.body.as_ref()), "\"a\u{fffd}\"");
    assert!(show_attributes(&record.attributes).starts_with("b\u{fffd}=1,"));
}

#[test]
fn attributes_of_docker_lines_are_kept() {
    let settings = RecordSettings { parsing: BodyParsing::ALL, ..RecordSettings::default() };
    let limits = RequestLimits { max_bytes: 1 << 20, max_records: 100 };
    let mut builder = RequestBuilder::new(Arc::default(), settings, limits);
    let mut decoder = ContainerLogDecoder::new(ContainerSettings::default());
    let line = |log: &str| {
        format!(
            "{{\"log\":{log:?},\"stream\":\"stdout\",\"attrs\":{{\"tag\":\"t\"}},\"time\":\"1970-01-01T00:00:01Z\"}}\n"
        )
    };
    let log = [line("text\n"), line("{\"a\":1,\"attrs\":2}\n")].concat();
    decoder.push(log.as_bytes(), LinePosition::default(), 2, &mut builder);
    let records = read_records(&builder.finish(decoder.commit_position()).unwrap().body);
    let shown: Vec<_> = records.iter().map(|record| show_attributes(&record.attributes)).collect();
    assert_eq!(shown, [r#"attrs={tag="t"},log.iostream="stdout""#, r#"a=1,attrs={tag="t"},log.iostream="stdout""#]);
}
