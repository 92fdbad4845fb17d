use proptest::prelude::*;
use serde_json::json;

use super::*;

fn value(text: &str) -> Value {
    decode(text.as_bytes()).expect(text).value
}

fn refused(text: &str) -> String {
    decode(text.as_bytes()).expect_err(text).to_string()
}

#[test]
fn scalars_are_those_of_yaml_1_1() {
    let cases = [
        ("y", json!(true)),
        ("No", json!(false)),
        ("on", json!(true)),
        ("~", json!(null)),
        ("", json!(null)),
        ("\"y\"", json!("y")),
        ("12", json!(12)),
        ("0x1F", json!(31)),
        ("010", json!(8)),
        ("0o10", json!(8)),
        ("1_000", json!(1000)),
        ("1.5", json!(1.5)),
        ("1e3", json!(1000.0)),
        (".5", json!(0.5)),
        ("18446744073709551615", json!(18446744073709551615.0)),
        ("2001-01-01", json!("2001-01-01")),
        ("2001-01-01T00:00:00Z", json!("2001-01-01T00:00:00Z")),
        ("1.2.3", json!("1.2.3")),
        ("12:30", json!("12:30")),
        ("+", json!("+")),
        ("!!str 12", json!("12")),
        ("!!int \"12\"", json!(12)),
        ("!!float 3", json!(3.0)),
        ("!own 12", json!("12")),
        ("!!binary aGVsbG8=", json!("hello")),
        ("|\n  a\n  b\n", json!("a\nb\n")),
    ];
    for (text, expected) in cases {
        assert_eq!(value(text), expected, "{text}");
    }
}

#[test]
fn maps_have_text_keys() {
    assert_eq!(value("1: a\ntrue: b\n1.5: c\nx: d"), json!({"1": "a", "true": "b", "1.5": "c", "x": "d"}));
    assert_eq!(refused("~: a"), "unsupported map key of type: null");
    assert_eq!(refused("{[a]: b}"), "unsupported map key of type: []interface {}");
}

