//! RuntimeClass, and what it does to the pods that name it.

use serde_json::{Value, json};

use super::{
    field_value::FieldValue,
    json_object::{list_at, object_member_mut, text_at, value_at},
    metadata, names,
};
use crate::{api::field::FieldErrors, registry::Strategy};

#[derive(Clone, Copy, Debug)]
pub struct RuntimeClassStrategy;

impl Strategy for RuntimeClassStrategy {
    fn validate_create(&self, object: &Value, errors: &mut FieldErrors) {
        let root = FieldValue::root(object);
        let handler = root.get("handler");
        handler.report_invalid_each(errors, names::label(handler.str()));
        let scheduling = root.get("scheduling");
        metadata::labels(&scheduling.get("nodeSelector"), errors);
    }

    fn validate_update(&self, new: &Value, old: &Value, _subresource: &str, errors: &mut FieldErrors) {
        let root = FieldValue::root(new);
        let old_root = FieldValue::root(old);
        root.get("handler").require_unchanged(errors, &old_root.get("handler"));
    }

    fn create_on_update(&self) -> bool {
        true
    }

    fn unconditional_update(&self) -> bool {
        false
    }
}

/// Applies the class of a new pod: what it needs beside its containers, and where it can run.
///
/// # Errors
/// If the pod says something else.
pub fn apply_to_pod(pod: &mut Value, class: Option<&Value>) -> Result<(), String> {
    const MISMATCH: &str = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";
    let Some(spec) = object_member_mut(pod, "spec") else { return Ok(()) };
    let given = spec.get("overhead").filter(|overhead| overhead.as_object().is_some_and(|map| !map.is_empty()));
    match class.and_then(|class| value_at(class, &["overhead", "podFixed"])) {
        Some(fixed) if given.is_some_and(|given| given != fixed) => return Err(MISMATCH.to_owned()),
        Some(fixed) => drop(spec.insert("overhead".to_owned(), fixed.clone())),
        None if given.is_some() => {
            return Err("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead".to_owned());
        }
        None => {}
    }
    let Some(scheduling) = class.and_then(|class| class.get("scheduling")) else { return Ok(()) };
    let wanted = scheduling.get("nodeSelector").and_then(Value::as_object).into_iter().flatten();
    for (key, value) in wanted {
        let selector = spec.entry("nodeSelector").or_insert_with(|| json!({}));
        let text = value.as_str().unwrap_or_default();
        let own = text_at(selector, &[key]);
        if selector.get(key).is_some() && own != text {
            let class = format!("runtimeClass.scheduling.nodeSelector[{key}] = {text}");
            return Err(format!("conflict: {class}; pod.spec.nodeSelector[{key}] = {own}"));
        }
        selector[key.as_str()] = value.clone();
    }
    let tolerations = list_at(scheduling, &["tolerations"]);
    if !tolerations.is_empty() {
        let own = spec.entry("tolerations").or_insert_with(|| json!([]));
        if let Some(own) = own.as_array_mut() {
            let more: Vec<Value> = tolerations.iter().filter(|one| !own.contains(one)).cloned().collect();
            own.extend(more);
        }
    }
    Ok(())
}
