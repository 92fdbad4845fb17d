//! Validates changes of a pod: only images, its deadline, more tolerations and fewer gates are allowed.

use serde_json::Value;

use crate::{
    api::field::{FieldError, FieldErrorType, FieldErrors},
    kinds::{
        field_value::FieldValue,
        json_object::{list_at, text_at},
        names,
        pod::container::report_invalid_number,
    },
};

const CHANGEABLE: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it \
was previously negative)";

/// Validates a change through the main path.
pub(super) fn validate(new: &Value, old: &Value, errors: &mut FieldErrors) {
    let root = FieldValue::root(new);
    let old_root = FieldValue::root(old);
    let spec = root.get("spec");
    let old_spec = old_root.get("spec");
    for list in ["containers", "initContainers"] {
        if spec.get(list).len() != old_spec.get(list).len() {
            return spec.get(list).report_forbidden(errors, "pod updates may not add or remove containers");
        }
    }
    if !deadline(&spec.get("activeDeadlineSeconds"), &old_spec.get("activeDeadlineSeconds"), errors) {
        return;
    }
    tolerations(&spec.get("tolerations"), old_spec.get("tolerations").value, errors);
    gates(&spec.get("schedulingGates"), old, errors);
    if spec.value == old_spec.value {
        return;
    }
    if without_changeable(spec.value, old) != without_changeable(old_spec.value, old) {
        spec.report_forbidden(errors, &format!("pod updates may not change fields other than {CHANGEABLE}\n"));
    }
}

fn deadline(now: &FieldValue<'_>, before: &FieldValue<'_>, errors: &mut FieldErrors) -> bool {
    match (now.int(), before.int()) {
        (Some(seconds), before) => {
            let wrong = names::in_range(seconds, 0, i64::from(i32::MAX));
            let good = wrong.is_empty();
            report_invalid_number(now, wrong, errors);
            if good && before.is_some_and(|before| before < seconds) {
                now.report_invalid(errors, "must be less than or equal to previous value");
                return false;
            }
            good
        }
        (None, Some(_)) => {
            now.report_invalid_as(errors, "null", "must not update from a positive integer to nil value");
            true
        }
        (None, None) => true,
    }
}

fn tolerations(now: &FieldValue<'_>, before: &Value, errors: &mut FieldErrors) {
    let same = |one: &Value, other: &Value| {
        ["key", "operator", "value", "effect"].iter().all(|field| text_at(one, &[field]) == text_at(other, &[field]))
    };
    let kept = |old: &Value| now.items().any(|one| same(one.value, old));
    if !before.as_array().into_iter().flatten().all(kept) {
        now.report_forbidden(errors, "existing toleration can not be modified except its tolerationSeconds");
    }
}

fn gates(now: &FieldValue<'_>, old: &Value, errors: &mut FieldErrors) {
    let known =
        |name: &str| list_at(old, &["spec", "schedulingGates"]).iter().any(|gate| text_at(gate, &["name"]) == name);
    for gate in now.items() {
        let name = gate.get("name");
        if !known(name.str()) {
            let detail = format!("only deletion is allowed, but found new scheduling gate '{}'", name.str());
            name.report_forbidden(errors, &detail);
        }
    }
}

/// A spec without the fields that may change.
fn without_changeable(spec: &Value, old: &Value) -> Value {
    let mut spec = spec.clone();
    let Some(fields) = spec.as_object_mut() else { return spec };
    for field in ["activeDeadlineSeconds", "tolerations", "schedulingGates", "serviceAccount"] {
        fields.remove(field);
    }
    if !list_at(old, &["spec", "schedulingGates"]).is_empty() {
        fields.remove("nodeSelector");
        if let Some(affinity) = fields.get_mut("affinity").and_then(Value::as_object_mut) {
            affinity.remove("nodeAffinity");
        }
        if fields.get("affinity").and_then(Value::as_object).is_some_and(serde_json::Map::is_empty) {
            fields.remove("affinity");
        }
    }
    let before = old.get("spec").and_then(|spec| spec.get("terminationGracePeriodSeconds")).and_then(Value::as_i64);
    if before.is_some_and(|seconds| seconds < 0) {
        fields.remove("terminationGracePeriodSeconds");
    }
    without_images(fields);
    spec
}

fn without_images(spec: &mut serde_json::Map<String, Value>) {
    for list in ["containers", "initContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(container) = container.as_object_mut() {
                container.remove("image");
            }
        }
    }
}

/// Validates a change of the status.
pub(super) fn validate_status(new: &Value, old: &Value, errors: &mut FieldErrors) {
    let root = FieldValue::root(new);
    let status = root.get("status");
    if text_at(new, &["status", "qosClass"]) != text_at(old, &["status", "qosClass"]) {
        status.get("qosClass").report_invalid(errors, "field is immutable");
    }
    let generation = status.get("observedGeneration");
    if generation.int().is_some_and(|number| number < 0) {
        generation.report_invalid(errors, "must be a non-negative integer");
    }
    for condition in status.get("conditions").items() {
        let kind = condition.get("type");
        kind.report_invalid_each(errors, names::qualified(kind.str()));
    }
}

/// Ephemeral containers can only be added, and nothing else may change.
pub(super) fn validate_ephemeral(new: &Value, old: &Value, errors: &mut FieldErrors) {
    let root = FieldValue::root(new);
    let spec = root.get("spec");
    super::spec::validate(&spec, errors);
    for (index, before) in list_at(old, &["spec", "ephemeralContainers"]).iter().enumerate() {
        let name = text_at(before, &["name"]);
        let now = list_at(new, &["spec", "ephemeralContainers"]).iter().find(|now| text_at(now, &["name"]) == name);
        let words = match now {
            None => format!("existing ephemeral containers {name:?} may not be removed\n"),
            Some(now) if now != before => format!("existing ephemeral containers {name:?} may not be changed\n"),
            Some(_) => continue,
        };
        let path = format!("spec.ephemeralContainers[{index}]");
        errors.push(FieldError::new(path, FieldErrorType::Forbidden, format!("Forbidden: {words}")));
    }
    only_changed(new, old, &["ephemeralContainers"], "ephemeralContainers", errors);
}

/// Only resources of containers may change.
pub(super) fn validate_resize(new: &Value, old: &Value, errors: &mut FieldErrors) {
    let root = FieldValue::root(new);
    let spec = root.get("spec");
    super::spec::validate(&spec, errors);
    let strip = |pod: &Value| {
        let mut spec = pod.get("spec").cloned().unwrap_or_default();
        for list in ["containers", "initContainers"] {
            for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                if let Some(container) = container.as_object_mut() {
                    container.remove("resources");
                }
            }
        }
        spec
    };
    if strip(new) != strip(old) {
        spec.report_forbidden(errors, "only cpu and memory resources are mutable");
    }
}

fn only_changed(new: &Value, old: &Value, fields: &[&str], what: &str, errors: &mut FieldErrors) {
    let strip = |pod: &Value| {
        let mut spec = pod.get("spec").cloned().unwrap_or_default();
        if let Some(spec) = spec.as_object_mut() {
            fields.iter().for_each(|field| drop(spec.remove(*field)));
        }
        spec
    };
    if strip(new) != strip(old) {
        let root = FieldValue::root(new);
        root.get("spec").report_forbidden(errors, &format!("may not change fields other than {what}"));
    }
}
