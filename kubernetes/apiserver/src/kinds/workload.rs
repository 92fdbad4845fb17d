//! The rules that workloads share: matching selectors and templates, counts, and rolling updates.

use serde_json::{Value, json};

use super::{
    field_value::FieldValue,
    json_object::{
        JsonObject, bump_generation_if_changed, keep_all_but_status, nested_object_mut, restore_field, set,
        set_if_absent,
    },
    names, pod, selector,
};
use crate::api::field::{FieldError, FieldErrors};

/// Sets the defaults that all of them share, including those of the template.
pub(super) fn defaults(spec: &mut JsonObject) {
    set_if_absent(spec, "template", json!({}));
    if let Some(template) = nested_object_mut(spec, "template") {
        pod::default_template(template);
    }
}

/// Prepares a new object: an empty status, and the first generation.
pub(super) fn prepare_create(object: &mut Value, status: Value) {
    set(object, "status", status);
    super::json_object::init_generation(object);
}

/// Prepares a change: keeps the status and counts changes of the spec; through `status` the reverse.
pub(super) fn prepare_update(new: &mut Value, old: &Value, subresource: &str) {
    if subresource == "status" {
        return keep_all_but_status(new, old);
    }
    restore_field(new, old, "status");
    bump_generation_if_changed(new, old, &["spec"]);
}

/// Validates that the selector is not empty and selects the template, and that the template is valid. `of` is
/// the kind in messages.
pub(super) fn validate(spec: &FieldValue<'_>, of: &str, errors: &mut FieldErrors) {
    let wanted = spec.get("selector");
    if wanted.is_set() {
        selector::validate(&wanted, errors);
        if selector::is_empty(wanted.value) {
            wanted.report_invalid_as(
                errors,
                &shown_selector(wanted.value),
                &format!("empty selector is invalid for {of}"),
            );
        }
    } else {
        wanted.report_required(errors, "");
    }
    template_matches(spec, errors);
    pod::validate_template(&spec.get("template"), errors);
}

/// Without a selector nothing matches; an empty one is another error.
fn template_matches(spec: &FieldValue<'_>, errors: &mut FieldErrors) {
    let wanted = spec.get("selector");
    let template = spec.get("template");
    let meta = template.get("metadata");
    let labels = meta.get("labels");
    if wanted.is_set() && (selector::is_empty(wanted.value) || selector::matches(wanted.value, Some(labels.value))) {
        return;
    }
    labels.report_invalid(errors, "`selector` does not match template `labels`");
}

/// Requires `restartPolicy: Always`.
pub(super) fn always_restarts(spec: &FieldValue<'_>, of: &str, errors: &mut FieldErrors) {
    let template = spec.get("template");
    let pod = template.get("spec");
    let policy = pod.get("restartPolicy");
    if policy.str() != "Always" {
        errors.push(FieldError::not_supported(policy.path(), policy.value, &["Always"]));
    }
    let deadline = pod.get("activeDeadlineSeconds");
    if deadline.is_set() {
        deadline.report_forbidden(errors, &format!("activeDeadlineSeconds in {of} is not Supported"));
    }
}

/// Requires that numbers are not negative.
pub(super) fn non_negative(at: &FieldValue<'_>, fields: &[&str], errors: &mut FieldErrors) {
    for field in fields {
        at.get(field).require_non_negative(errors);
    }
}

/// A selector as kube-apiserver shows it: labels first.
pub(super) fn shown_selector(selector: &Value) -> String {
    super::metadata::format_in_order(selector, &["matchLabels", "matchExpressions"])
}

pub(super) fn same_selector(new: &FieldValue<'_>, old: &FieldValue<'_>, errors: &mut FieldErrors) {
    let now = new.get("selector");
    let before = old.get("selector");
    if now.value != before.value {
        now.report_invalid_as(errors, &shown_selector(now.value), "field is immutable");
    }
}

/// Reports an update strategy of an unknown type; `rolling` has the fields of a rolling update.
pub(super) fn unknown_strategy(strategy: &FieldValue<'_>, rolling: &[(&str, &str)], known: &[&str]) -> FieldError {
    let mut error = FieldError::not_supported(strategy.path(), &Value::Null, known);
    error.message = error.message.replacen("null", &shown_strategy(strategy, rolling), 1);
    error
}

/// An update strategy as kube-apiserver's messages show it.
pub(super) fn shown_strategy(strategy: &FieldValue<'_>, rolling: &[(&str, &str)]) -> String {
    let sort = Value::from(strategy.get("type").str());
    let rolling = strategy.get("rollingUpdate").format_internal(rolling);
    format!("{{\"Type\":{sort},\"RollingUpdate\":{rolling}}}")
}

/// The fields of a rolling update of Deployments and DaemonSets.
pub(super) const SURGING_UPDATE: [(&str, &str); 2] = [("MaxUnavailable", "0"), ("MaxSurge", "0")];

/// Requires that a count is at most another one. Absent counts are zero.
pub(super) fn at_most(at: &FieldValue<'_>, part: &str, whole: &str, shown: &str, errors: &mut FieldErrors) {
    let count = |field: &str| at.get(field).int().unwrap_or(0);
    if count(part) > count(whole) {
        let detail = format!("cannot be greater than {shown}");
        errors.push(FieldError::invalid(at.get(part).path(), &Value::from(count(part)), &detail));
    }
}

/// Requires a number or a percentage that is not negative.
pub(super) fn int_or_percent(at: &FieldValue<'_>, errors: &mut FieldErrors) {
    match at.value {
        Value::String(text) => at.report_invalid_each(errors, names::percent(text)),
        _ => at.require_non_negative(errors),
    }
}

/// Requires a percentage of at most 100.
pub(super) fn not_above_all(at: &FieldValue<'_>, errors: &mut FieldErrors) {
    if percent(at).is_some_and(|percent| percent > 100) {
        at.report_invalid(errors, "must not be greater than 100%");
    }
}

/// Whether a number or percentage is zero.
pub(super) fn is_zero(at: &FieldValue<'_>) -> bool {
    percent(at).or_else(|| at.int()).unwrap_or(0) == 0
}

fn percent(at: &FieldValue<'_>) -> Option<i64> {
    at.str().strip_suffix('%')?.parse().ok()
}
