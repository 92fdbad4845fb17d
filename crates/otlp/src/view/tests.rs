use super::*;
use crate::Value;
use crate::wire::{put_bytes, put_uint};

fn field(number: u32, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_bytes(&mut out, number, content);
    out
}

fn attribute(key: &[u8], value: &[u8]) -> Vec<u8> {
    field(1, &[field(1, key), field(2, &field(1, value))].concat())
}

#[test]
fn a_resource_that_was_sent_in_parts_is_read_as_one() {
    let content = [field(1, &attribute(b"a", b"1")), field(2, b""), field(1, &attribute(b"b", b"2"))].concat();
    let entry = ResourceEntry::new(&content);
    assert_eq!(entry.resource().attributes().text("a"), Some(&b"1"[..]));
    assert_eq!(entry.resource().attributes().text("b"), Some(&b"2"[..]));
    assert_eq!(entry.scopes().count(), 1);
}

#[test]
fn the_last_of_a_field_counts_and_one_of_another_type_does_not() {
    let mut content = [field(5, b"first"), field(5, b"last")].concat();
    put_uint(&mut content, 5, 7);
    assert_eq!(Span::new(&content).name(), b"last");
    assert_eq!(Span::new(&content).kind(), 0);
}

#[test]
fn an_iterator_ends_at_bytes_that_are_no_field() {
    let content = [field(9, b""), vec![0x07], field(9, b"")].concat();
    assert_eq!(Span::new(&content).attributes().iter().count(), 1);
}

#[test]
fn text_that_is_not_utf_8_is_kept_and_can_be_shown() {
    let content = attribute(b"k", b"a\xff");
    let resource = Resource::new(&content);
    let value = resource.attributes().get("k").unwrap();
    assert_eq!(value.as_text(), Some(&b"a\xff"[..]));
    assert_eq!(value.as_str(), None);
    assert_eq!(lossy(b"a\xff"), "a\u{fffd}");
}

#[test]
fn repeated_numbers_are_read_packed_and_not() {
    let packed = field(6, &[1u64.to_le_bytes(), 2u64.to_le_bytes()].concat());
    let mut content = packed;
    crate::wire::put_fixed64(&mut content, 6, 3);
    assert_eq!(HistogramPoint::new(&content).bucket_counts().collect::<Vec<_>>(), [1, 2, 3]);
    let mut content = field(2, &[0x01, 0x80, 0x01]);
    put_uint(&mut content, 2, 9);
    let mut point = Vec::new();
    put_bytes(&mut point, 8, &content);
    let buckets = ExponentialHistogramPoint::new(&point).positive().unwrap();
    assert_eq!(buckets.counts().collect::<Vec<_>>(), [1, 128, 9]);
}

#[test]
fn a_value_as_text_is_what_the_collector_makes_of_it() {
    let text = |value: Value| String::from_utf8(AnyValue::new(&value.encoded()).to_text().into_owned()).unwrap();
    let map = |pairs: &[(&str, Value)]| {
        Value::KeyValueList(pairs.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect())
    };
    for (value, expected) in [
        ("a<b>".into(), "a<b>"),
        (true.into(), "true"),
        ((-7).into(), "-7"),
        (0.0.into(), "0"),
        (1.5.into(), "1.5"),
        (100_000_000.0.into(), "100000000"),
        (1e20.into(), "100000000000000000000"),
        (1e21.into(), "1e+21"),
        (1.5e-7.into(), "1.5e-7"),
        (f64::NAN.into(), "json: unsupported value: NaN"),
        (f64::INFINITY.into(), "json: unsupported value: +Inf"),
        (f64::NEG_INFINITY.into(), "json: unsupported value: -Inf"),
        (Value::Bytes(vec![1, 2, 3].into()), "AQID"),
        (Value::Encoded(Default::default()), ""),
        (Value::Array(vec![]), "[]"),
        (
            Value::Array(vec!["\"<&>\u{2028}\n\u{1}é".into(), Value::Encoded(Default::default())]),
            r#"["\"\u003c\u0026\u003e\u2028\n\u0001é",null]"#,
        ),
        (map(&[("b", 1.into()), ("a", map(&[])), ("b", Value::Bytes(vec![0xff].into()))]), r#"{"a":{},"b":"/w=="}"#),
        (Value::Array(vec![f64::NAN.into()]), ""),
    ] {
        assert_eq!(text(value.clone()), expected, "{value:?}");
    }
    assert_eq!(AnyValue::new(b"\x2a\x05\x0a\x03\x0a\x01\xff").to_text(), &br#"["\ufffd"]"#[..]);
}

#[test]
fn values_that_lie_too_deep_are_not_read() {
    let deep = (0..1000).fold(Value::Int(1), |inner, _| Value::Array(vec![Value::Encoded(inner.encoded())]));
    let text = AnyValue::new(&deep.encoded()).to_text().into_owned();
    assert_eq!(text, format!("{}null{}", "[".repeat(64), "]".repeat(64)).into_bytes());
}

#[test]
fn a_pair_reads_the_same_however_it_is_written() {
    let key = field(1, b"key");
    let value = field(2, &field(1, b"v"));
    let long = field(2, &field(1, &[b'v'; 300]));
    let overlong = [&[0x0a, 0x83, 0x00][..], b"key", &value].concat();
    let mut unknown = [key.clone(), value.clone()].concat();
    put_uint(&mut unknown, 77, 1);
    for (pair, length) in [
        ([key.clone(), value.clone()].concat(), 1),
        ([value.clone(), key.clone()].concat(), 1),
        ([field(1, b"other"), key.clone(), value.clone()].concat(), 1),
        ([key.clone(), field(2, &field(1, b"old")), value.clone()].concat(), 1),
        ([key.clone(), value.clone(), field(1, b"key")].concat(), 1),
        ([key.clone(), long].concat(), 300),
        ([key.clone(), field(2, &field(1, &[b'v'; 20_000]))].concat(), 20_000),
        (overlong, 1),
        (unknown, 1),
    ] {
        let pair = KeyValue::new(&pair);
        assert_eq!(pair.key(), b"key");
        assert_eq!(pair.value().as_text().map(<[u8]>::len), Some(length));
    }
    assert_eq!(KeyValue::new(&key).key(), b"key");
    assert_eq!(KeyValue::new(&value).key(), b"");
}
