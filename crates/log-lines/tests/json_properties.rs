//! JSON lines as another reader of JSON understands them.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

#[path = "support/decoded.rs"]
mod decoded;

use std::sync::Arc;

use kubewake_log_lines::{
    BodyKind, BodyParsing, LinePosition, LineRecord, RecordSettings, RecordSink, RequestBuilder, RequestLimits,
};
use opentelemetry_proto::tonic::common::v1::AnyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use proptest::prelude::*;
use serde_json::Value;

use decoded::read_records;

const ONLY_JSON: BodyParsing = BodyParsing { parses_json: true, ..BodyParsing::OFF };

/// The attributes of a line; `None` if it was not parsed. The request is at most a multiple of the line.
fn parse(line: &[u8], parsing: BodyParsing) -> Option<Vec<(String, Option<AnyValue>)>> {
    let settings = RecordSettings { parsing, ..RecordSettings::default() };
    let limits = RequestLimits { max_bytes: 1 << 24, max_records: 10 };
    let mut builder = RequestBuilder::new(Arc::default(), settings, limits);
    builder.put(&LineRecord {
        start: LinePosition::default(),
        number: 1,
        time: 1,
        observed: 1,
        stream: None,
        tags: &[],
        docker_attributes: &[],
        body: line,
        body_kind: BodyKind::Text,
    });
    let body = builder.finish(LinePosition::default()).unwrap().body;
    assert!(body.len() <= 100 + line.len() * 8, "{} bytes of {}", body.len(), line.len());
    let [record] = <[_; 1]>::try_from(read_records(&body)).unwrap();
    let is_parsed = builder.take_counts().parsed_bodies == 1;
    is_parsed.then(|| record.attributes.into_iter().map(|kv| (kv.key, kv.value)).collect())
}

/// Whether both values say the same.
fn agree(value: &Value, found: Option<&AnyValue>) -> bool {
    match (value, found.and_then(|found| found.value.as_ref())) {
        (Value::Null, None) => true,
        (Value::Bool(value), Some(Any::BoolValue(found))) => value == found,
        (Value::String(value), Some(Any::StringValue(found))) => value == found,
        (Value::Number(value), Some(Any::IntValue(found))) => value.as_i64() == Some(*found),
        (Value::Number(value), Some(Any::DoubleValue(found))) => value.as_f64().is_some_and(|value| {
            // The other reader is not exact in the last digit.
            value == *found || ((value - found) / found).abs() < 1e-12
        }),
        (Value::Array(values), Some(Any::ArrayValue(found))) => {
            values.len() == found.values.len() && values.iter().zip(&found.values).all(|(a, b)| agree(a, Some(b)))
        }
        (Value::Object(members), Some(Any::KvlistValue(found))) => {
            members.len() == found.values.len()
                && found
                    .values
                    .iter()
                    .all(|kv| members.get(&kv.key).is_some_and(|value| agree(value, kv.value.as_ref())))
        }
        _ => false,
    }
}

/// JSON as text: with blanks, escapes and keys that are there twice.
fn json_text() -> impl Strategy<Value = String> {
    let text = prop_oneof![
        "[a-c]{0,2}",
        "\\PC{0,10}",
        prop::sample::select(vec!["msg", "level", "trace_id", "x\"y\\z\n\u{1}", "\u{1f600}"]).prop_map(str::to_owned),
    ];
    let quoted = text.prop_map(|text| serde_json::to_string(&text).unwrap());
    let number = prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        any::<u64>().prop_map(|number| number.to_string()),
        (-1e300..1e300f64).prop_map(|number| format!("{number:e}")),
        Just("-0.5E+3".to_owned()),
    ];
    let word = prop::sample::select(vec!["true", "false", "null"]).prop_map(str::to_owned);
    let scalar = prop_oneof![quoted.clone(), number, word];
    let blank = prop::sample::select(vec!["", "", " ", "\t \r"]);
    let value = scalar.prop_recursive(5, 60, 6, {
        let quoted = quoted.clone();
        move |inner| {
            let members = prop::collection::vec((quoted.clone(), inner.clone()), 0..6);
            prop_oneof![
                (prop::collection::vec(inner, 0..6), blank.clone())
                    .prop_map(|(values, blank)| format!("[{blank}{}{blank}]", values.join(&format!("{blank},")))),
                members.prop_map(|members| object(&members)),
            ]
        }
    });
    prop::collection::vec((quoted, value), 0..8).prop_map(|members| object(&members))
}

fn object(members: &[(String, String)]) -> String {
    let members: Vec<_> = members.iter().map(|(key, value)| format!("{key} : {value}")).collect();
    format!("{{ {} }}", members.join(" ,"))
}

fn check(line: &[u8]) -> Result<(), TestCaseError> {
    let expected = serde_json::from_slice::<Value>(line).ok();
    match (parse(line, ONLY_JSON), expected) {
        (Some(attributes), Some(Value::Object(members))) => {
            prop_assert_eq!(attributes.len(), members.len());
            for (key, value) in &attributes {
                prop_assert!(members.get(key).is_some_and(|member| agree(member, value.as_ref())), "{key}: {value:?}");
            }
        }
        (None, None | Some(Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_))) => {}
        (found, expected) => prop_assert!(false, "{found:?} {expected:?}"),
    }
    // With all that is read from it, nothing panics.
    parse(line, BodyParsing::ALL);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn attributes_are_the_members_that_another_reader_finds(line in json_text()) {
        check(line.as_bytes())?;
    }

    #[test]
    fn damaged_lines_are_refused_where_another_reader_refuses_them(
        line in json_text(), at in any::<prop::sample::Index>(), byte in prop::sample::select(b"\"\\{}[],:0- e.x\x01".to_vec()),
    ) {
        let mut line = line.into_bytes();
        let at = at.index(line.len());
        line[at] = byte;
        // Half a pair of surrogates is replaced here, and refused there; and so are numbers that are no doubles.
        let text = String::from_utf8_lossy(&line).into_owned();
        prop_assume!(!text.contains("\\ud") && std::str::from_utf8(&line).is_ok());
        check(text.as_bytes())?;
    }
}
