use proptest::prelude::*;
use serde_json::json;

use super::*;

fn refused(text: &str) -> String {
    decode(text.as_bytes()).expect_err(text).to_string()
}

#[test]
fn what_is_wrong_is_said_in_gos_words() {
    let cases = [
        ("", "unexpected end of JSON input"),
        ("{", "unexpected end of JSON input"),
        (r#"{"a"#, "unexpected end of JSON input"),
        ("[1,", "unexpected end of JSON input"),
        ("nonsense", "invalid character 'o' in literal null (expecting 'u')"),
        ("trug", "invalid character 'g' in literal true (expecting 'e')"),
        (r#"{"a":1,}"#, "invalid character '}' looking for beginning of object key string"),
        ("{1:2}", "invalid character '1' looking for beginning of object key string"),
        (r#"{"a" 1}"#, "invalid character '1' after object key"),
        (r#"{"a":1 "b"}"#, "invalid character '\"' after object key:value pair"),
        ("[1 2]", "invalid character '2' after array element"),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ("{} x", "invalid character 'x' after top-level value"),
        ("01", "invalid character '1' after top-level value"),
        ("-x", "invalid character 'x' in numeric literal"),
        ("1.x", "invalid character 'x' after decimal point in numeric literal"),
        ("1e+x", "invalid character 'x' in exponent of numeric literal"),
        ("\"\n\"", "invalid character '\\n' in string literal"),
        (r#""\x""#, "invalid character 'x' in string escape code"),
        (r#""\u12g4""#, "invalid character 'g' in \\u hexadecimal character escape"),
        ("'a'", "invalid character '\\'' looking for beginning of value"),
        ("1e999", "json: cannot unmarshal number 1e999 into Go value of type float64"),
    ];
    for (text, message) in cases {
        assert_eq!(refused(text), message, "{text}");
    }
    let error = decode(b"\x81").expect_err("no JSON");
    assert_eq!(error.to_string(), "invalid character '\\x81' looking for beginning of value");
}

#[test]
fn duplicates_are_told_with_their_paths_and_the_last_wins() {
    let text = br#"{"metadata":{"name":"a","name":"b"},"data":{"k":"1","k":"2","k":"3"},"l":[{"x":1,"x":2}],"l":[]}"#;
    let decoded = decode(text).expect("JSON");
    assert_eq!(decoded.duplicates, ["metadata.name", "data.k", "l[0].x", "l"]);
    assert_eq!(decoded.value, json!({"metadata": {"name": "b"}, "data": {"k": "3"}, "l": []}));
}

#[test]
fn a_key_is_told_before_what_is_wrong_inside_it() {
    let decoded = decode(br#"{"a":1,"a":{"b":1,"b":2}}"#).expect("JSON");
    assert_eq!(decoded.duplicates, ["a", "a.b"]);
}

#[test]
fn duplicates_are_bounded() {
    let key = "k".repeat(60_000);
    let inner: String = (0..1000).map(|at| format!(r#""{at}":1,"{at}":2,"#)).collect();
    let text = format!(r#"{{"{key}":{{{inner}"z":1}}}}"#);
    let decoded = decode(text.as_bytes()).expect("JSON");
    assert!(decoded.duplicates.len() <= 2);
}

#[test]
fn depth_is_bounded() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(decode(nested(MAX_DEPTH).as_bytes()).is_ok());
    assert_eq!(refused(&nested(MAX_DEPTH + 1)), "exceeded max depth");
    assert_eq!(refused(&"[".repeat(1_000_000)), "exceeded max depth");
    assert_eq!(refused(&r#"{"a":"#.repeat(1_000_000)), "exceeded max depth");
}

#[test]
fn texts_are_repaired_as_in_go() {
    let cases: [(&[u8], &str); 6] = [
        (br#""a\ud83d\ude00b""#, "a😀b"),
        (br#""\ud83d""#, "\u{fffd}"),
        (br#""\ud83d\u0041""#, "\u{fffd}A"),
        (br#""\ude00""#, "\u{fffd}"),
        (b"\"a\xff\xe2\x82b\"", "a\u{fffd}\u{fffd}\u{fffd}b"),
        (br#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{c}\n\r\t"),
    ];
    for (text, value) in cases {
        assert_eq!(decode(text).expect("JSON").value, json!(value));
    }
}

#[test]
fn whole_numbers_stay_whole_and_print_as_in_go() {
    let decoded = decode(b"[0, -0, 9223372036854775807, 9223372036854775808, 1.0, 1.50, 1e21, 1e-7, 123456.75]");
    let value = decoded.expect("JSON").value;
    assert_eq!(value.get(2), Some(&json!(i64::MAX)));
    assert!(value.get(3).is_some_and(Value::is_f64));
    let text = String::from_utf8(encode(&value)).expect("UTF-8");
    assert_eq!(text, "[0,0,9223372036854775807,9223372036854776000,1,1.5,1e+21,1e-7,123456.75]\n");
}

#[test]
fn people_get_indented_json() {
    let text = String::from_utf8(encode_pretty(&json!({"a": [1.5, {}], "b": []}))).expect("UTF-8");
    assert_eq!(text, "{\n  \"a\": [\n    1.5,\n    {}\n  ],\n  \"b\": []\n}");
}

#[test]
fn problems_are_told_in_the_order_of_the_text() {
    let body = br#"{"z":1,"metadata":{"name":"a","name":"b","lbls":{}},"data":{"k":"1","k":"2"},"a":2}"#;
    let mut problems = vec!["a", "data.k", "metadata.lbls", "metadata.name", "z", "elsewhere"];
    sort_by_body_order(body, &mut problems, |problem| problem);
    assert_eq!(problems, ["z", "metadata.name", "metadata.lbls", "data.k", "a", "elsewhere"]);
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".*".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::btree_map(".*", inner, 0..8).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn valid_json_means_what_serde_json_says(value in any_value(), pretty: bool) {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
        let decoded = decode(text.expect("a value has a JSON form").as_bytes()).expect("JSON");
        prop_assert_eq!(decoded, DecodedJson { value, duplicates: Vec::new() });
    }

    #[test]
    fn what_is_written_reads_the_same_but_for_integral_floats(value in any_value()) {
        let once = decode(&encode(&value)).expect("JSON").value;
        let twice = decode(&encode(&once)).expect("JSON").value;
        prop_assert_eq!(once, twice);
    }

    /// Stored objects are decoded by serde_json when they are patched.
    #[test]
    fn floats_are_the_same_when_a_stored_object_is_read(float in any::<f64>().prop_filter("JSON has no others", |float| float.is_finite())) {
        let read: f64 = serde_json::from_slice(&encode(&Value::from(float))).expect("JSON");
        prop_assert_eq!(read, float);
    }

    #[test]
    fn texts_agree_with_serde_json_on_whether_they_are_json(text in r#"[\[\]{}",:0-9eE+\-.truefalsn\\ ]{0,24}"#) {
        // A negative zero is a float there, and an integer here, as in Kubernetes.
        prop_assume!(!text.contains("-0"));
        let theirs = serde_json::from_str::<Value>(&text);
        match (decode(text.as_bytes()), theirs) {
            (Ok(ours), Ok(theirs)) => prop_assert_eq!(encode(&ours.value), encode(&theirs)),
            // Lone surrogates are replaced here and refused there.
            (Ok(_), Err(error)) => prop_assert!(text.contains("\\u"), "{}: {}", text, error),
            (Err(error), Ok(_)) => prop_assert!(false, "{}: {}", text, error),
            (Err(_), Err(_)) => {}
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes: Vec<u8>) {
        let _ = decode(&bytes);
        sort_by_body_order(&bytes, &mut ["a", "b"], |path| path);
    }
}
