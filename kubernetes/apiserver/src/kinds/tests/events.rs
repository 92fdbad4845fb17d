//! Events in both shapes.

use serde_json::{Value, json};

use super::{bare, create, resource};
use crate::kinds::event;

fn core_event() -> Value {
    json!({
        "metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "namespace": "ns", "name": "p", "apiVersion": "v1"},
        "reason": "Because", "message": "text", "type": "Normal", "count": 1, "firstTimestamp": "2020-01-01T00:00:00Z",
        "lastTimestamp": "2020-01-01T00:00:01Z", "source": {"component": "c"},
    })
}

#[test]
fn an_event_has_all_fields_of_its_type() {
    let mut expected = core_event();
    expected["eventTime"] = Value::Null;
    expected["reportingComponent"] = json!("");
    expected["reportingInstance"] = json!("");
    assert_eq!(bare(create("v1", "Event", core_event()).unwrap()), expected);
}

#[test]
fn the_other_shape_has_other_names() {
    let mut shown = create("v1", "Event", core_event()).unwrap();
    let stored = shown.clone();
    event::from_core(&mut shown);
    let expected = json!({
        "metadata": {"name": "e"}, "eventTime": null, "reason": "Because", "note": "text", "type": "Normal",
        "regarding": {"kind": "Pod", "namespace": "ns", "name": "p", "apiVersion": "v1"},
        "deprecatedSource": {"component": "c"}, "deprecatedFirstTimestamp": "2020-01-01T00:00:00Z",
        "deprecatedLastTimestamp": "2020-01-01T00:00:01Z", "deprecatedCount": 1,
    });
    assert_eq!(bare(shown.clone()), expected);
    event::to_core(&mut shown);
    assert_eq!(shown, stored);
}

#[test]
fn an_event_is_where_its_object_is() {
    let body =
        json!({"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "namespace": "elsewhere", "name": "p"}});
    let words = "involvedObject.namespace: Invalid value: \"elsewhere\": does not match event.namespace";
    assert_eq!(create("v1", "Event", body).unwrap_err(), [words]);
    let bare = create("events.k8s.io/v1", "Event", json!({"metadata": {"name": "e"}})).unwrap_err();
    let expected = [
        "involvedObject.namespace: Invalid value: \"\": does not match event.namespace",
        "eventTime: Required value",
        "type: Invalid value: \"\": has invalid value: ",
    ];
    assert_eq!(bare, expected);
}

#[test]
fn selectors_work_in_both_shapes() {
    let event = create("v1", "Event", core_event()).unwrap();
    let core = resource("v1", "Event");
    assert_eq!(core.strategy.field_value(&event, "involvedObject.name").unwrap(), "p");
    assert_eq!(core.strategy.field_value(&event, "source").unwrap(), "c");
    let other = resource("events.k8s.io/v1", "Event");
    assert_eq!(other.strategy.field_value(&event, "regarding.name").unwrap(), "p");
}
