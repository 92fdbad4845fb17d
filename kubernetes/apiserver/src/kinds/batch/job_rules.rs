//! Validates the spec of a Job, also in a CronJob: counts, completion, and what happens to failed pods.
//!
//! The spec in a CronJob is not defaulted as a Job's is. Absent fields are therefore valid here.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    api::field::{FieldError, FieldErrorType, FieldErrors},
    kinds::{field_value::FieldValue, json_object::list_at, metadata, names, pod, workload::non_negative},
};

/// Limits of Jobs with indexes.
const MAX_INDEXED_PARALLELISM: i64 = 100_000;
const MAX_FAILED_INDEXES: i64 = 100_000;
const SOFT_COMPLETIONS: i64 = 100_000;
const MAX_PARALLELISM_ABOVE_SOFT: i64 = 10_000;
const MAX_FAILED_INDEXES_ABOVE_SOFT: i64 = 10_000;
/// Limits of lists and texts.
const MAX_RULES: usize = 20;
const MAX_EXIT_CODES: usize = 255;
const MAX_CONDITIONS: usize = 20;
const MAX_MANAGED_BY_BYTES: usize = 63;
const MAX_INDEXES_BYTES: usize = 64 * 1024;

pub(super) fn job_spec(spec: &FieldValue<'_>, errors: &mut FieldErrors) {
    let counts = ["parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"];
    non_negative(spec, &counts, errors);
    non_negative(spec, &["backoffLimitPerIndex", "maxFailedIndexes"], errors);
    let per_index = spec.get("backoffLimitPerIndex");
    if spec.get("maxFailedIndexes").is_set() && !per_index.is_set() {
        per_index.report_required(errors, "when maxFailedIndexes is specified");
    }
    managed_by(&spec.get("managedBy"), errors);
    let mode = spec.get("completionMode");
    if mode.is_set() {
        mode.require_one_of(errors, &["NonIndexed", "Indexed"]);
    }
    match mode.str() {
        "Indexed" => indexed(spec, errors),
        "" | "NonIndexed" => {
            for field in ["backoffLimitPerIndex", "maxFailedIndexes"] {
                if spec.get(field).is_set() {
                    spec.get(field).report_invalid(errors, "requires indexed completion mode");
                }
            }
        }
        _ => {}
    }
    let failures = spec.get("podFailurePolicy");
    failure_policy(spec, &failures, errors);
    let success = spec.get("successPolicy");
    if success.is_set() {
        if mode.str() == "Indexed" {
            success_policy(spec, &success, errors);
        } else {
            success.report_invalid_as(errors, &shown_success_policy(&success), "requires indexed completion mode");
        }
    }
    let replacement = spec.get("podReplacementPolicy");
    if replacement.is_set() {
        let known: &[&str] = if failures.is_set() { &["Failed"] } else { &["Failed", "TerminatingOrFailed"] };
        replacement.require_one_of(errors, known);
    }
    let template = spec.get("template");
    pod::validate_template(&template, errors);
    restart_policy(&template.get("spec"), &failures, errors);
}

fn restart_policy(pod: &FieldValue<'_>, failures: &FieldValue<'_>, errors: &mut FieldErrors) {
    let policy = pod.get("restartPolicy");
    match policy.str() {
        "" | "Always" => policy.report_required(errors, "valid values: \"OnFailure\", \"Never\""),
        "OnFailure" if failures.is_set() => {
            policy.report_invalid(errors, "only \"Never\" is supported when podFailurePolicy is specified");
        }
        "OnFailure" | "Never" => {}
        _ => policy.require_one_of(errors, &["OnFailure", "Never"]),
    }
}

fn managed_by(at: &FieldValue<'_>, errors: &mut FieldErrors) {
    if !at.is_set() {
        return;
    }
    metadata::domain_prefixed_path(at, errors);
    if at.str().len() > MAX_MANAGED_BY_BYTES {
        errors.push(FieldError::too_long(at.path(), MAX_MANAGED_BY_BYTES));
    }
}

