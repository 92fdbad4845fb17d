//! Label selectors of objects: `{matchLabels, matchExpressions}`.

use serde_json::{Map, Value};

use super::{field_value::FieldValue, metadata, names};
use crate::api::field::FieldErrors;

pub fn validate(selector: &FieldValue<'_>, errors: &mut FieldErrors) {
    metadata::labels(&selector.get("matchLabels"), errors);
    for requirement in selector.get("matchExpressions").items() {
        expression(&requirement, errors);
    }
}

fn expression(requirement: &FieldValue<'_>, errors: &mut FieldErrors) {
    let operator = requirement.get("operator");
    let values = requirement.get("values");
    match operator.str() {
        "In" | "NotIn" if values.is_empty() => {
            values.report_required(errors, "must be specified when `operator` is 'In' or 'NotIn'");
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            values.report_forbidden(errors, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        _ => operator.report_invalid_each(errors, vec!["not a valid selector operator".to_owned()]),
    }
    let key = requirement.get("key");
    key.report_invalid_each(errors, names::qualified(key.str()));
    for value in values.items() {
        value.report_invalid_each(errors, names::label_value(value.str()));
    }
}

/// Whether a selector has no requirements.
pub fn is_empty(selector: &Value) -> bool {
    let empty =
        |part: &Value| part.as_object().is_some_and(Map::is_empty) || part.as_array().is_some_and(Vec::is_empty);
    ["matchLabels", "matchExpressions"]
        .iter()
        .all(|part| selector.get(part).is_none_or(|part| part.is_null() || empty(part)))
}

/// Whether labels match a selector. An empty selector matches everything.
pub fn matches(selector: &Value, labels: Option<&Value>) -> bool {
    let label = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
    let wanted = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    let expressions = selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten();
    wanted.into_iter().all(|(key, value)| label(key) == value.as_str())
        && expressions.into_iter().all(|requirement| holds(requirement, label))
}

fn holds<'a>(requirement: &Value, label: impl Fn(&str) -> Option<&'a str>) -> bool {
    let text = |field: &str| requirement.get(field).and_then(Value::as_str).unwrap_or_default();
    let found = label(text("key"));
    let values = requirement.get("values").and_then(Value::as_array);
    let among = found.is_some_and(|found| values.into_iter().flatten().any(|value| value.as_str() == Some(found)));
    match text("operator") {
        "In" => among,
        "NotIn" => !among,
        "Exists" => found.is_some(),
        "DoesNotExist" => found.is_none(),
        _ => false,
    }
}

/// A selector as text, as in `status.selector` of a Scale: `app=web,tier in (a,b)`.
pub fn format_selector(selector: &Value) -> String {
    let labels = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    let mut parts: Vec<(String, String)> =
        labels.map(|(key, value)| (key.clone(), format!("{key}={}", value.as_str().unwrap_or_default()))).collect();
    for requirement in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
        let text = |field: &str| requirement.get(field).and_then(Value::as_str).unwrap_or_default();
        let values = requirement.get("values").and_then(Value::as_array).into_iter().flatten();
        let mut values: Vec<&str> = values.filter_map(Value::as_str).collect();
        values.sort_unstable();
        let key = text("key");
        let values = values.join(",");
        let part = match text("operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        };
        parts.push((key.to_owned(), part));
    }
    parts.sort();
    parts.into_iter().map(|(_, part)| part).collect::<Vec<_>>().join(",")
}

/// A map of labels as text: `a=b,c=d`.
pub fn format_labels(labels: &Value) -> String {
    let labels = labels.as_object().into_iter().flatten();
    labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect::<Vec<_>>().join(",")
}
