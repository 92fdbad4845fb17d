//! Event: one object in two shapes, `v1` and `events.k8s.io/v1`. It is stored in the former.

use serde_json::{Value, json};

use super::{
    field_value::FieldValue,
    json_object::{JsonObject, nested_object_mut, set_if_absent, text_at},
    names,
};
use crate::{
    api::{
        GroupVersion,
        field::{FieldError, FieldErrors},
        meta::MetaAccessor,
    },
    registry::Strategy,
};

/// The longest value of most fields, and of the message.
const TEXT_MAX: usize = 128;
const MESSAGE_MAX: usize = 1024;
/// Field names in `v1` and in `events.k8s.io/v1`.
const NAMES: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// Rules of Event in `v1`.
#[derive(Clone, Copy, Debug)]
pub struct CoreEventStrategy;

/// The rules of Event in `events.k8s.io/v1`, which are stricter.
#[derive(Clone, Copy, Debug)]
pub struct EventsGroupStrategy;

/// Converts an Event from `events.k8s.io/v1` to `v1`.
pub fn to_core(event: &mut Value) {
    let Some(event) = event.as_object_mut() else { return };
    for (core, other) in NAMES {
        if let Some(value) = event.remove(other) {
            event.insert(core.to_owned(), value);
        }
    }
    shape_of_core(event);
}

/// Converts an Event from `v1` to `events.k8s.io/v1`.
pub fn from_core(event: &mut Value) {
    let Some(event) = event.as_object_mut() else { return };
    for (core, other) in NAMES {
        if let Some(value) = event.remove(core) {
            event.insert(other.to_owned(), value);
        }
    }
    for (field, empty) in [("regarding", json!({})), ("deprecatedSource", json!({}))] {
        set_if_absent(event, field, empty);
    }
    event.retain(|name, value| match name.as_str() {
        "deprecatedFirstTimestamp" | "deprecatedLastTimestamp" => true,
        "reportingController" | "reportingInstance" | "note" | "reason" | "type" | "action" => *value != "",
        "deprecatedCount" => *value != 0,
        _ => true,
    });
}

/// Fields that are always present, empty or not.
fn shape_of_core(event: &mut JsonObject) {
    for field in ["involvedObject", "source"] {
        set_if_absent(event, field, json!({}));
    }
    for field in ["reportingComponent", "reportingInstance"] {
        set_if_absent(event, field, "");
    }
    for field in ["eventTime", "firstTimestamp", "lastTimestamp"] {
        event.entry(field).or_insert(Value::Null);
    }
    if let Some(series) = nested_object_mut(event, "series") {
        series.entry("lastObservedTime").or_insert(Value::Null);
    }
}

impl Strategy for CoreEventStrategy {
    fn default(&self, object: &mut Value) {
        if let Some(event) = object.as_object_mut() {
            shape_of_core(event);
        }
    }

    fn validate_create(&self, object: &Value, errors: &mut FieldErrors) {
        basic(object, "reportingComponent", errors);
    }

    fn validate_update(&self, new: &Value, _old: &Value, _subresource: &str, errors: &mut FieldErrors) {
        basic(new, "reportingComponent", errors);
    }

    fn create_on_update(&self) -> bool {
        true
    }

    fn field_value(&self, object: &Value, path: &str) -> Option<String> {
        let value = match path {
            "source" => match text_at(object, &["source", "component"]) {
                "" => text_at(object, &["reportingComponent"]),
                component => component,
            },
            _ => {
                let path: Vec<&str> = path.split('.').collect();
                return Some(text_at(object, &path).to_owned());
            }
        };
        Some(value.to_owned())
    }
}

impl Strategy for EventsGroupStrategy {
    fn default(&self, object: &mut Value) {
        CoreEventStrategy.default(object);
    }

