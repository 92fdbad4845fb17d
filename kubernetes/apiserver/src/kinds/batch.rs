//! Job and CronJob. A Job generates its selector and the labels of its pods from its uid and name.

pub(crate) mod cron;
mod job_rules;

use serde_json::{Value, json};

use self::job_rules::job_spec;
use super::{
    field_value::FieldValue,
    json_object::{
        JsonObject, made, nested_object_mut, number_at, object_member_mut, set_if_absent, set_text_if_empty,
    },
    selector,
    workload::{self, non_negative, shown_selector},
};
use crate::{
    api::{
        field::{FieldError, FieldErrors},
        meta::{MetaAccessor, child_mut, set_meta},
    },
    registry::Strategy,
};

const UID_LABEL: &str = "batch.kubernetes.io/controller-uid";
const NAME_LABEL: &str = "batch.kubernetes.io/job-name";
/// The names of a CronJob's jobs are eleven characters longer.
const CRON_NAME_MAX: usize = 52;
/// The longest part of the name of a time zone, in bytes.
const MAX_ZONE_PART: usize = 14;

#[derive(Clone, Copy, Debug)]
pub struct JobStrategy;

#[derive(Clone, Copy, Debug)]
pub struct CronJobStrategy;

impl Strategy for JobStrategy {
    fn warnings(&self, object: &Value) -> Vec<String> {
        let mut found = super::pod::host_name_warnings(object, super::pod::POD_NAMES);
        found.extend(super::pod::template_warnings(object, &["spec", "template"]));
        found
    }

    fn warnings_on_update(&self, new: &Value, old: &Value) -> Vec<String> {
        super::pod::template_warnings_on_update(new, old, &["spec", "template"])
    }

    fn default(&self, object: &mut Value) {
        made(object, "status");
        let Some(spec) = made(object, "spec") else { return };
        workload::defaults(spec);
        if spec.get("completions").is_none_or(Value::is_null) && spec.get("parallelism").is_none_or(Value::is_null) {
            set_if_absent(spec, "completions", 1);
        }
        set_if_absent(spec, "parallelism", 1);
        let each_index = spec.get("backoffLimitPerIndex").is_some_and(|limit| !limit.is_null());
        set_if_absent(spec, "backoffLimit", if each_index { i32::MAX } else { 6 });
        set_text_if_empty(spec, "completionMode", "NonIndexed");
        set_if_absent(spec, "suspend", false);
        let failing = spec.get("podFailurePolicy").is_some_and(Value::is_object);
        set_text_if_empty(spec, "podReplacementPolicy", if failing { "Failed" } else { "TerminatingOrFailed" });
        set_if_absent(spec, "manualSelector", false);
        copy_template_labels(object);
    }

    fn prepare_create(&self, object: &mut Value) {
        let manual = object.pointer("/spec/manualSelector").and_then(Value::as_bool).unwrap_or(false);
        if !manual {
            generate_selector(object);
        }
        workload::prepare_create(object, json!({}));
        copy_template_labels(object);
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str) {
        workload::prepare_update(new, old, subresource);
    }

    fn validate_create(&self, object: &Value, errors: &mut FieldErrors) {
        let root = FieldValue::root(object);
        let spec = root.get("spec");
        validate_generated_labels(object, errors);
        selector_and_labels(&spec, errors);
        job_spec(&spec, errors);
    }

    fn validate_update(&self, new: &Value, old: &Value, subresource: &str, errors: &mut FieldErrors) {
        let root = FieldValue::root(new);
        let old_root = FieldValue::root(old);
        if subresource == "status" {
            let counts = ["active", "succeeded", "failed", "ready", "terminating"];
            return non_negative(&root.get("status"), &counts, errors);
        }
        let spec = root.get("spec");
        let old_spec = old_root.get("spec");
        selector_and_labels(&spec, errors);
        job_spec(&spec, errors);
        workload::same_selector(&spec, &old_spec, errors);
        for field in ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"] {
            spec.get(field).require_unchanged(errors, &old_spec.get(field));
        }
        if spec.get("completionMode").str() != "Indexed" {
            spec.get("completions").require_unchanged(errors, &old_spec.get("completions"));
        }
        let is_mutable =
            old_spec.get("suspend").is_true() && old.pointer("/status/startTime").is_none_or(Value::is_null);
        if !is_mutable || without_scheduling(&spec) != without_scheduling(&old_spec) {
            spec.get("template").require_unchanged(errors, &old_spec.get("template"));
        }
    }

    fn field_value(&self, object: &Value, path: &str) -> Option<String> {
        (path == "status.successful").then(|| number_at(object, &["status", "succeeded"]).to_string())
    }
}