fn indexed(spec: &FieldValue<'_>, errors: &mut FieldErrors) {
    let completions = spec.get("completions");
    let parallelism = spec.get("parallelism");
    let failed = spec.get("maxFailedIndexes");
    let limit = |at: &FieldValue<'_>, most: i64, detail: &str, errors: &mut FieldErrors| {
        if at.int().is_some_and(|count| count > most) {
            at.report_invalid(errors, detail);
        }
    };
    if !completions.is_set() {
        completions.report_required(errors, "when completion mode is Indexed");
    }
    let detail = format!("must be less than or equal to {MAX_INDEXED_PARALLELISM} when completion mode is Indexed");
    limit(&parallelism, MAX_INDEXED_PARALLELISM, &detail, errors);
    if let Some(count) = completions.int() {
        limit(&failed, count, "must be less than or equal to completions", errors);
    }
    limit(&failed, MAX_FAILED_INDEXES, &format!("must be less than or equal to {MAX_FAILED_INDEXES}"), errors);
    let is_large = completions.int().is_some_and(|count| count > SOFT_COMPLETIONS);
    if !is_large || !spec.get("backoffLimitPerIndex").is_set() {
        return;
    }
    if !failed.is_set() {
        failed.report_required(errors, &format!("must be specified when completions is above {SOFT_COMPLETIONS}"));
    }
    let detail = |most: i64| {
        let when = format!("when completions are above {SOFT_COMPLETIONS} and used with backoff limit per index");
        format!("must be less than or equal to {most} {when}")
    };
    limit(&parallelism, MAX_PARALLELISM_ABOVE_SOFT, &detail(MAX_PARALLELISM_ABOVE_SOFT), errors);
    limit(&failed, MAX_FAILED_INDEXES_ABOVE_SOFT, &detail(MAX_FAILED_INDEXES_ABOVE_SOFT), errors);
}

fn failure_policy(spec: &FieldValue<'_>, policy: &FieldValue<'_>, errors: &mut FieldErrors) {
    const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];
    let rules = policy.get("rules");
    if rules.len() > MAX_RULES {
        errors.push(FieldError::too_many(rules.path(), rules.len(), MAX_RULES));
    }
    let containers = ["containers", "initContainers"].map(|list| list_at(spec.value, &["template", "spec", list]));
    let containers = containers.into_iter().flatten().filter_map(|one| one.get("name").and_then(Value::as_str));
    let containers: BTreeSet<&str> = containers.collect();
    for rule in rules.items() {
        let action = rule.get("action");
        match action.str() {
            "" => action.report_required(errors, &format!("valid values: {}", quoted(&ACTIONS))),
            "FailIndex" if !spec.get("backoffLimitPerIndex").is_set() => {
                action.report_invalid(errors, "requires the backoffLimitPerIndex to be set");
            }
            _ => action.require_one_of(errors, &ACTIONS),
        }
        let codes = rule.get("onExitCodes");
        let conditions = rule.get("onPodConditions");
        if codes.is_set() {
            exit_codes(&codes, &containers, errors);
        }
        pod_conditions(&conditions, errors);
        let wrong = match (codes.is_set(), conditions.is_empty()) {
            (true, false) => "specifying both OnExitCodes and OnPodConditions is not supported",
            (false, true) => "specifying one of OnExitCodes and OnPodConditions is required",
            _ => continue,
        };
        errors.push(FieldError::new(rule.path(), FieldErrorType::Invalid, format!("Invalid value: {wrong}")));
    }
}

/// Values as Go prints a list of quoted ones.
fn quoted(values: &[&str]) -> String {
    format!("[{}]", values.iter().map(|value| format!("\"{value}\"")).collect::<Vec<_>>().join(" "))
}

fn exit_codes(codes: &FieldValue<'_>, containers: &BTreeSet<&str>, errors: &mut FieldErrors) {
    const OPERATORS: [&str; 2] = ["In", "NotIn"];
    let operator = codes.get("operator");
    if operator.is_empty() {
        operator.report_required(errors, &format!("valid values: {}", quoted(&OPERATORS)));
    } else {
        operator.require_one_of(errors, &OPERATORS);
    }
    let container = codes.get("containerName");
    if container.is_set() && !containers.contains(container.str()) {
        container.report_invalid(errors, "must be one of the container or initContainer names in the pod template");
    }
    let values = codes.get("values");
    if values.is_empty() {
        values.report_invalid(errors, "at least one value is required");
    } else if values.len() > MAX_EXIT_CODES {
        errors.push(FieldError::too_many(values.path(), values.len(), MAX_EXIT_CODES));
    }
    let mut seen = BTreeSet::new();
    let mut last = i64::MIN;
    let mut is_ordered = true;
    for value in values.items() {
        let code = value.int().unwrap_or_default();
        if operator.str() == "In" && code == 0 {
            value.report_invalid(errors, "must not be 0 for the In operator");
        }
        if !seen.insert(code) {
            value.report_duplicate(errors);
        }
        is_ordered &= last <= code;
        last = code;
    }
    if !is_ordered {
        values.report_invalid(errors, "must be ordered");
    }
}

