//! Small parsers: selectors, paths, names.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::kinds::{jsonpath, names, selector};

#[test]
fn selectors_match_and_show() {
    let both = json!({
        "matchLabels": {"app": "web"},
        "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["b", "a"]}, {"key": "x", "operator": "DoesNotExist"},
        ],
    });
    assert!(selector::matches(&both, Some(&json!({"app": "web", "tier": "a"}))));
    assert!(!selector::matches(&both, Some(&json!({"app": "web", "tier": "a", "x": ""}))));
    assert!(!selector::matches(&both, None));
    assert!(selector::matches(&json!({}), None));
    assert_eq!(selector::format_selector(&both), "app=web,tier in (a,b),!x");
}

#[test]
fn paths_find_the_first_value() {
    let object = json!({
        "spec": {"list": [{"n": 1}, {"n": 2}], "a.b": "dotted"},
        "status": {"conditions": [{"type": "Up", "status": "No"}, {"type": "Ready", "status": "True"}]},
    });
    let found = |path: &str| jsonpath::find_first(&object, path).cloned();
    assert_eq!(found(".spec.list[1].n"), Some(json!(2)));
    assert_eq!(found(".spec.list[-1].n"), Some(json!(2)));
    assert_eq!(found(".spec.list[*].n"), Some(json!(1)));
    assert_eq!(found("{.spec['a.b']}"), Some(json!("dotted")));
    assert_eq!(found(".spec.a\\.b"), Some(json!("dotted")));
    assert_eq!(found(".status.conditions[?(@.type==\"Ready\")].status"), Some(json!("True")));
    assert_eq!(found(".status.conditions[?(@.type!='Up')].status"), Some(json!("True")));
    assert_eq!(found(".status.conditions[?(@.type==\"None\")].status"), None);
    for odd in [".", "", "[", ".a[", ".a[?(", "..", ".spec..list", ".spec.list[99999999999999999999]"] {
        let _ = found(odd);
    }
}

#[test]
fn label_keys_are_checked() {
    assert!(names::qualified("example.com/a_b.c").is_empty());
    assert_eq!(names::qualified("/a"), ["prefix part must be non-empty"]);
    assert_eq!(names::qualified("a/b/c").len(), 1);
    assert_eq!(names::qualified(&"a".repeat(64)), ["name part must be no more than 63 bytes"]);
    assert_eq!(names::qualified("").len(), 2);
    assert_eq!(names::qualified("A.b/c").len(), 1);
}

proptest! {
    #[test]
    fn no_text_breaks_a_reader(text in ".{0,40}") {
        let value = json!({"a": [{"b": text.clone()}]});
        let _ = (jsonpath::find_first(&value, &text), names::qualified(&text));
        let _ = (names::port_name(&text), names::config_key(&text), names::subdomain(&text));
        let key = Value::from(text.as_str());
        let _ = selector::format_selector(&json!({"matchExpressions": [{"key": key, "operator": key, "values": [key]}]}));
    }

    #[test]
    fn what_a_label_may_be_a_subdomain_may(name in "[a-z0-9-]{1,20}") {
        if names::label(&name).is_empty() {
            prop_assert!(names::subdomain(&name).is_empty());
            prop_assert!(names::label_value(&name).is_empty());
        }
    }
}