/// The template without what may change while a Job has not started: labels, and where its pods may run.
fn without_scheduling(spec: &FieldValue<'_>) -> Value {
    let mut template = spec.get("template").value.clone();
    let meta = template.get_mut("metadata").and_then(Value::as_object_mut);
    meta.into_iter().for_each(|meta| meta.retain(|name, _| !["labels", "annotations"].contains(&name.as_str())));
    let Some(pod) = object_member_mut(&mut template, "spec") else { return template };
    pod.retain(|name, _| !["nodeSelector", "tolerations", "schedulingGates"].contains(&name.as_str()));
    let affinity = nested_object_mut(pod, "affinity");
    let is_empty = affinity.is_none_or(|affinity| {
        affinity.retain(|name, one| name != "nodeAffinity" && !one.is_null());
        affinity.is_empty()
    });
    if is_empty {
        pod.remove("affinity");
    }
    template
}

/// Copies the labels of its pods to a Job without labels.
fn copy_template_labels(job: &mut Value) {
    let has = job.meta("labels").and_then(Value::as_object).is_some_and(|labels| !labels.is_empty());
    let labels = job.pointer("/spec/template/metadata/labels").and_then(Value::as_object);
    if let Some(labels) = labels.filter(|labels| !has && !labels.is_empty()).cloned() {
        set_meta(job, "labels", labels);
    }
}

fn generate_selector(job: &mut Value) {
    let name = job.name().to_owned();
    let uid = job.uid().to_owned();
    let Some(spec) = object_member_mut(job, "spec") else { return };
    let meta = nested_object_mut(spec, "template").and_then(|template| child_mut(template, "metadata"));
    if let Some(labels) = meta.and_then(|meta| child_mut(meta, "labels")) {
        set_if_absent(labels, "job-name", name.as_str());
        set_if_absent(labels, NAME_LABEL, name);
        set_if_absent(labels, "controller-uid", uid.as_str());
        set_if_absent(labels, UID_LABEL, uid.as_str());
    }
    if let Some(wanted) = child_mut(spec, "selector").and_then(|selector| child_mut(selector, "matchLabels")) {
        set_if_absent(wanted, UID_LABEL, uid);
    }
}

/// Refuses other values of the generated labels.
fn validate_generated_labels(job: &Value, errors: &mut FieldErrors) {
    let root = FieldValue::root(job);
    let spec = root.get("spec");
    if spec.get("manualSelector").is_true() {
        return;
    }
    let template = spec.get("template");
    let meta = template.get("metadata");
    let labels = meta.get("labels");
    let expected =
        [("controller-uid", job.uid()), ("job-name", job.name()), (UID_LABEL, job.uid()), (NAME_LABEL, job.name())];
    for (key, value) in expected {
        let label = labels.key(key);
        let detail = format!("must be '{value}'");
        if !label.is_set() {
            label.report_required(errors, &detail);
        } else if label.str() != value {
            errors.push(FieldError::invalid(label.path(), labels.value, &detail));
        }
    }
    let made: JsonObject = expected.iter().map(|(key, value)| ((*key).to_owned(), (*value).into())).collect();
    let wanted = spec.get("selector");
    if wanted.is_set() && !selector::matches(wanted.value, Some(&Value::Object(made))) {
        wanted.report_invalid_as(errors, &shown_selector(wanted.value), "`selector` not auto-generated");
    }
}

fn selector_and_labels(spec: &FieldValue<'_>, errors: &mut FieldErrors) {
    let wanted = spec.get("selector");
    if !wanted.is_set() {
        return wanted.report_required(errors, "");
    }
    selector::validate(&wanted, errors);
    let template = spec.get("template");
    let meta = template.get("metadata");
    let labels = meta.get("labels");
    if !selector::matches(wanted.value, Some(labels.value)) {
        labels.report_invalid(errors, "`selector` does not match template `labels`");
    }
}

