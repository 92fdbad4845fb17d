use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{
    api::GroupVersion,
    registry::{CustomResourceInfo, DefaultStrategy, ServedResource},
    schema::Schema,
};

fn refused(text: &str) -> String {
    LabelSelector::parse(text).expect_err(text).message
}

#[test]
fn bad_label_selectors_are_refused_in_kubes_words() {
    let cases = [
        ("a===b", "unable to parse requirement: found '=', expected: identifier"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("a=b,,c", "found ',', expected: identifier after ','"),
        ("a=b!", "found '!', expected: ',' or 'end of string'"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in (=)", "unable to parse requirement: found '=', expected: ',', ')' or identifier"),
        (",a", "found ',', expected: !, identifier, or 'end of string'"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        (
            "a>x",
            "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer",
        ),
        (
            "-x=y",
            "unable to parse requirement: <nil>: Invalid value: \"-x\": name part must consist of alphanumeric characters, '-', '_' \
             or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used \
             for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        ),
        (
            "a=-x",
            "unable to parse requirement: values[0][a]: Invalid value: \"-x\": a valid label must be an empty string or consist of \
             alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or \
             'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
        ),
    ];
    for (text, message) in cases {
        assert_eq!(refused(text), message, "{text}");
    }
}

#[test]
fn label_selectors_select() {
    let objects = [
        ("a", json!({"metadata": {"labels": {"e": "1", "t": "x"}}})),
        ("b", json!({"metadata": {"labels": {"e": "2"}}})),
        ("c", json!({"metadata": {}})),
    ];
    let cases = [
        ("e=1", "a"),
        ("e==2", "b"),
        ("e!=1", "bc"),
        ("e in (1,2)", "ab"),
        ("e notin (1)", "bc"),
        ("e", "ab"),
        ("!e", "c"),
        ("e,t=x", "a"),
        ("e in (1),!t", ""),
        ("e=", ""),
        ("", "abc"),
        ("e>1", "b"),
        ("e<2", "a"),
        (" e  in ( 1 , ) ", "a"),
        ("in=1", ""),
    ];
    for (text, selected) in cases {
        let selector = LabelSelector::parse(text).expect(text);
        let found: String =
            objects.iter().filter(|(_, object)| selector.matches_object(object)).map(|(n, _)| *n).collect();
        assert_eq!(found, selected, "{text}");
    }
}

#[test]
fn an_objects_selector_selects() {
    let selector = json!({
        "matchLabels": {"app": "web"},
        "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["x"]}, {"key": "on", "operator": "Exists"}],
    });
    let selector = LabelSelector::from_value(Some(&selector)).expect("a selector");
    let labels = |pairs: &[(&str, &str)]| {
        let pairs: Vec<(String, String)> = pairs.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
        selector.matches(|key| pairs.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str()))
    };
    assert!(labels(&[("app", "web"), ("on", "")]));
    assert!(!labels(&[("app", "web")]));
    assert!(!labels(&[("app", "web"), ("on", ""), ("tier", "x")]));

    assert!(!LabelSelector::from_value(None).expect("none").matches_object(&json!({})));
    assert!(LabelSelector::from_value(Some(&json!({}))).expect("empty").matches_object(&json!({})));
    let bad = json!({"matchExpressions": [{"key": "a", "operator": "Like"}]});
    let why = LabelSelector::from_value(Some(&bad)).expect_err("a bad operator");
    assert_eq!(why, "\"Like\" is not a valid label selector operator");
}

fn resource(custom: bool, selectable: &[&str]) -> ServedResource {
    ServedResource {
        gv: GroupVersion::new("", "v1"),
        plural: "things".into(),
        singular: "thing".into(),
        kind: "Thing".into(),
        list_kind: "ThingList".into(),
        namespaced: true,
        short_names: Vec::new(),
        categories: Vec::new(),
        verbs: Vec::new(),
        subresources: Vec::new(),
        schema: Schema::default().into(),
        strategy: Arc::new(DefaultStrategy),
        custom: custom.then(|| Arc::new(CustomResourceInfo::default())),
        selectable: selectable.iter().map(|&field| field.into()).collect(),
        storage_version_hash: "".into(),
    }
}

#[test]
fn bad_field_selectors_are_refused_in_kubes_words() {
    let message = |text: &str| FieldSelector::parse(text).expect_err(text).message;
    assert_eq!(message("metadata.name"), "invalid selector: 'metadata.name'; can't understand 'metadata.name'");
    assert_eq!(message("a=b=c"), "invalid field selector: unescaped character in value: 61");
    assert_eq!(message("a=\\x"), "invalid field selector: invalid escape sequence: \\x");

    let check = |text: &str, resource| FieldSelector::parse(text).expect(text).check(&resource).map_err(|e| e.message);
    let plain = r#""data.k" is not a known field selector: only "metadata.name", "metadata.namespace""#;
    assert_eq!(check("data.k=v", resource(false, &[])), Err(plain.to_owned()));
    assert_eq!(check("a=v", resource(false, &["b"])), Err("field label not supported: a".to_owned()));
    assert_eq!(check("spec.size=v", resource(true, &[])), Err("field label not supported: spec.size".to_owned()));
    assert_eq!(check("b=v,metadata.namespace=x", resource(true, &["b"])), Ok(()));
}

#[test]
fn field_selectors_select() {
    let object = json!({"metadata": {"name": "a,b=c"}, "spec": {"n": 3, "on": true}, "status": {"phase": "Running"}});
    let resource = resource(false, &[]);
    let cases = [
        (r"metadata.name=a\,b\=c", true),
        ("status.phase==Running", true),
        ("status.phase!=Running", false),
        ("status.phase!=Pending,spec.n=3,spec.on=true", true),
        ("spec.absent=", true),
        ("spec.absent!=x", true),
        ("spec=x", false),
        ("", true),
    ];
    for (text, selected) in cases {
        let selector = FieldSelector::parse(text).expect(text);
        assert_eq!(selector.matches_object(&object, &resource), selected, "{text}");
    }
    let selector = FieldSelector::parse("metadata.name=x").expect("a selector");
    assert_eq!(selector.exact("metadata.name"), Some("x"));
}

proptest! {
    #[test]
    fn no_text_makes_selectors_panic(text in r#"[a-c!=(),<> inot\\.\x00é]{0,24}"#) {
        let object = Value::Null;
        if let Ok(selector) = LabelSelector::parse(&text) {
            selector.matches_object(&object);
        }
        let _ = FieldSelector::parse(&text);
    }
}