#[test]
fn json_is_yaml_and_only_the_first_document_counts() {
    assert_eq!(value(r#"{"a": [1, "b", null], "c": {}}"#), json!({"a": [1, "b", null], "c": {}}));
    assert_eq!(value("a: 1\n---\nb: 2\n"), json!({"a": 1}));
    assert_eq!(value("---\na: 1\n...\n: : :"), json!({"a": 1}));
    assert_eq!(value("\u{feff}a: 1"), json!({"a": 1}));
}

#[test]
fn aliases_and_merges_are_written_out() {
    let text =
        "base: &b {x: 1, y: 2}\nuse: *b\nmore:\n  <<: *b\n  x: 3\nmany:\n  <<: [{p: 1}, {p: 2, q: 3}]\n&k key: *k\n";
    let expected = json!({
        "base": {"x": 1, "true": 2}, "use": {"x": 1, "true": 2}, "more": {"x": 3, "true": 2}, "many": {"p": 1, "q": 3},
        "key": "key",
    });
    assert_eq!(value(text), expected);
    assert_eq!(refused("a: &a [*a]"), "yaml: anchor contains itself");
    assert_eq!(refused("<<: 1"), "yaml: map merge requires map or sequence of maps as the value");
}

#[test]
fn bombs_are_refused() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..20 {
        let items = vec![format!("*a{}", level - 1); 10].join(", ");
        text += &format!("a{level}: &a{level} [{items}]\n");
    }
    assert_eq!(refused(&text), "yaml: document contains excessive aliasing");
    let long = format!("a: &a {}\nb: [{}]", "x".repeat(1 << 20), vec!["*a"; 100].join(", "));
    assert_eq!(refused(&long), "yaml: document contains excessive aliasing");
    assert_eq!(refused(&"[".repeat(1000)), "yaml: exceeded max depth of 100");
    let mut deep = "a0: &a0 []\n".to_owned();
    for level in 1..110 {
        deep += &format!("a{level}: &a{level} [*a{}]\n", level - 1);
    }
    assert_eq!(refused(&deep), "yaml: exceeded max depth of 100");
}

#[test]
fn duplicates_are_told_with_their_lines() {
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: a\n  k: b\n";
    let decoded = decode(text.as_bytes()).expect("YAML");
    assert_eq!(decoded.duplicates, [r#"line 7: key "k" already set in map"#]);
    assert_eq!(decoded.value["data"], json!({"k": "b"}));
    let strict = strict_error(&decoded.duplicates);
    assert_eq!(strict.as_deref(), Some("yaml: unmarshal errors:\n  line 7: key \"k\" already set in map"));
    let decoded = decode(b"a: 1\nspec: {size: 1, size: 2}\n1: 2\n1: 3\n").expect("YAML");
    assert_eq!(decoded.duplicates, [r#"line 2: key "size" already set in map"#, "line 4: key 1 already set in map"]);
    assert_eq!(strict_error(&[]), None);
}

#[test]
fn what_is_wrong_is_said_in_go_yamls_words() {
    assert_eq!(refused("a: b: c\n  - d"), "yaml: mapping values are not allowed in this context");
    assert_eq!(refused("!!int x"), "yaml: cannot decode !!str `x` as a !!int");
    assert_eq!(refused("a: .nan"), "json: unsupported value: NaN");
    assert_eq!(decode(b"\xff").expect_err("no UTF-8").to_string(), "yaml: invalid leading UTF-8 octet");
    assert_eq!(refused("a: 1\n- b"), "yaml: line 2: did not find expected key");
}

#[test]
fn objects_are_written_as_kube_writes_them() {
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"x": "1"},
        "metadata": {
            "creationTimestamp": "2024-01-02T03:04:05Z", "name": "a", "namespace": "test-ns", "resourceVersion": "12",
            "uid": "0b2c", "managedFields": [{
                "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {".": {}, "f:x": {}}},
                "manager": "recorder", "operation": "Update", "time": "2024-01-02T03:04:05Z",
            }],
        },
    });
    let text = "apiVersion: v1\ndata:\n  x: \"1\"\nkind: ConfigMap\nmetadata:\n  creationTimestamp: \"2024-01-02T03:04:05Z\"\n  \
                managedFields:\n  - apiVersion: v1\n    fieldsType: FieldsV1\n    fieldsV1:\n      f:data:\n        .: {}\n        \
                f:x: {}\n    manager: recorder\n    operation: Update\n    time: \"2024-01-02T03:04:05Z\"\n  name: a\n  \
                namespace: test-ns\n  resourceVersion: \"12\"\n  uid: 0b2c\n";
    assert_eq!(encode(&object), text);
    let status = json!({
        "apiVersion": "v1", "code": 404, "details": {"kind": "configmaps", "name": "zz"}, "kind": "Status",
        "message": "configmaps \"zz\" not found", "metadata": {}, "reason": "NotFound", "status": "Failure",
    });
    let text = "apiVersion: v1\ncode: 404\ndetails:\n  kind: configmaps\n  name: zz\nkind: Status\n\
                message: configmaps \"zz\" not found\nmetadata: {}\nreason: NotFound\nstatus: Failure\n";
    assert_eq!(encode(&status), text);
}

#[test]
fn texts_are_quoted_where_they_must_be() {
    let cases = [
        ("", "\"\""),
        ("y", "\"y\""),
        ("null", "\"null\""),
        ("1.5", "\"1.5\""),
        ("12:30:45", "\"12:30:45\""),
        ("2001-01-01", "\"2001-01-01\""),
        ("a: b", "'a: b'"),
        ("a:b", "a:b"),
        ("a #b", "'a #b'"),
        ("-", "'-'"),
        ("-a", "-a"),
        ("it's", "it's"),
        ("'a'", "'''a'''"),
        (" a", "' a'"),
        ("a\tb", "\"a\\tb\""),
        ("é", "é"),
        ("😀", "\"\\U0001F600\""),
        ("*a", "'*a'"),
        ("---", "'---'"),
        ("a\nb", "|-\n  a\n  b"),
        ("a\nb\n", "|\n  a\n  b"),
        ("a\n\n", "|+\n  a\n"),
        (" a\nb", "|2-\n   a\n  b"),
        ("a \nb", "\"a \\nb\""),
        ("\n", "|2+\n"),
    ];
    for (text, written) in cases {
        assert_eq!(encode(&json!({"k": text})), format!("k: {written}\n"), "{text:?}");
    }
}

#[test]
fn numbers_are_written_as_in_go() {
    let value = json!([1, -5, 1.0, 1.5, 1e20, 1e21, 1e-7, 1234567.5]);
    assert_eq!(encode(&value), "- 1\n- -5\n- 1\n- 1.5\n- 1e+20\n- 1e+21\n- 1e-07\n- 1.2345675e+06\n");
}

#[test]
fn keys_are_in_natural_order() {
    let value = json!({"a10": 1, "a2": 1, "B": 1, "b": 1, ".": 1, "_": 1, "a": 1});
    assert_eq!(encode(&value), ".: 1\n_: 1\nB: 1\na: 1\na2: 1\na10: 1\nb: 1\n");
}

#[test]
fn nested_lists_and_long_lines() {
    assert_eq!(encode(&json!([[1, [2]], [], [{"a": [3]}]])), "- - 1\n  - - 2\n- []\n- - a:\n    - 3\n");
    let long = "word ".repeat(20) + "end";
    let text = encode(&json!({"k": long}));
    assert!(text.lines().count() == 2 && text.lines().nth(1).is_some_and(|line| line.starts_with("  w")), "{text}");
    let key = "k".repeat(129);
    assert_eq!(encode(&json!({key.clone(): 1})), format!("? {key}\n: 1\n"));
}

fn any_value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        ".*",
        "[ \n\t:#'\"ab\\-]{0,12}",
        "[a-z ]{60,200}",
        "[0-9:._+eExo-]{0,10}",
        "[\u{85}\u{2028}\u{a0}\u{feff}\u{1f600}\r\u{7f} a]{0,4}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f32>().prop_filter("whole floats become integers", |f| f.fract() != 0.0).prop_map(Value::from),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(text.clone(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]
    #[test]
    fn what_is_written_reads_the_same(value in any_value()) {
        let text = encode(&value);
        let decoded = decode(text.as_bytes());
        prop_assert_eq!(decoded, Ok(DecodedYaml { value, duplicates: Vec::new() }), "{}", text);
    }

    #[test]
    fn no_bytes_make_it_panic(text in r#"[\-:#&*!|>'"%@`{}\[\],? \n\ta-c0-9<.]{0,60}"#, bytes: Vec<u8>) {
        let _ = (decode(text.as_bytes()), decode(&bytes));
    }
}
