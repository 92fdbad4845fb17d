//! What may change in a pod that exists: images, its deadline, more tolerations, fewer gates.

use serde_json::Value;

use crate::{
    api::field::{Error, Errors, Kind},
    kinds::{
        at::At,
        names,
        object::{list_at, text_at},
        pod::container::number_wrong,
    },
};

const CHANGEABLE: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it \
was previously negative)";

/// A change through the main path.
pub(super) fn validate(new: &Value, old: &Value, errors: &mut Errors) {
    let (root, old_root) = (At::root(new), At::root(old));
    let (spec, old_spec) = (root.get("spec"), old_root.get("spec"));
    for list in ["containers", "initContainers"] {
        if spec.get(list).len() != old_spec.get(list).len() {
            return spec.get(list).forbidden(errors, "pod updates may not add or remove containers");
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
        spec.forbidden(errors, &format!("pod updates may not change fields other than {CHANGEABLE}\n"));
    }
}

fn deadline(now: &At<'_>, before: &At<'_>, errors: &mut Errors) -> bool {
    match (now.int(), before.int()) {
        (Some(seconds), before) => {
            let wrong = names::in_range(seconds, 0, i64::from(i32::MAX));
            let good = wrong.is_empty();
            number_wrong(now, wrong, errors);
            if good && before.is_some_and(|before| before < seconds) {
                now.invalid(errors, "must be less than or equal to previous value");
                return false;
            }
            good
        }
        (None, Some(_)) => {
            now.invalid_as(errors, "null", "must not update from a positive integer to nil value");
            true
        }
        (None, None) => true,
    }
}

fn tolerations(now: &At<'_>, before: &Value, errors: &mut Errors) {
    let same = |one: &Value, other: &Value| {
        ["key", "operator", "value", "effect"].iter().all(|field| text_at(one, &[field]) == text_at(other, &[field]))
    };
    let kept = |old: &Value| now.items().any(|one| same(one.value, old));
    if !before.as_array().into_iter().flatten().all(kept) {
        now.forbidden(errors, "existing toleration can not be modified except its tolerationSeconds");
    }
}

fn gates(now: &At<'_>, old: &Value, errors: &mut Errors) {
    let known =
        |name: &str| list_at(old, &["spec", "schedulingGates"]).iter().any(|gate| text_at(gate, &["name"]) == name);
    for gate in now.items() {
        let name = gate.get("name");
        if !known(name.str()) {
            let detail = format!("only deletion is allowed, but found new scheduling gate '{}'", name.str());
            name.forbidden(errors, &detail);
        }
    }
}

/// A spec without what may change.
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

/// A change of the status.
pub(super) fn validate_status(new: &Value, old: &Value, errors: &mut Errors) {
    let root = At::root(new);
    let status = root.get("status");
    if text_at(new, &["status", "qosClass"]) != text_at(old, &["status", "qosClass"]) {
        status.get("qosClass").invalid(errors, "field is immutable");
    }
    let generation = status.get("observedGeneration");
    if generation.int().is_some_and(|number| number < 0) {
        generation.invalid(errors, "must be a non-negative integer");
    }
    for condition in status.get("conditions").items() {
        let kind = condition.get("type");
        kind.invalid_each(errors, names::qualified(kind.str()));
    }
}

/// Ephemeral containers can only be added, and nothing else changes.
pub(super) fn validate_ephemeral(new: &Value, old: &Value, errors: &mut Errors) {
    let root = At::root(new);
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
        errors.push(Error::of(path, Kind::Forbidden, format!("Forbidden: {words}")));
    }
    only_changed(new, old, &["ephemeralContainers"], "ephemeralContainers", errors);
}

/// Only resources of containers change.
pub(super) fn validate_resize(new: &Value, old: &Value, errors: &mut Errors) {
    let root = At::root(new);
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
        spec.forbidden(errors, "only cpu and memory resources are mutable");
    }
}

fn only_changed(new: &Value, old: &Value, fields: &[&str], what: &str, errors: &mut Errors) {
    let strip = |pod: &Value| {
        let mut spec = pod.get("spec").cloned().unwrap_or_default();
        if let Some(spec) = spec.as_object_mut() {
            fields.iter().for_each(|field| drop(spec.remove(*field)));
        }
        spec
    };
    if strip(new) != strip(old) {
        let root = At::root(new);
        root.get("spec").forbidden(errors, &format!("may not change fields other than {what}"));
    }
}
