//! Validates access reviews, with kube-apiserver's messages.

use serde_json::{Map, Value};

use super::{GroupKind, MetaAccessor, StatusError, field};

/// The error of an invalid review.
pub(super) fn check(errors: &[field::FieldError]) -> Result<(), StatusError> {
    // At this point kube-apiserver no longer knows the kind, and its message shows that.
    if errors.is_empty() {
        Ok(())
    } else {
        Err(StatusError::invalid(&GroupKind::new("authorization.k8s.io", ""), "", errors))
    }
}

pub(super) fn self_subject_access(review: &Value) -> field::FieldErrors {
    let mut errors = attributes(review);
    errors.extend(selectors(review));
    errors.extend(metadata(review, &[], "must be empty"));
    errors
}

pub(super) fn subject_access(review: &Value) -> field::FieldErrors {
    let mut errors = spec(review);
    errors.extend(metadata(review, &[], "must be empty"));
    errors
}

pub(super) fn local_subject_access(review: &Value) -> field::FieldErrors {
    let mut errors = spec(review);
    errors.extend(metadata(review, &["namespace"], "must be empty except for namespace"));
    if let Some(resource) = part(review, "resourceAttributes") {
        let namespace = resource.get("namespace").and_then(Value::as_str).unwrap_or_default();
        if namespace != review.namespace() {
            let path = "spec.resourceAttributes.namespace";
            errors.push(field::FieldError::invalid(path, &namespace.into(), "must match metadata.namespace"));
        }
    }
    if let Some(path) = part(review, "nonResourceAttributes") {
        let shown = internal(path);
        errors.push(field::FieldError::invalid(
            "spec.nonResourceAttributes",
            &shown,
            "disallowed on this kind of request",
        ));
    }
    errors
}

fn spec(review: &Value) -> field::FieldErrors {
    let mut errors = attributes(review);
    let spec = review.get("spec");
    let user = spec.and_then(|spec| spec.get("user")).and_then(Value::as_str).unwrap_or_default();
    let groups = spec.and_then(|spec| spec.get("groups")).and_then(Value::as_array);
    if user.is_empty() && groups.is_none_or(Vec::is_empty) {
        errors.push(field::FieldError::invalid(
            "spec.user",
            &"".into(),
            "at least one of user or group must be specified",
        ));
    }
    errors.extend(selectors(review));
    errors
}

fn attributes(review: &Value) -> field::FieldErrors {
    match (part(review, "resourceAttributes"), part(review, "nonResourceAttributes")) {
        (Some(_), Some(path)) => {
            let detail = "cannot be specified in combination with resourceAttributes";
            vec![field::FieldError::invalid("spec.nonResourceAttributes", &internal(path), detail)]
        }
        (None, None) => {
            let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            vec![field::FieldError::invalid("spec", &Value::Null, detail)]
        }
        _ => Vec::new(),
    }
}

/// A selector is either a text or a list.
fn selectors(review: &Value) -> field::FieldErrors {
    let mut errors = Vec::new();
    for name in ["fieldSelector", "labelSelector"] {
        let resource = part(review, "resourceAttributes");
        let Some(selector) = resource.and_then(|resource| resource.get(name)).filter(|selector| !selector.is_null())
        else {
            continue;
        };
        let path = format!("spec.resourceAttributes.{name}");
        let raw = selector.get("rawSelector").and_then(Value::as_str).unwrap_or_default();
        let listed = selector.get("requirements").and_then(Value::as_array).is_some_and(|all| !all.is_empty());
        if !raw.is_empty() && listed {
            let detail = "may not specified at the same time as requirements";
            errors.push(field::FieldError::invalid(format!("{path}.rawSelector"), &raw.into(), detail));
        }
        if raw.is_empty() && !listed {
            let detail = format!("when {path} is specified, requirements or rawSelector is required");
            errors.push(field::FieldError::required(format!("{path}.requirements"), &detail));
        }
        let requirements = selector.get("requirements").and_then(Value::as_array);
        for (index, requirement) in requirements.into_iter().flatten().enumerate() {
            check_requirement(requirement, name, &format!("{path}.requirements[{index}]"), &mut errors);
        }
    }
    errors
}

/// Unknown operators may be of a later version. Label keys are checked where they are parsed.
fn check_requirement(requirement: &Value, selector: &str, path: &str, errors: &mut field::FieldErrors) {
    let text = |field: &str| requirement.get(field).and_then(Value::as_str).unwrap_or_default();
    let values = requirement.get("values").and_then(Value::as_array).map_or(0, Vec::len);
    if selector == "fieldSelector" && text("key").is_empty() {
        errors.push(field::FieldError::required(format!("{path}.key"), "must be specified"));
    }
    let path = format!("{path}.values");
    match text("operator") {
        "In" | "NotIn" if values == 0 => {
            let detail = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.push(field::FieldError::required(path, detail));
        }
        "Exists" | "DoesNotExist" if values > 0 => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(field::FieldError::forbidden(path, detail));
        }
        _ => {}
    }
}

fn metadata(review: &Value, allowed: &[&str], detail: &str) -> Option<field::FieldError> {
    let all = review.get("metadata").and_then(Value::as_object)?;
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    };
    let filled = || all.iter().filter(|(name, value)| *name != "managedFields" && !is_empty(value));
    let wrong = filled().any(|(name, _)| !allowed.contains(&name.as_str()));
    let shown: Map<_, _> = filled().map(|(name, value)| (name.clone(), value.clone())).collect();
    wrong.then(|| field::FieldError::invalid("metadata", &shown.into(), detail))
}

fn part<'a>(review: &'a Value, name: &str) -> Option<&'a Value> {
    review.get("spec")?.get(name).filter(|part| !part.is_null())
}

/// kube-apiserver shows the names of its internal type.
fn internal(path: &Value) -> Value {
    let text = |field| path.get(field).and_then(Value::as_str).unwrap_or_default();
    serde_json::json!({"Path": text("path"), "Verb": text("verb")})
}
