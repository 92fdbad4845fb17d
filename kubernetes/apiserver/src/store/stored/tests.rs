use serde_json::json;

use super::*;
use crate::api::GroupResource;

fn key() -> ObjectKey {
    ObjectKey::new(GroupResource::new("", "configmaps"), "ns", "a")
}

fn text(stored: &Stored) -> &str {
    std::str::from_utf8(&stored.body).unwrap()
}

#[test]
fn the_body_has_no_kind_and_the_stores_own_version() {
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "\u{1}\"é"}, "spec": 1,
        "metadata": {"name": "a", "uid": "u", "resourceVersion": "999"},
    });
    let stored = Stored::from_value(key(), 42, &object).unwrap();
    let expected = r#"{"data":{"k":"\u0001\"é"},"metadata":{"name":"a","resourceVersion":"42","uid":"u"},"spec":1}"#;
    assert_eq!(text(&stored), expected);
    assert_eq!(stored.value()["metadata"]["resourceVersion"], "42");
}

#[test]
fn what_is_no_object_is_stored_as_an_empty_one() {
    for object in [json!(null), json!([]), json!({}), json!({"metadata": 7}), json!({"kind": "X", "apiVersion": "v1"})]
    {
        assert_eq!(text(&Stored::from_value(key(), 7, &object).unwrap()), r#"{"metadata":{"resourceVersion":"7"}}"#);
    }
}

#[test]
fn metadata_is_read_out() {
    let object = json!({"metadata": {
        "uid": "u-1", "labels": {"b": "2", "a": "1", "odd": 3}, "deletionTimestamp": "2026-01-01T00:00:00Z",
        "ownerReferences": [{"uid": "o-1"}, {"name": "no uid"}, {"uid": "o-2"}],
    }});
    let stored = Stored::from_value(key(), 2, &object).unwrap();
    assert_eq!((&*stored.uid, stored.deleting), ("u-1", true));
    assert_eq!(
        stored.labels.iter().map(|(key, value)| (&**key, &**value)).collect::<Vec<_>>(),
        [("a", "1"), ("b", "2")]
    );
    assert_eq!((stored.label("b"), stored.label("odd")), (Some("2"), None));
    assert_eq!(stored.owners.iter().map(|uid| &**uid).collect::<Vec<_>>(), ["o-1", "o-2"]);
}

#[test]
fn only_the_revision_does_not_make_a_difference() {
    let object =
        |version: &str, value: u32| json!({"metadata": {"resourceVersion": version, "uid": "u"}, "value": value});
    let stored = Stored::from_value(key(), 1000, &object("5", 1)).unwrap();
    assert!(EncodedObject::from_value(&object("77", 1)).unwrap().is_same_as(&stored));
    assert!(!EncodedObject::from_value(&object("1000", 2)).unwrap().is_same_as(&stored));
    let again = EncodedObject::from_stored(&stored).into_stored(key(), 9_999_999);
    assert_eq!(again.value(), Stored::from_value(key(), 9_999_999, &object("", 1)).unwrap().value());
}

#[test]
fn what_could_not_be_read_back_is_refused() {
    // The object itself is one level.
    let deep = |levels: usize| {
        let inner = (1..levels).fold(json!(1), |inner, _| json!([inner]));
        json!({ "spec": inner })
    };
    let stored = Stored::from_value(key(), 2, &deep(MAX_NESTING_DEPTH)).unwrap();
    assert!(stored.value()["spec"].is_array());
    assert!(matches!(Stored::from_value(key(), 2, &deep(MAX_NESTING_DEPTH + 1)), Err(WriteError::TooDeep)));
}

#[test]
fn debug_shows_no_secret() {
    let stored = Stored::from_value(key(), 2, &json!({"data": {"password": "hunter2"}})).unwrap();
    assert!(!format!("{stored:?}").contains("hunter2"));
}

#[test]
fn digits_are_counted() {
    for number in [0, 1, 9, 10, 99, 100, 12_345, u64::MAX] {
        assert_eq!(digits(number), number.to_string().len());
    }
}

#[test]
fn numbers_are_stored_as_go_writes_them() {
    let object = json!({"spec": [2.0, 1e3, 0.5, 1e30, 1.2345678901234567e19, 1e-9, 7]});
    let stored = Stored::from_value(key(), 7, &object).unwrap();
    assert!(text(&stored).ends_with(r#""spec":[2,1000,0.5,1e+30,12345678901234567000,1e-9,7]}"#), "{}", text(&stored));
}
