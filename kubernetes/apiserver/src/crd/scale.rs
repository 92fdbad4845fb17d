//! The subresource `scale`: the desired and actual replicas of an object, independent of its kind.
//!
//! Custom resources define the paths of these fields; workloads have them at `spec.replicas`, `status.replicas`
//! and `spec.selector`.

use serde_json::{Map, Value, json};

use crate::{
    api::{
        field::{FieldError, FieldErrors},
        go_format,
        meta::MetaAccessor,
    },
    registry::ScalePaths,
};

/// The paths of workloads.
pub const SPEC_REPLICAS_PATH: &str = ".spec.replicas";

/// The Scale of a custom resource. If the number of replicas is not set, the result is the message of an
/// internal error, as in kube-apiserver.
pub fn custom_scale(object: &Value, paths: &ScalePaths) -> Result<Value, String> {
    let missing = || format!("the spec replicas field {:?} does not exist", paths.spec_replicas);
    integer_at(object, &paths.spec_replicas)?.ok_or_else(missing)?;
    custom_scale_or(object, paths, 0)
}

/// The same, with `unset` for an absent number of replicas.
pub fn custom_scale_or(object: &Value, paths: &ScalePaths, unset: i64) -> Result<Value, String> {
    let wanted = integer_at(object, &paths.spec_replicas)?.unwrap_or(unset);
    let has = integer_at(object, &paths.status_replicas)?.unwrap_or_default();
    let selector =
        paths.label_selector.as_deref().and_then(|path| value_at(object, path)?.as_str()).unwrap_or_default();
    Ok(scale(object, wanted, has, selector))
}

/// The Scale of a Deployment, ReplicaSet, StatefulSet or ReplicationController.
pub fn workload_scale(object: &Value) -> Value {
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64).unwrap_or_default();
    let selector = object.pointer("/spec/selector").map(selector_text).unwrap_or_default();
    scale(object, number("/spec/replicas"), number("/status/replicas"), &selector)
}

/// The replicas in a Scale, or their errors.
pub fn replicas(scale: &Value) -> Result<i64, FieldErrors> {
    let replicas = scale.pointer("/spec/replicas").unwrap_or(&Value::Null);
    match replicas.as_i64() {
        Some(count) if count < 0 => {
            Err(vec![FieldError::invalid("spec.replicas", replicas, "must be greater than or equal to 0")])
        }
        Some(count) => Ok(count),
        None => Ok(0),
    }
}

/// Sets the replicas of an object at a path such as [`SPEC_REPLICAS_PATH`].
pub fn write(object: &mut Value, path: &str, replicas: i64) {
    let mut here = object;
    for name in path.trim_start_matches('.').split('.') {
        if !here.is_object() {
            *here = Value::Object(Map::new());
        }
        let Some(fields) = here.as_object_mut() else { return };
        here = fields.entry(name).or_insert(Value::Null);
    }
    *here = replicas.into();
}

fn scale(object: &Value, wanted: i64, has: i64, selector: &str) -> Value {
    let fields = ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"];
    let metadata = fields.into_iter().filter_map(|field| Some((field.to_owned(), object.meta(field)?.clone())));
    let mut status = json!({"replicas": has});
    if let Some(status) = status.as_object_mut().filter(|_| !selector.is_empty()) {
        status.insert("selector".to_owned(), selector.into());
    }
    json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": Value::Object(metadata.collect()),
        "spec": if wanted == 0 { json!({}) } else { json!({"replicas": wanted}) },
        "status": status,
    })
}

/// Validates the desired replicas of a custom resource.
pub(crate) fn check_spec(object: &Value, paths: &ScalePaths, errors: &mut FieldErrors) {
    check_replicas(object, &paths.spec_replicas, errors);
}

/// Validates the actual replicas of a custom resource, and their selector.
pub(crate) fn check_status(object: &Value, paths: &ScalePaths, errors: &mut FieldErrors) {
    check_replicas(object, &paths.status_replicas, errors);
    let selector = paths.label_selector.as_deref();
    let found = selector.and_then(|path| Some((path, value_at(object, path).filter(|value| !value.is_string())?)));
    if let Some((path, value)) = found {
        errors.push(FieldError::invalid(path, &"".into(), &accessor_error(path, value, "string")));
    }
}

fn check_replicas(object: &Value, path: &str, errors: &mut FieldErrors) {
    match integer_at(object, path) {
        Err(why) => errors.push(FieldError::invalid(path, &0.into(), &why)),
        Ok(Some(count)) if count < 0 => {
            errors.push(FieldError::invalid(path, &count.into(), "should be a non-negative integer"))
        }
        Ok(Some(count)) if count > i64::from(i32::MAX) => {
            let detail = format!("should be less than or equal to {}", i32::MAX);
            errors.push(FieldError::invalid(path, &count.into(), &detail));
        }
        Ok(_) => {}
    }
}

fn value_at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    path.trim_start_matches('.').split('.').try_fold(object, |value, name| value.get(name))
}

fn integer_at(object: &Value, path: &str) -> Result<Option<i64>, String> {
    match value_at(object, path) {
        None => Ok(None),
        Some(value) => value.as_i64().map(Some).ok_or_else(|| accessor_error(path, value, "int64")),
    }
}

fn accessor_error(path: &str, value: &Value, wanted: &str) -> String {
    let is = if value.is_null() { "<nil>" } else { go_format::type_name(value) };
    let shown = go_format::printed(value);
    format!("{path} accessor error: {shown} is of the type {is}, expected {wanted}")
}

/// A label selector as text: `app=web,tier in (a,b)`. A plain map of labels is accepted, too.
pub fn selector_text(selector: &Value) -> String {
    let labels = selector.get("matchLabels").or_else(|| selector.get("matchExpressions").is_none().then_some(selector));
    let labels = labels.and_then(Value::as_object).into_iter().flatten();
    let equal = labels.filter_map(|(key, value)| Some((key.clone(), format!("{key}={}", value.as_str()?))));
    let expressions = selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten();
    let mut all: Vec<(String, String)> = equal.chain(expressions.filter_map(expression)).collect();
    all.sort();
    all.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(",")
}

fn expression(of: &Value) -> Option<(String, String)> {
    let key = of.get("key")?.as_str()?;
    let values = of.get("values").and_then(Value::as_array).into_iter().flatten();
    let mut values: Vec<&str> = values.filter_map(Value::as_str).collect();
    values.sort_unstable();
    let text = match of.get("operator")?.as_str()? {
        "In" => format!("{key} in ({})", values.join(",")),
        "NotIn" => format!("{key} notin ({})", values.join(",")),
        "Exists" => key.to_owned(),
        "DoesNotExist" => format!("!{key}"),
        _ => return None,
    };
    Some((key.to_owned(), text))
}

#[cfg(test)]
mod tests;
