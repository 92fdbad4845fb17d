//! What the kinds that make pods share: the selector and the template that must agree, counts, and how far an update may go.

use serde_json::{Value, json};

use super::{
    at::At,
    names,
    object::{Object, fill, keep, keep_all_but_status, next_generation, set, sub},
    pod, selector,
};
use crate::api::field::{Error, Errors};

/// Fills in the parts that each of them has, and the defaults of the template.
pub(super) fn defaults(spec: &mut Object) {
    fill(spec, "template", json!({}));
    if let Some(template) = sub(spec, "template") {
        pod::default_template(template);
    }
}

/// A new object: no status but its zeros, and the first generation.
pub(super) fn prepare_create(object: &mut Value, status: Value) {
    set(object, "status", status);
    super::object::first_generation(object);
}

/// A change: the status stays, and the spec counts; through `status` the other way round.
pub(super) fn prepare_update(new: &mut Value, old: &Value, subresource: &str) {
    if subresource == "status" {
        return keep_all_but_status(new, old);
    }
    keep(new, old, "status");
    next_generation(new, old, &["spec"]);
}

/// The selector is there, selects something, and selects the template; the template is good. `of` names the kind in messages.
pub(super) fn validate(spec: &At<'_>, of: &str, errors: &mut Errors) {
    let wanted = spec.get("selector");
    if wanted.is_set() {
        selector::validate(&wanted, errors);
        if selector::is_empty(wanted.value) {
            wanted.invalid_as(errors, &shown_selector(wanted.value), &format!("empty selector is invalid for {of}"));
        }
    } else {
        wanted.required(errors, "");
    }
    template_matches(spec, errors);
    pod::validate_template(&spec.get("template"), errors);
}

/// Without a selector nothing matches; an empty one is wrong for another reason.
fn template_matches(spec: &At<'_>, errors: &mut Errors) {
    let wanted = spec.get("selector");
    let template = spec.get("template");
    let meta = template.get("metadata");
    let labels = meta.get("labels");
    if wanted.is_set() && (selector::is_empty(wanted.value) || selector::matches(wanted.value, Some(labels.value))) {
        return;
    }
    labels.invalid(errors, "`selector` does not match template `labels`");
}

/// Pods of these kinds are started again for ever.
pub(super) fn always_restarts(spec: &At<'_>, of: &str, errors: &mut Errors) {
    let template = spec.get("template");
    let pod = template.get("spec");
    let policy = pod.get("restartPolicy");
    if policy.str() != "Always" {
        errors.push(Error::not_supported(policy.path(), policy.value, &["Always"]));
    }
    let deadline = pod.get("activeDeadlineSeconds");
    if deadline.is_set() {
        deadline.forbidden(errors, &format!("activeDeadlineSeconds in {of} is not Supported"));
    }
}

/// Numbers that are not negative.
pub(super) fn non_negative(at: &At<'_>, fields: &[&str], errors: &mut Errors) {
    for field in fields {
        at.get(field).non_negative(errors);
    }
}

/// A selector as kube-apiserver shows it: labels first.
pub(super) fn shown_selector(selector: &Value) -> String {
    super::metadata::shown_in_order(selector, &["matchLabels", "matchExpressions"])
}

/// The selector stays what it was.
pub(super) fn same_selector(new: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    let (now, before) = (new.get("selector"), old.get("selector"));
    if now.value != before.value {
        now.invalid_as(errors, &shown_selector(now.value), "field is immutable");
    }
}

/// A count that is at most another one. Absent counts are zero.
pub(super) fn at_most(at: &At<'_>, part: &str, whole: &str, shown: &str, errors: &mut Errors) {
    let count = |field: &str| at.get(field).int().unwrap_or(0);
    if count(part) > count(whole) {
        let detail = format!("cannot be greater than {shown}");
        errors.push(Error::invalid(at.get(part).path(), &Value::from(count(part)), &detail));
    }
}

/// A number or a percentage, neither negative.
pub(super) fn int_or_percent(at: &At<'_>, errors: &mut Errors) {
    match at.value {
        Value::String(text) => at.invalid_each(errors, names::percent(text)),
        _ => at.non_negative(errors),
    }
}

/// A percentage of at most all.
pub(super) fn not_above_all(at: &At<'_>, errors: &mut Errors) {
    if percent(at).is_some_and(|percent| percent > 100) {
        at.invalid(errors, "must not be greater than 100%");
    }
}

/// Whether a number or percentage is zero.
pub(super) fn is_zero(at: &At<'_>) -> bool {
    percent(at).or_else(|| at.int()).unwrap_or(0) == 0
}

fn percent(at: &At<'_>) -> Option<i64> {
    at.str().strip_suffix('%')?.parse().ok()
}
