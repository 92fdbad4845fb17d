//! Limits of the JSON encoding: accepted and refused input, and the cost of any input.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use kubewake_otlp::Signal;
use kubewake_otlp::json::{self, EncodeError, JsonErrorKind, MAX_MESSAGE_DEPTH, RecordKind};

/// A log record, decoded and encoded.
fn log(record: &str) -> Result<String, JsonErrorKind> {
    let document = format!(r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{record}]}}]}}]}}"#);
    let shown = show(Signal::Logs, &document)?;
    let record = shown.strip_prefix(r#"{"resourceLogs":[{"scopeLogs":[{"logRecords":["#).unwrap();
    Ok(record.strip_suffix("]}]}]}").unwrap().into())
}

fn body(value: &str) -> Result<String, JsonErrorKind> {
    let shown = log(&format!(r#"{{"body":{value}}}"#))?;
    Ok(shown.strip_prefix(r#"{"body":"#).unwrap().strip_suffix('}').unwrap().into())
}

fn show(signal: Signal, document: &str) -> Result<String, JsonErrorKind> {
    let protobuf = json::decode(signal, document.as_bytes()).map_err(|error| error.reason())?;
    let mut text = Vec::new();
    json::encode(signal, &protobuf, &mut text).unwrap();
    Ok(String::from_utf8(text).unwrap())
}

fn record(record: RecordKind, protobuf: &[u8]) -> Result<String, EncodeError> {
    let mut text = Vec::new();
    json::encode_record(record, protobuf, &mut text)?;
    Ok(String::from_utf8(text).unwrap())
}

#[test]
fn integers_are_numbers_or_text_and_never_rounded() {
    for (given, expected) in [
        ("5", "5"),
        ("-5", "-5"),
        ("-0", "0"),
        (r#""-5""#, "-5"),
        ("9223372036854775807", "9223372036854775807"),
        (r#""-9223372036854775808""#, "-9223372036854775808"),
    ] {
        assert_eq!(body(&format!(r#"{{"intValue":{given}}}"#)), Ok(format!(r#"{{"intValue":"{expected}"}}"#)));
    }
    for given in ["9223372036854775808", "1.0", "1e3", r#""""#, r#""1.0""#, r#"" 1""#, r#""+1""#, r#""0x1""#] {
        assert_eq!(body(&format!(r#"{{"intValue":{given}}}"#)), Err(JsonErrorKind::Integer), "{given}");
    }
    for given in ["true", "{}", "[]"] {
        assert_eq!(body(&format!(r#"{{"intValue":{given}}}"#)), Err(JsonErrorKind::Expected("a number")), "{given}");
    }
    assert_eq!(log(r#"{"flags":4294967296}"#), Err(JsonErrorKind::Integer));
    assert_eq!(log(r#"{"flags":-1}"#), Err(JsonErrorKind::Integer));
    assert_eq!(log(r#"{"flags":"7"}"#), Ok(r#"{"flags":7}"#.into()));
}

#[test]
fn doubles_are_numbers_or_text_with_the_three_that_json_has_not() {
    for (given, expected) in [
        ("1", "1.0"),
        ("-0.0", "-0.0"),
        ("1E+2", "100.0"),
        (r#""1.25""#, "1.25"),
        (r#""Infinity""#, r#""Infinity""#),
        (r#""-Infinity""#, r#""-Infinity""#),
        (r#""NaN""#, r#""NaN""#),
        ("5e-324", "5e-324"),
        ("1.7976931348623157e308", "1.7976931348623157e308"),
        ("0.1", "0.1"),
        ("123456789012345680000", "1.2345678901234568e20"),
    ] {
        assert_eq!(body(&format!(r#"{{"doubleValue":{given}}}"#)), Ok(format!(r#"{{"doubleValue":{expected}}}"#)));
    }
    for given in ["1e999", r#""-1e999""#, r#""""#, r#""one""#] {
        assert_eq!(body(&format!(r#"{{"doubleValue":{given}}}"#)), Err(JsonErrorKind::Double), "{given}");
    }
}

#[test]
fn an_enum_is_a_number_or_a_name() {
    let shown = |given: &str| log(&format!(r#"{{"severityNumber":{given}}}"#));
    assert_eq!(shown(r#""SEVERITY_NUMBER_WARN2""#), shown("14"));
    assert_eq!(shown("-7"), Ok(r#"{"severityNumber":-7}"#.into()));
    assert_eq!(shown(r#""WARN""#), Err(JsonErrorKind::EnumName));
    assert_eq!(shown("1.5"), Err(JsonErrorKind::Integer));
    assert_eq!(shown("4294967296"), Err(JsonErrorKind::Integer));
}

#[test]
fn an_id_is_hexadecimal_of_its_length_or_empty() {
    assert_eq!(log(r#"{"spanId":"00aBcD0000000000"}"#), Ok(r#"{"spanId":"00abcd0000000000"}"#.into()));
    for (given, bytes) in [
        (r#"{"spanId":"00"}"#, 8),
        (r#"{"spanId":"0000000000000000000000000000000"}"#, 8),
        (r#"{"spanId":"000000000000000é"}"#, 8),
        (r#"{"traceId":"0000000000000000"}"#, 16),
    ] {
        assert_eq!(log(given), Err(JsonErrorKind::Id { bytes }), "{given}");
    }
}

#[test]
fn base64_may_lack_its_padding_and_have_bits_to_spare() {
    for given in ["+/8=", "+/8", "+/9="] {
        assert_eq!(body(&format!(r#"{{"bytesValue":"{given}"}}"#)), Ok(r#"{"bytesValue":"+/8="}"#.into()));
    }
    for given in ["+", "+/8==", "-_8=", "+ /8="] {
        assert_eq!(body(&format!(r#"{{"bytesValue":"{given}"}}"#)), Err(JsonErrorKind::Base64), "{given}");
    }
}

#[test]
fn strings_lose_their_escapes_and_lone_surrogates() {
    for (given, expected) in [
        (r#"\"\\\/\b\f\n\r\t\u0041"#, "\\\"\\\\/\\u0008\\u000c\\n\\r\\tA"),
        (r"\ud83d\ude00", "😀"),
        (r"\ud83d", "\u{fffd}"),
        (r"\ude00\ud83d", "\u{fffd}\u{fffd}"),
        (r"\ud83d\u0041", "\u{fffd}A"),
        (r"\ud83d\ud83d\ude00", "\u{fffd}😀"),
        (r"\ud83d\n", "\u{fffd}\\n"),
        ("\u{7f}", "\u{7f}"),
    ] {
        let expected = format!(r#"{{"stringValue":"{expected}"}}"#);
        assert_eq!(body(&format!(r#"{{"stringValue":"{given}"}}"#)), Ok(expected), "{given}");
    }
    assert_eq!(body("{\"stringValue\":\"a\nb\"}"), Err(JsonErrorKind::Control));
    for given in [r"\x", r"\u00g0", r"\u12", r"\ud83d\uzzzz"] {
        assert_eq!(body(&format!(r#"{{"stringValue":"{given}"}}"#)), Err(JsonErrorKind::Escape), "{given}");
    }
    // A name may contain escapes as well.
    assert_eq!(body(r#"{"string\u0056alue":"s"}"#), Ok(r#"{"stringValue":"s"}"#.into()));
}

#[test]
fn null_is_absence_but_holds_its_place_in_a_list() {
    assert_eq!(log(r#"{"flags":null,"spanId":null,"body":null,"attributes":null}"#), Ok("{}".into()));
    assert_eq!(body(r#"{"stringValue":"s","intValue":null}"#), Ok(r#"{"stringValue":"s"}"#.into()));
    assert_eq!(log("null,{}"), Ok("{},{}".into()));
    assert_eq!(log("{},null"), Ok("{},{}".into()));
    assert_eq!(log("nul"), Err(JsonErrorKind::Expected("null")));
}

#[test]
fn a_oneof_has_one_member_the_last() {
    assert_eq!(body(r#"{"intValue":1,"stringValue":"s","intValue":2}"#), Ok(r#"{"intValue":"2"}"#.into()));
    assert_eq!(body(r#"{"boolValue":true,"boolValue":false}"#), Ok(r#"{"boolValue":false}"#.into()));
    let metric = r#"{"gauge":{"dataPoints":[{"asInt":1,"flags":2,"asDouble":3}]},"unit":"u","sum":{},"name":"n"}"#;
    let shown =
        show(Signal::Metrics, &format!(r#"{{"resourceMetrics":[{{"scopeMetrics":[{{"metrics":[{metric}]}}]}}]}}"#));
    let expected = r#"{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"n","unit":"u","sum":{}}]}]}]}"#;
    assert_eq!(shown, Ok(expected.into()));
}

#[test]
fn a_field_that_is_there_twice_counts_as_it_does_on_the_wire() {
    let undone = r#"{"severityText":"a","flags":1,"severityText":"","flags":0}"#;
    assert_eq!(log(undone), Ok(r#"{"severityText":"","flags":0}"#.into()));
    let attributes = r#"{"attributes":[{"key":"a"}],"attributes":[{"key":"b"}]}"#;
    assert_eq!(log(attributes), Ok(r#"{"attributes":[{"key":"a"},{"key":"b"}]}"#.into()));
}

#[test]
fn what_is_no_json_is_refused_with_its_place() {
    let document = "{\"resourceLogs\": [\n  {\"scopeLogs\": [{\"logRecords\": [{\"flags\":\n \"x\"}]}]}]}";
    let error = json::decode(Signal::Logs, document.as_bytes()).unwrap_err();
    assert_eq!(error.reason(), JsonErrorKind::Integer);
    assert_eq!((error.field(), error.line(), error.offset()), (Some("flags"), 3, document.find("\"x").unwrap()));
    let message = format!("flags: expected an integer in the range of the field at byte {} (line 3)", error.offset());
    assert_eq!(error.to_string(), message);

    for document in [
        "",
        " ",
        "{",
        "{\"",
        "{\"a",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":1",
        "{\"a\":1,",
        "{\"a\":[",
        "{\"a\":{",
        "{\"a\":\"\\",
        "{\"resourceLogs\":[{}",
        "{\"resourceLogs\":[",
        "{\"a\":tru",
    ] {
        let error = json::decode(Signal::Logs, document.as_bytes()).unwrap_err();
        assert!(matches!(error.reason(), JsonErrorKind::End | JsonErrorKind::Expected("true")), "{document}: {error}");
    }
    for document in [
        "{,}",
        "{\"a\":1,}",
        "{\"a\":[1,]}",
        "{\"a\" 1}",
        "{\"a\":01}",
        "{\"a\":.5}",
        "{\"a\":1.}",
        "{\"a\":1e}",
        "{\"a\":-}",
        "{\"a\":+1}",
        "{a:1}",
        "{\"a\":[1}",
        "{\"a\":{]}",
        "{\"a\":nope}",
        "{'a':1}",
        "{\"a\":1 \"b\":2}",
        "{1:2}",
        "7",
        "true",
    ] {
        let error = json::decode(Signal::Logs, document.as_bytes()).unwrap_err();
        assert!(matches!(error.reason(), JsonErrorKind::Expected(_)), "{document}: {error}");
    }
}

#[test]
fn white_space_and_unknown_fields_change_nothing() {
    let document =
        " {\t\"more\" : {\"a\":[[],{},[{\"b\":-1.5e3}],\"\\u00e9\",true,false,null]} ,\r\n\"resourceLogs\" : [ ] } ";
    assert_eq!(json::decode(Signal::Logs, document.as_bytes()), Ok(vec![]));
}

/// A body of nested lists, in JSON.
fn nested_json(levels: usize) -> String {
    format!("{}{}{}", r#"{"arrayValue":{"values":["#.repeat(levels), r#"{"intValue":"1"}"#, "]}}".repeat(levels))
}

#[test]
fn values_nest_64_levels_and_more_but_not_without_end() {
    // The request takes four levels, the value itself one, each list two.
    let deepest = (MAX_MESSAGE_DEPTH - 5) / 2;
    assert!(deepest >= 64);
    assert_eq!(body(&nested_json(deepest)), Ok(nested_json(deepest)));
    assert_eq!(body(&nested_json(deepest + 1)), Err(JsonErrorKind::Depth));
    assert_eq!(body(&r#"{"arrayValue":{"values":["#.repeat(1_000_000)), Err(JsonErrorKind::Depth));
}

#[test]
fn an_unknown_field_may_nest_without_end() {
    let deep = format!(r#"{{"more":{}1{}}}"#, r#"[{"a":"#.repeat(1_000_000), "}]".repeat(1_000_000));
    assert_eq!(json::decode(Signal::Logs, deep.as_bytes()), Ok(vec![]));
}

/// The protobuf of a log record whose body is nested lists.
fn nested_protobuf(levels: usize) -> Vec<u8> {
    // Written from the inside out: each level adds a tag and a length before the inner bytes.
    let mut reversed = Vec::new();
    let wrap = |tag: u8, reversed: &mut Vec<u8>| {
        let mut length = Vec::new();
        prost::encoding::encode_varint(reversed.len() as u64, &mut length);
        reversed.extend(length.iter().rev());
        reversed.push(tag);
    };
    for _ in 0..levels {
        wrap(0x0a, &mut reversed);
        wrap(0x2a, &mut reversed);
    }
    wrap(0x2a, &mut reversed);
    reversed.reverse();
    reversed
}

#[test]
fn a_message_that_nests_too_deep_is_an_error_and_leaves_no_half_of_it() {
    let deepest = (MAX_MESSAGE_DEPTH - 2) / 2;
    assert!(record(RecordKind::LogRecord, &nested_protobuf(deepest)).is_ok());
    for levels in [deepest + 1, 100_000] {
        let mut out = b"before".to_vec();
        let result = json::encode_record(RecordKind::LogRecord, &nested_protobuf(levels), &mut out);
        assert_eq!((result, out.as_slice()), (Err(EncodeError::Depth), &b"before"[..]));
    }
}

#[test]
fn the_wire_is_read_as_protobuf_says() {
    // severity_text "a" and "b", an unknown field 99, flags, severity_text "c".
    let bytes = b"\x1a\x01a\x1a\x01b\x98\x06\x05\x45\x01\0\0\0\x1a\x01c";
    assert_eq!(record(RecordKind::LogRecord, bytes).unwrap(), r#"{"severityText":"c","flags":1}"#);
    // Attributes with flags between them.
    let bytes = b"\x32\x03\x0a\x01a\x45\x01\0\0\0\x32\x03\x0a\x01b";
    let shown = r#"{"attributes":[{"key":"a"},{"key":"b"}],"flags":1}"#;
    assert_eq!(record(RecordKind::LogRecord, bytes).unwrap(), shown);
    // A body in two parts is one body; another member of its oneof drops the first.
    let bytes = b"\x2a\x04\x2a\x02\x0a\0\x2a\x04\x2a\x02\x0a\0";
    let shown = r#"{"body":{"arrayValue":{"values":[{},{}]}}}"#;
    assert_eq!(record(RecordKind::LogRecord, bytes).unwrap(), shown);
    let bytes = b"\x2a\x04\x2a\x02\x0a\0\x2a\x02\x10\x01\x2a\x04\x2a\x02\x0a\0";
    let shown = r#"{"body":{"arrayValue":{"values":[{}]}}}"#;
    assert_eq!(record(RecordKind::LogRecord, bytes).unwrap(), shown);
    let bytes = b"\x2a\x03\x0a\x01s\x2a\x02\x10\x01";
    assert_eq!(record(RecordKind::LogRecord, bytes).unwrap(), r#"{"body":{"boolValue":true}}"#);
    // Not UTF-8, and ids of another length.
    let bytes = b"\x1a\x03a\xffb\x4a\x02\x0a\xbc";
    assert_eq!(record(RecordKind::LogRecord, bytes).unwrap(), "{\"severityText\":\"a\u{fffd}b\",\"traceId\":\"0abc\"}");
    assert_eq!(record(RecordKind::Span, b"").unwrap(), "{}");
}

#[test]
fn numbers_may_be_packed_or_not() {
    // A metric: exponential histogram, point, positive buckets with counts 1, [2, 300], 4.
    let buckets = b"\x10\x01\x12\x03\x02\xac\x02\x10\x04";
    let mut metric = vec![0x52, 13, 0x0a, 11, 0x42, 9];
    metric.extend_from_slice(buckets);
    let shown = r#"{"exponentialHistogram":{"dataPoints":[{"positive":{"bucketCounts":["1","2","300","4"]}}]}}"#;
    assert_eq!(record(RecordKind::Metric, &metric).unwrap(), shown);
}

#[test]
fn what_is_no_message_is_an_error() {
    let wrong = Err(EncodeError::WireType { message: "LogRecord", field: "severityText" });
    assert_eq!(record(RecordKind::LogRecord, b"\x18\x01"), wrong);
    for bytes in [&b"\x1a\x05a"[..], b"\x1a", b"\x45\0", b"\x00\0", b"\x1b", b"\x80", b"\x2a\x02\x0a\x05"] {
        let error = record(RecordKind::LogRecord, bytes).unwrap_err();
        assert!(matches!(error, EncodeError::Wire { .. }), "{bytes:x?}: {error}");
    }
}

#[test]
fn protobuf_is_at_most_four_times_as_long_as_its_json() {
    let wrap = |point: String| {
        format!(
            r#"{{"resourceMetrics":[{{"scopeMetrics":[{{"metrics":[{{"histogram":{{"dataPoints":[{point}]}}}}]}}]}}]}}"#
        )
    };
    for document in [
        wrap(format!(r#"{{"explicitBounds":[0{}]}}"#, ",0".repeat(100_000))),
        wrap(format!(r#"{{"bucketCounts":[1{}]}}"#, ",1".repeat(100_000))),
        wrap(format!("{{}}{}", ",{}".repeat(100_000))),
        wrap(format!(r#"{{"attributes":[null{}]}}"#, ",{}".repeat(100_000))),
    ] {
        let protobuf = json::decode(Signal::Metrics, document.as_bytes()).unwrap();
        assert!(protobuf.len() <= 4 * document.len());
    }
}

/// Grants this many bytes in all.
struct Purse(usize);

impl kubewake_otlp::Allowance for Purse {
    fn reserve(&mut self, bytes: usize) -> bool {
        self.0.checked_sub(bytes).map(|left| self.0 = left).is_some()
    }
}

/// A document whose protobuf is four times as long.
fn zeros(count: usize) -> String {
    let bounds = vec!["0"; count].join(",");
    format!(
        r#"{{"resourceMetrics":[{{"scopeMetrics":[{{"metrics":[{{"histogram":{{"dataPoints":[{{"explicitBounds":[{bounds}]}}]}}}}]}}]}}]}}"#
    )
}

#[test]
fn protobuf_that_is_longer_than_its_document_is_asked_for_before_it_is_allocated() {
    let document = zeros(300_000);
    let expected = json::decode(Signal::Metrics, document.as_bytes()).unwrap();
    assert!(expected.len() > 3 * document.len() && expected.len() < json::MAX_PROTOBUF_PER_JSON * document.len());
    let granted = 16 << 20;
    let mut purse = Purse(granted);
    let decoded = json::decode_within(Signal::Metrics, document.as_bytes(), &mut purse).unwrap();
    assert_eq!(decoded, expected);
    // The old allocation exists while its bytes move into the new one. The free part is not reserved.
    assert!(granted - purse.0 + (128 << 10) >= decoded.capacity() + decoded.capacity() / 2, "{}", granted - purse.0);
    let error = json::decode_within(Signal::Metrics, document.as_bytes(), &mut Purse(2 << 20)).unwrap_err();
    assert_eq!(error.reason(), json::JsonErrorKind::NoMemory);
    json::decode_within(Signal::Metrics, zeros(1000).as_bytes(), &mut Purse(0)).unwrap();
}