    fn validate_create(&self, object: &Value, errors: &mut FieldErrors) {
        let root = FieldValue::root(object);
        basic(object, "reportingController", errors);
        series(&root.get("series"), errors);
        root.get("eventTime").require(errors, "");
        let kind = root.get("type").str();
        if !["Normal", "Warning"].contains(&kind) {
            errors.push(FieldError::invalid("type", &json!(""), &format!("has invalid value: {kind}")));
        }
        for field in ["firstTimestamp", "lastTimestamp", "count", "source"] {
            let at = root.get(field);
            if !at.is_empty() && at.int() != Some(0) {
                at.report_invalid_as(errors, "\"\"", "needs to be unset");
            }
        }
    }

    fn validate_update(&self, new: &Value, old: &Value, _subresource: &str, errors: &mut FieldErrors) {
        let root = FieldValue::root(new);
        let old_root = FieldValue::root(old);
        basic(new, "reportingController", errors);
        if root.get("series").value != old_root.get("series").value {
            series(&root.get("series"), errors);
        }
        let fixed = [
            "involvedObject",
            "reason",
            "message",
            "source",
            "firstTimestamp",
            "lastTimestamp",
            "count",
            "type",
            "eventTime",
            "action",
            "related",
            "reportingInstance",
        ];
        for field in fixed {
            root.get(field).require_unchanged(errors, &old_root.get(field));
        }
        if root.get("reportingComponent").value != old_root.get("reportingComponent").value {
            let value = root.get("reportingComponent").value;
            errors.push(FieldError::invalid("reportingController", value, "field is immutable"));
        }
    }

    fn create_on_update(&self) -> bool {
        true
    }

    fn storage_version(&self) -> Option<GroupVersion> {
        Some(GroupVersion::new("", "v1"))
    }

    fn convert_to_stored(&self, object: &mut Value) {
        to_core(object);
    }

    fn convert_to_served(&self, object: &mut Value) {
        from_core(object);
    }

    fn field_value(&self, object: &Value, path: &str) -> Option<String> {
        let path = path.replace("regarding.", "involvedObject.").replace("reportingController", "reportingComponent");
        CoreEventStrategy.field_value(object, &path)
    }
}

fn series(series: &FieldValue<'_>, errors: &mut FieldErrors) {
    if !series.is_set() {
        return;
    }
    if series.get("count").int().unwrap_or(0) < 2 {
        series.get("count").report_invalid_as(errors, "\"\"", "should be at least 2");
    }
    series.get("lastObservedTime").require(errors, "");
}

/// The rules of both shapes. An event with `eventTime` is of the new form, and must have more fields.
fn basic(event: &Value, component: &str, errors: &mut FieldErrors) {
    let root = FieldValue::root(event);
    let namespace = event.namespace();
    let involved = root.get("involvedObject");
    let at = involved.get("namespace");
    let is_new = !root.get("eventTime").is_empty();
    let fits = match at.str() {
        "" if is_new => ["default", "kube-system"].contains(&namespace),
        "" => ["", "default"].contains(&namespace),
        other => is_new || other == namespace,
    };
    if !fits {
        at.report_invalid_each(errors, vec!["does not match event.namespace".to_owned()]);
    }
    if is_new {
        of_the_new_sort(&root, component, errors);
    }
}

fn of_the_new_sort(root: &FieldValue<'_>, component: &str, errors: &mut FieldErrors) {
    let reporter = FieldValue::named_root(component, root.get("reportingComponent").value);
    reporter.require(errors, "");
    reporter.report_invalid_each(errors, names::qualified(reporter.str()));
    for field in ["reportingInstance", "action", "reason"] {
        root.get(field).require(errors, "");
    }
    let limits =
        [("reportingInstance", TEXT_MAX), ("action", TEXT_MAX), ("reason", TEXT_MAX), ("message", MESSAGE_MAX)];
    for (field, max) in limits {
        if root.get(field).str().len() > max {
            root.get(field).report_invalid_as(errors, "\"\"", &format!("can have at most {max} characters"));
        }
    }
}
