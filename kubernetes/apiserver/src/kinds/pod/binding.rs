//! `pods/binding`: assigns a pod to a node.

use serde_json::{Value, json};

use crate::{
    api::{
        GroupResource, StatusError,
        field::FieldErrors,
        meta::{MetaAccessor, child_mut, meta_mut},
    },
    kinds::{
        field_value::FieldValue,
        json_object::{list_at, made, text_at},
    },
};

/// The pod with its node set and `PodScheduled` true, or why it cannot be bound. `now` is RFC 3339.
///
/// # Errors
/// If the binding is invalid, or the pod is bound, terminating or gated.
pub fn bind(pod: &Value, binding: &Value, now: &str) -> Result<Value, StatusError> {
    validate(binding)?;
    let conflict = |why: String| Err(StatusError::conflict(&GroupResource::new("", "pods/binding"), pod.name(), &why));
    let name = pod.name();
    let node = text_at(pod, &["spec", "nodeName"]);
    if pod.is_deleting() {
        return conflict(format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    if !node.is_empty() {
        return conflict(format!("pod {name} is already assigned to node {node:?}"));
    }
    if !list_at(pod, &["spec", "schedulingGates"]).is_empty() {
        return conflict(format!("pod {name} has non-empty .spec.schedulingGates"));
    }
    let mut bound = pod.clone();
    if let Some(spec) = made(&mut bound, "spec") {
        spec.insert("nodeName".to_owned(), text_at(binding, &["target", "name"]).into());
    }
    copy_annotations(&mut bound, binding);
    set_scheduled_condition(&mut bound, now);
    Ok(bound)
}

fn validate(binding: &Value) -> Result<(), StatusError> {
    let root = FieldValue::root(binding);
    let target = root.get("target");
    let mut errors = FieldErrors::new();
    let kind = target.get("kind");
    if !["", "Node", "<none>"].contains(&kind.str()) {
        kind.require_one_of(&mut errors, &["Node", "<none>"]);
    }
    target.get("name").require(&mut errors, "");
    match errors.as_slice() {
        [] => Ok(()),
        // Errors without a status of their own in kube-apiserver.
        [one] => Err(StatusError::new(http::StatusCode::INTERNAL_SERVER_ERROR, "", one.to_string())),
        many => {
            let all: Vec<String> = many.iter().map(ToString::to_string).collect();
            Err(StatusError::new(http::StatusCode::INTERNAL_SERVER_ERROR, "", format!("[{}]", all.join(", "))))
        }
    }
}

fn copy_annotations(pod: &mut Value, binding: &Value) {
    for field in ["annotations", "labels"] {
        let Some(more) = binding.meta(field).and_then(Value::as_object).filter(|more| !more.is_empty()) else {
            continue;
        };
        if let Some(map) = meta_mut(pod).and_then(|meta| child_mut(meta, field)) {
            map.extend(more.iter().map(|(key, value)| (key.clone(), value.clone())));
        }
    }
}

fn set_scheduled_condition(pod: &mut Value, now: &str) {
    let Some(status) = made(pod, "status") else { return };
    status.remove("nominatedNodeName");
    let condition = json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now});
    let list = status.entry("conditions").or_insert_with(|| json!([]));
    let Some(list) = list.as_array_mut() else { return };
    match list.iter_mut().find(|one| text_at(one, &["type"]) == "PodScheduled") {
        Some(one) if text_at(one, &["status"]) == "True" => {}
        Some(one) => *one = condition,
        None => list.push(condition),
    }
}
