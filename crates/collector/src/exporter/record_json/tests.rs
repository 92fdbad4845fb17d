use kubewake_config::model::Dedot;
use kubewake_otlp::{
    Allowance, UnlimitedAllowance,
    view::{AnyValue, LogRecord, MessageView},
    wire::{put_bytes, put_uint},
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// The tag of a field.
fn tag(number: u8, wire: u8) -> u8 {
    number << 3 | wire
}

fn text(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_bytes(&mut out, 1, value);
    out
}

fn int(value: i64) -> Vec<u8> {
    let mut out = Vec::new();
    put_uint(&mut out, 3, value as u64);
    out
}

fn double(value: f64) -> Vec<u8> {
    [&[tag(4, 1)], &value.to_le_bytes()[..]].concat()
}

/// A list of these values.
fn list(values: &[Vec<u8>]) -> Vec<u8> {
    let (mut content, mut out) = (Vec::new(), Vec::new());
    values.iter().for_each(|value| put_bytes(&mut content, 1, value));
    put_bytes(&mut out, 5, &content);
    out
}

/// A map of these pairs.
fn map(pairs: &[(&[u8], Vec<u8>)]) -> Vec<u8> {
    let mut out = Vec::new();
    put_bytes(&mut out, 6, &attributes(1, pairs));
    out
}

/// A message with these attributes in field `number`.
fn attributes(number: u32, pairs: &[(&[u8], Vec<u8>)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (key, value) in pairs {
        let mut pair = Vec::new();
        put_bytes(&mut pair, 1, key);
        put_bytes(&mut pair, 2, value);
        put_bytes(&mut out, number, &pair);
    }
    out
}

fn written(write: impl FnOnce(&mut JsonOutput<'_>)) -> String {
    let mut memory = UnlimitedAllowance;
    let mut out = JsonOutput::new(&mut memory);
    write(&mut out);
    String::from_utf8(out.into_bytes()).unwrap()
}

fn value_text(value: &[u8], dedot: Dedot) -> String {
    written(|out| push_value(&AnyValue::new(value), dedot, 0, out))
}

/// The object of these attributes.
fn object_text(pairs: &[(&[u8], Vec<u8>)], dedot: Dedot) -> String {
    let record = attributes(6, pairs);
    written(|out| {
        FieldList::write_object(out, dedot, 0, |fields| fields.attributes(LogRecord::new(&record).attributes()));
    })
}

fn object(keys: &[&str], dedot: Dedot) -> Value {
    let pairs: Vec<(&[u8], Vec<u8>)> =
        keys.iter().enumerate().map(|(number, key)| (key.as_bytes(), int(number as i64))).collect();
    serde_json::from_str(&object_text(&pairs, dedot)).unwrap()
}

#[test]
fn values_keep_their_types() {
    for (value, expected) in [
        (text(b"a\"\\\n\x01\xff"), "\"a\\\"\\\\\\n\\u0001\u{fffd}\""),
        (int(i64::MIN), "-9223372036854775808"),
        (double(1.0), "1.0"),
        (double(1e300), "1e300"),
        (double(f64::NAN), "null"),
        (double(f64::NEG_INFINITY), "null"),
        (vec![tag(2, 0), 1], "true"),
        (vec![tag(7, 2), 2, 0xab, 0x0c], "\"ab0c\""),
        (Vec::new(), "null"),
        (list(&[int(1), Vec::new(), list(&[])]), "[1,null,[]]"),
        (map(&[(b"b", int(1)), (b"a", double(2.0)), (b"none", Vec::new())]), r#"{"a":2.0,"b":1}"#),
    ] {
        assert_eq!(value_text(&value, Dedot::None), expected);
    }
}

#[test]
fn values_that_are_nested_too_deep_are_null() {
    let deep = (0..2 * MAX_VALUE_DEPTH).fold(int(1), |inner, _| list(&[inner]));
    let text = value_text(&deep, Dedot::None);
    assert_eq!(text.matches('[').count(), MAX_VALUE_DEPTH);
    assert!(text.contains("null"), "{text}");
}

#[test]
fn times_are_padded() {
    assert_eq!(written(|out| push_milliseconds(1_700_000_000_123_000_005, out)), "\"1700000000123.000005\"");
    assert_eq!(written(|out| push_milliseconds(5, out)), "\"0.000005\"");
    assert_eq!(written(|out| push_rfc3339(1_700_000_000_000_000_050, out)), "\"2023-11-14T22:13:20.000000050Z\"");
    assert_eq!(written(|out| push_rfc3339(u64::MAX, out)), "\"2554-07-21T23:34:33.709551615Z\"");
}

#[test]
fn keys_stay_without_dedotting_and_the_first_of_equal_ones_counts() {
    assert_eq!(object(&["a.b", "a", "", "a.b"], Dedot::None), json!({"a.b": 0, "a": 1, "_": 2}));
}

#[test]
fn dots_become_underscores_in_all_keys_and_nothing_is_lost() {
    assert_eq!(
        object(&["a_b", "a.b", "a_b_2", "c.d/e", "a.b"], Dedot::AllKeys),
        json!({"a_b": 1, "a_b_3": 0, "a_b_2": 2, "c_d/e": 3})
    );
    let inner = map(&[(b"x.y", int(1))]);
    assert_eq!(object_text(&[(b"m.n", inner)], Dedot::AllKeys), r#"{"m_n":{"x_y":1}}"#);
}

#[test]
fn only_names_of_kubernetes_labels_and_annotations_are_changed() {
    let keys =
        ["k8s.pod.name", "k8s.pod.label.app.kubernetes.io/name", "k8s.namespace.annotations.a.b", "k8s.pod.label"];
    assert_eq!(
        object(&keys, Dedot::Kubernetes),
        json!({"k8s.pod.name": 0, "k8s.pod.label.app_kubernetes_io_name": 1, "k8s.namespace.annotations.a_b": 2,
            "k8s.pod.label": 3})
    );
}

#[test]
fn keys_with_dots_become_nested_objects() {
    assert_eq!(
        object(&["a.b.c", "d", "a.e", "a.b.f"], Dedot::Nested),
        json!({"a": {"b": {"c": 0, "f": 3}, "e": 2}, "d": 1})
    );
}

#[test]
fn value_beside_nested_ones_becomes_a_member() {
    assert_eq!(object(&["a", "a.b", "a-b"], Dedot::Nested), json!({"a": {"value": 0, "b": 1}, "a-b": 2}));
    assert_eq!(
        object(&["a.value", "a", "a._value.x"], Dedot::Nested),
        json!({"a": {"__value": 1, "value": 0, "_value": {"x": 2}}})
    );
    let inner = map(&[(b"x.y", int(1))]);
    assert_eq!(
        object_text(&[(b"a.b", int(2)), (b"a", inner)], Dedot::Nested),
        r#"{"a":{"value":{"x":{"y":1}},"b":2}}"#
    );
}

#[test]
fn nested_keys_have_no_empty_parts_and_are_not_too_deep() {
    assert_eq!(
        object(&["a..b", ".c", "d."], Dedot::Nested),
        json!({"a": {"_": {"b": 0}}, "_": {"c": 1}, "d": {"_": 2}})
    );
    let deep = vec!["x"; 1000].join(".");
    let text = object(&[&deep], Dedot::Nested).to_string();
    assert_eq!(text.matches('{').count(), 16, "{text}");
}

#[test]
fn members_of_an_earlier_list_win() {
    let first = attributes(6, &[(b"a", int(1)), (b"b_c", int(2))]);
    let second = attributes(6, &[(b"a", int(3)), (b"b.c", int(4)), (b"d", int(5))]);
    let text = written(|out| {
        FieldList::write_object(out, Dedot::AllKeys, 0, |fields| {
            fields.attributes(LogRecord::new(&first).attributes());
            fields.next_rank();
            fields.attributes(LogRecord::new(&second).attributes());
        });
    });
    assert_eq!(text, r#"{"a":1,"b_c":2,"b_c_2":4,"d":5}"#);
}

#[test]
fn member_of_a_later_list_does_not_become_part_of_an_earlier_one() {
    let first = attributes(6, &[(b"kubernetes", int(1)), (b"pod.name", int(2))]);
    let second = attributes(
        6,
        &[(b"kubernetes.namespace", int(3)), (b"pod", int(4)), (b"pod.name.x", int(5)), (b"pod.uid", int(6))],
    );
    let shown = |dedot: Dedot| {
        let text = written(|out| {
            FieldList::write_object(out, dedot, 0, |fields| {
                fields.attributes(LogRecord::new(&first).attributes());
                fields.next_rank();
                fields.attributes(LogRecord::new(&second).attributes());
            });
        });
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let nested = json!({
        "kubernetes": 1, "kubernetes_namespace": 3, "pod": {"name": 2, "uid": 6}, "pod_2": 4, "pod_name_x": 5
    });
    assert_eq!(shown(Dedot::Nested), nested);
    let flat = json!({
        "kubernetes": 1, "kubernetes_namespace": 3, "pod.name": 2, "pod.uid": 6, "pod_2": 4, "pod_name_x": 5
    });
    assert_eq!(shown(Dedot::None), flat);
}

/// Grants so many bytes in all.
struct Purse(usize);

impl Allowance for Purse {
    fn reserve(&mut self, bytes: usize) -> bool {
        self.0.checked_sub(bytes).map(|left| self.0 = left).is_some()
    }
}

#[test]
fn without_memory_nothing_is_allocated_and_the_output_says_so() {
    let many: Vec<(&[u8], Vec<u8>)> = (0..2000).map(|_| (&b"key"[..], int(1))).collect();
    let record = attributes(6, &many);
    let mut purse = Purse(100_000);
    let mut out = JsonOutput::new(&mut purse);
    out.push(b"before");
    FieldList::write_object(&mut out, Dedot::Nested, 0, |fields| {
        fields.attributes(LogRecord::new(&record).attributes())
    });
    assert!(out.is_exhausted());
    out.truncate(6);
    assert!(!out.is_exhausted());
    assert_eq!(out.into_bytes(), b"before");
}

fn dedots() -> impl Strategy<Value = Dedot> {
    prop_oneof![Just(Dedot::None), Just(Dedot::AllKeys), Just(Dedot::Kubernetes), Just(Dedot::Nested)]
}

fn keys() -> impl Strategy<Value = String> {
    prop_oneof![3 => "[ab_./]{0,5}", 1 => "(k8s[.]pod[.]label[.])?[a-c.]{0,4}(_2|value)?"]
}

/// All numbers in a value.
fn numbers(value: &Value, out: &mut Vec<i64>) {
    match value {
        Value::Number(number) => out.push(number.as_i64().unwrap()),
        Value::Array(values) => values.iter().for_each(|value| numbers(value, out)),
        Value::Object(members) => members.values().for_each(|value| numbers(value, out)),
        _ => {}
    }
}

/// Objects with the same key twice; serde_json would drop one.
fn has_key_twice(text: &str) -> bool {
    struct Checked;
    impl<'de> serde::Deserialize<'de> for Checked {
        fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            struct Visitor;
            impl<'de> serde::de::Visitor<'de> for Visitor {
                type Value = Checked;
                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("a value")
                }
                fn visit_i64<E>(self, _: i64) -> Result<Checked, E> {
                    Ok(Checked)
                }
                fn visit_u64<E>(self, _: u64) -> Result<Checked, E> {
                    Ok(Checked)
                }
                fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Checked, A::Error> {
                    let mut seen = std::collections::BTreeSet::new();
                    while let Some((key, Checked)) = map.next_entry::<String, Checked>()? {
                        if !seen.insert(key) {
                            return Err(serde::de::Error::custom("twice"));
                        }
                    }
                    Ok(Checked)
                }
            }
            from.deserialize_any(Visitor)
        }
    }
    serde_json::from_str::<Checked>(text).is_err()
}

proptest! {
    #[test]
    fn every_key_is_there_once_whatever_the_keys_are(
        keys in proptest::collection::btree_set(keys(), 0..12),
        dedot in dedots(),
    ) {
        let keys: Vec<String> = keys.into_iter().collect();
        let pairs: Vec<(&[u8], Vec<u8>)> =
            keys.iter().enumerate().map(|(number, key)| (key.as_bytes(), int(number as i64))).collect();
        let text = object_text(&pairs, dedot);
        prop_assert!(!has_key_twice(&text), "{}", text);
        let mut found = Vec::new();
        numbers(&serde_json::from_str(&text).unwrap(), &mut found);
        found.sort_unstable();
        prop_assert_eq!(found, (0..keys.len() as i64).collect::<Vec<_>>(), "{}", text);
        let mut backwards = pairs.clone();
        backwards.reverse();
        prop_assert_eq!(object_text(&backwards, dedot), text, "the order does not matter");
    }

    #[test]
    fn any_bytes_become_valid_json(bytes in proptest::collection::vec(any::<u8>(), 0..200), dedot in dedots()) {
        let text = value_text(&bytes, dedot);
        prop_assert!(serde_json::from_str::<Value>(&text).is_ok(), "{}", text);
        let text = written(|out| {
            FieldList::write_object(out, dedot, 0, |fields| fields.attributes(LogRecord::new(&bytes).attributes()));
        });
        prop_assert!(serde_json::from_str::<Value>(&text).is_ok_and(|value| value.is_object()), "{}", text);
    }
}