fn pod_conditions(conditions: &FieldValue<'_>, errors: &mut FieldErrors) {
    const STATUSES: [&str; 3] = ["False", "True", "Unknown"];
    if conditions.len() > MAX_CONDITIONS {
        errors.push(FieldError::too_many(conditions.path(), conditions.len(), MAX_CONDITIONS));
    }
    for pattern in conditions.items() {
        let sort = pattern.get("type");
        let status = pattern.get("status");
        sort.report_invalid_each(errors, names::qualified(sort.str()));
        if status.is_empty() {
            status.report_required(errors, &format!("valid values: {}", quoted(&STATUSES)));
        } else {
            status.require_one_of(errors, &STATUSES);
        }
    }
}

/// A success policy as kube-apiserver's messages show it: its internal type in JSON.
fn shown_success_policy(policy: &FieldValue<'_>) -> String {
    let rules = policy.get("rules");
    if rules.is_empty() {
        return "{\"Rules\":null}".to_owned();
    }
    let fields = [("SucceededIndexes", "null"), ("SucceededCount", "null")];
    let rules = rules.items().map(|rule| rule.format_internal(&fields));
    format!("{{\"Rules\":[{}]}}", rules.collect::<Vec<_>>().join(","))
}

fn success_policy(spec: &FieldValue<'_>, policy: &FieldValue<'_>, errors: &mut FieldErrors) {
    let rules = policy.get("rules");
    rules.require(errors, "at least one rules must be specified when the successPolicy is specified");
    if rules.len() > MAX_RULES {
        errors.push(FieldError::too_many(rules.path(), rules.len(), MAX_RULES));
    }
    let completions = spec.get("completions").int().unwrap_or_default();
    for rule in rules.items() {
        let indexes = rule.get("succeededIndexes");
        let count = rule.get("succeededCount");
        if !indexes.is_set() && !count.is_set() {
            rule.report_required(errors, "at least one of succeededCount or succeededIndexes must be specified");
        }
        let mut total = 0;
        if indexes.is_set() {
            if indexes.str().len() > MAX_INDEXES_BYTES {
                errors.push(FieldError::too_long(indexes.path(), MAX_INDEXES_BYTES));
            }
            match count_indexes(indexes.str(), completions) {
                Ok(counted) => total = counted,
                Err(why) => indexes.report_invalid(errors, &format!("error parsing succeededIndexes: {why}")),
            }
        }
        let Some(wanted) = count.int() else { continue };
        count.require_non_negative(errors);
        if wanted > completions {
            let of = "the number of specified completions";
            count.report_invalid(errors, &format!("must be less than or equal to {completions} ({of})"));
        }
        if indexes.is_set() && wanted > total {
            let of = "the number of indexes in the specified succeededIndexes field";
            count.report_invalid(errors, &format!("must be less than or equal to {total} ({of})"));
        }
    }
}

/// The number of indexes in a text such as `1,3-5`.
fn count_indexes(text: &str, completions: i64) -> Result<i64, String> {
    let number = |text: &str| {
        let index: i64 = text.parse().map_err(|_| format!("cannot convert string to integer for index: \"{text}\""))?;
        if index >= completions { Err(format!("too large index: \"{text}\"")) } else { Ok(index) }
    };
    let mut total: i64 = 0;
    let mut last = None;
    for part in text.split(',').filter(|_| !text.is_empty()) {
        let mut ends = part.split('-');
        let first = number(ends.next().unwrap_or_default())?;
        let second = ends.next();
        if ends.next().is_some() {
            let rule = "the requirement that an index interval can have at most two parts separated by '-'";
            return Err(format!("the fragment \"{part}\" violates {rule}"));
        }
        let end = second.map(number).transpose()?;
        if let Some(end) = end.filter(|end| first >= *end) {
            return Err(format!("non-increasing order, previous: {first}, current: {end}"));
        }
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(format!("non-increasing order, previous: {last}, current: {first}"));
        }
        let end = end.unwrap_or(first);
        total = total.saturating_add(end.saturating_sub(first)).saturating_add(1);
        last = Some(end);
    }
    Ok(total)
}