impl Strategy for CronJobStrategy {
    fn warnings(&self, object: &Value) -> Vec<String> {
        let mut found = super::pod::host_name_warnings(object, super::pod::POD_NAMES);
        found.extend(super::pod::template_warnings(object, &["spec", "jobTemplate", "spec", "template"]));
        found
    }

    fn warnings_on_update(&self, new: &Value, old: &Value) -> Vec<String> {
        super::pod::template_warnings_on_update(new, old, &["spec", "jobTemplate", "spec", "template"])
    }

    fn default(&self, object: &mut Value) {
        made(object, "status");
        let Some(spec) = made(object, "spec") else { return };
        set_text_if_empty(spec, "concurrencyPolicy", "Allow");
        set_if_absent(spec, "suspend", false);
        set_if_absent(spec, "successfulJobsHistoryLimit", 3);
        set_if_absent(spec, "failedJobsHistoryLimit", 1);
        set_if_absent(spec, "jobTemplate", json!({}));
        let Some(job) = nested_object_mut(spec, "jobTemplate") else { return };
        set_if_absent(job, "metadata", json!({}));
        set_if_absent(job, "spec", json!({}));
        if let Some(job) = nested_object_mut(job, "spec") {
            workload::defaults(job);
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        workload::prepare_create(object, json!({}));
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str) {
        workload::prepare_update(new, old, subresource);
    }

    fn validate_create(&self, object: &Value, errors: &mut FieldErrors) {
        let root = FieldValue::root(object);
        let meta = root.get("metadata");
        if object.name().len() > CRON_NAME_MAX {
            meta.get("name").report_invalid(errors, &format!("must be no more than {CRON_NAME_MAX} characters"));
        }
        cron_spec(&root.get("spec"), errors);
    }

    fn validate_update(&self, new: &Value, _old: &Value, subresource: &str, errors: &mut FieldErrors) {
        if subresource != "status" {
            let root = FieldValue::root(new);
            cron_spec(&root.get("spec"), errors);
        }
    }
}

/// A time zone by its name. Which names exist is only known with a database of them.
fn time_zone(zone: &FieldValue<'_>, errors: &mut FieldErrors) {
    let is_part = |part: &str| {
        let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b".-_+".contains(&byte);
        (1..=MAX_ZONE_PART).contains(&part.len())
            && part.bytes().all(is_known)
            && ![".", ".."].contains(&part)
            && !part.starts_with('-')
    };
    let unknown = format!("unknown time zone {}", zone.str());
    if !zone.str().split('/').all(is_part) {
        return zone.report_invalid(errors, &unknown);
    }
    if zone.str().eq_ignore_ascii_case("local") {
        let detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        return zone.report_invalid(errors, detail);
    }
    let database = jiff::tz::db();
    if !database.is_definitively_empty() && zone.str() != "UTC" && database.get(zone.str()).is_err() {
        zone.report_invalid(errors, &unknown);
    }
}

fn cron_spec(spec: &FieldValue<'_>, errors: &mut FieldErrors) {
    let schedule = spec.get("schedule");
    if schedule.require(errors, "") {
        let (zone, text) = cron::split_zone(schedule.str());
        if let Err(wrong) = cron::check(text) {
            schedule.report_invalid(errors, &wrong);
        } else if zone && spec.get("timeZone").is_set() {
            schedule.report_invalid(errors, "cannot use both timeZone field and TZ or CRON_TZ in schedule");
        } else if zone {
            schedule.report_invalid(errors, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
        }
    }
    let zone = spec.get("timeZone");
    if zone.is_set() && zone.is_empty() {
        zone.report_invalid(errors, "timeZone must be nil or non-empty string");
    } else if zone.is_set() {
        time_zone(&zone, errors);
    }
    non_negative(spec, &["startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"], errors);
    spec.get("concurrencyPolicy").require_one_of(errors, &["Allow", "Forbid", "Replace"]);
    let template = spec.get("jobTemplate");
    let job = template.get("spec");
    job_spec(&job, errors);
    if job.get("selector").is_set() {
        let wanted = job.get("selector");
        wanted.report_invalid_as(errors, &shown_selector(wanted.value), "`selector` will be auto-generated");
    }
    if job.get("manualSelector").is_true() {
        let manual = job.get("manualSelector");
        errors.push(FieldError::not_supported(manual.path(), manual.value, &["nil", "false"]));
    }
}
