//! Job and CronJob. A Job makes its selector and the labels of its pods itself, from its uid and name.

pub(crate) mod cron;

use serde_json::{Value, json};

use super::{
    at::At,
    names,
    object::{Object, fill, fill_text, made, number_at, part, sub},
    pod, selector,
    workload::{self, non_negative, shown_selector},
};
use crate::{
    api::{
        field::{Error, Errors},
        meta::{Meta, child_mut, set_meta},
    },
    registry::Strategy,
};

const UID_LABEL: &str = "batch.kubernetes.io/controller-uid";
const NAME_LABEL: &str = "batch.kubernetes.io/job-name";
/// A CronJob's jobs have eleven more characters in their names.
const CRON_NAME_MAX: usize = 52;

/// Rules of Job.
#[derive(Clone, Copy, Debug)]
pub struct Job;

/// Rules of CronJob.
#[derive(Clone, Copy, Debug)]
pub struct CronJob;

impl Strategy for Job {
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
            fill(spec, "completions", 1);
        }
        fill(spec, "parallelism", 1);
        let each_index = spec.get("backoffLimitPerIndex").is_some_and(|limit| !limit.is_null());
        fill(spec, "backoffLimit", if each_index { i32::MAX } else { 6 });
        fill_text(spec, "completionMode", "NonIndexed");
        fill(spec, "suspend", false);
        let failing = spec.get("podFailurePolicy").is_some_and(Value::is_object);
        fill_text(spec, "podReplacementPolicy", if failing { "Failed" } else { "TerminatingOrFailed" });
        fill(spec, "manualSelector", false);
        labels_of_template(object);
    }

    fn prepare_create(&self, object: &mut Value) {
        let manual = object.pointer("/spec/manualSelector").and_then(Value::as_bool).unwrap_or(false);
        if !manual {
            generate_selector(object);
        }
        workload::prepare_create(object, json!({}));
        labels_of_template(object);
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str) {
        workload::prepare_update(new, old, subresource);
    }

    fn validate_create(&self, object: &Value, errors: &mut Errors) {
        let root = At::root(object);
        let spec = root.get("spec");
        generated(object, errors);
        selector_and_labels(&spec, errors);
        job_spec(&spec, errors);
    }

    fn validate_update(&self, new: &Value, old: &Value, subresource: &str, errors: &mut Errors) {
        let (root, old_root) = (At::root(new), At::root(old));
        if subresource == "status" {
            let counts = ["active", "succeeded", "failed", "ready", "terminating"];
            return non_negative(&root.get("status"), &counts, errors);
        }
        let (spec, old_spec) = (root.get("spec"), old_root.get("spec"));
        selector_and_labels(&spec, errors);
        job_spec(&spec, errors);
        workload::same_selector(&spec, &old_spec, errors);
        for field in ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"] {
            spec.get(field).immutable(errors, &old_spec.get(field));
        }
        if spec.get("completionMode").str() != "Indexed" {
            spec.get("completions").immutable(errors, &old_spec.get("completions"));
        }
        let suspended = old_spec.get("suspend").is_true();
        if !suspended {
            spec.get("template").immutable(errors, &old_spec.get("template"));
        }
    }

    fn field_value(&self, object: &Value, path: &str) -> Option<String> {
        (path == "status.successful").then(|| number_at(object, &["status", "succeeded"]).to_string())
    }
}

/// A Job without labels has those of its pods.
fn labels_of_template(job: &mut Value) {
    let has = job.meta("labels").and_then(Value::as_object).is_some_and(|labels| !labels.is_empty());
    let labels = job.pointer("/spec/template/metadata/labels").and_then(Value::as_object);
    if let Some(labels) = labels.filter(|labels| !has && !labels.is_empty()).cloned() {
        set_meta(job, "labels", labels);
    }
}

fn generate_selector(job: &mut Value) {
    let (name, uid) = (job.name().to_owned(), job.uid().to_owned());
    let Some(spec) = part(job, "spec") else { return };
    let meta = sub(spec, "template").and_then(|template| child_mut(template, "metadata"));
    if let Some(labels) = meta.and_then(|meta| child_mut(meta, "labels")) {
        fill(labels, "job-name", name.as_str());
        fill(labels, NAME_LABEL, name);
        fill(labels, "controller-uid", uid.as_str());
        fill(labels, UID_LABEL, uid.as_str());
    }
    if let Some(wanted) = child_mut(spec, "selector").and_then(|selector| child_mut(selector, "matchLabels")) {
        fill(wanted, UID_LABEL, uid);
    }
}

/// The labels that are made must not be told otherwise.
fn generated(job: &Value, errors: &mut Errors) {
    let root = At::root(job);
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
        if labels.key(key).str() != value {
            let detail = format!("must be '{value}'");
            errors.push(Error::invalid(labels.path(), labels.value, &format!("{key}: {detail}")));
        }
    }
    let made: Object = expected.iter().map(|(key, value)| ((*key).to_owned(), (*value).into())).collect();
    let wanted = spec.get("selector");
    if wanted.is_set() && !selector::matches(wanted.value, Some(&Value::Object(made))) {
        wanted.invalid_as(errors, &shown_selector(wanted.value), "`selector` not auto-generated");
    }
}

fn selector_and_labels(spec: &At<'_>, errors: &mut Errors) {
    let wanted = spec.get("selector");
    if !wanted.is_set() {
        return wanted.required(errors, "");
    }
    selector::validate(&wanted, errors);
    let template = spec.get("template");
    let meta = template.get("metadata");
    let labels = meta.get("labels");
    if !selector::matches(wanted.value, Some(labels.value)) {
        labels.invalid(errors, "`selector` does not match template `labels`");
    }
}

fn job_spec(spec: &At<'_>, errors: &mut Errors) {
    let counts = ["parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"];
    non_negative(spec, &counts, errors);
    non_negative(spec, &["backoffLimitPerIndex", "maxFailedIndexes"], errors);
    let mode = spec.get("completionMode");
    mode.one_of(errors, &["NonIndexed", "Indexed"]);
    if mode.str() == "Indexed" && !spec.get("completions").is_set() {
        spec.get("completions").required(errors, "when completion mode is Indexed");
    }
    if mode.str() == "NonIndexed" {
        for field in ["backoffLimitPerIndex", "maxFailedIndexes", "successPolicy"] {
            if spec.get(field).is_set() {
                spec.get(field).invalid(errors, "requires indexed completion mode");
            }
        }
    }
    spec.get("podReplacementPolicy").one_of(errors, &["Failed", "TerminatingOrFailed"]);
    let template = spec.get("template");
    pod::validate_template(&template, errors);
    restart_policy(&template.get("spec"), spec.get("podFailurePolicy").is_set(), errors);
}

fn restart_policy(pod: &At<'_>, failing: bool, errors: &mut Errors) {
    let policy = pod.get("restartPolicy");
    match policy.str() {
        "" | "Always" => policy.required(errors, "valid values: \"OnFailure\", \"Never\""),
        "OnFailure" if failing => {
            policy.invalid(errors, "only \"Never\" is supported when podFailurePolicy is specified")
        }
        "OnFailure" | "Never" => {}
        _ => policy.one_of(errors, &["OnFailure", "Never"]),
    }
}

impl Strategy for CronJob {
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
        fill_text(spec, "concurrencyPolicy", "Allow");
        fill(spec, "suspend", false);
        fill(spec, "successfulJobsHistoryLimit", 3);
        fill(spec, "failedJobsHistoryLimit", 1);
        fill(spec, "jobTemplate", json!({}));
        let Some(job) = sub(spec, "jobTemplate") else { return };
        fill(job, "metadata", json!({}));
        fill(job, "spec", json!({}));
        if let Some(job) = sub(job, "spec") {
            workload::defaults(job);
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        workload::prepare_create(object, json!({}));
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str) {
        workload::prepare_update(new, old, subresource);
    }

    fn validate_create(&self, object: &Value, errors: &mut Errors) {
        let root = At::root(object);
        let meta = root.get("metadata");
        if object.name().len() > CRON_NAME_MAX {
            meta.get("name").invalid(errors, &format!("must be no more than {CRON_NAME_MAX} characters"));
        }
        cron_spec(&root.get("spec"), errors);
    }

    fn validate_update(&self, new: &Value, _old: &Value, subresource: &str, errors: &mut Errors) {
        if subresource != "status" {
            let root = At::root(new);
            cron_spec(&root.get("spec"), errors);
        }
    }
}

fn cron_spec(spec: &At<'_>, errors: &mut Errors) {
    let schedule = spec.get("schedule");
    if schedule.require(errors, "") {
        let (zone, text) = cron::split_zone(schedule.str());
        if let Err(wrong) = cron::check(text) {
            schedule.invalid(errors, &wrong);
        } else if zone && spec.get("timeZone").is_set() {
            schedule.invalid(errors, "cannot use both timeZone field and TZ or CRON_TZ in schedule");
        } else if zone {
            schedule.invalid(errors, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
        }
    }
    let zone = spec.get("timeZone");
    if zone.is_set() && zone.is_empty() {
        zone.invalid(errors, "timeZone must be nil or non-empty string");
    } else if zone.str().eq_ignore_ascii_case("local") {
        zone.invalid(errors, "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones");
    }
    non_negative(spec, &["startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"], errors);
    spec.get("concurrencyPolicy").one_of(errors, &["Allow", "Forbid", "Replace"]);
    let template = spec.get("jobTemplate");
    let job = template.get("spec");
    job_spec_of_cron(&job, errors);
    if job.get("selector").is_set() {
        let wanted = job.get("selector");
        wanted.invalid_as(errors, &shown_selector(wanted.value), "`selector` will be auto-generated");
    }
    if job.get("manualSelector").is_true() {
        let manual = job.get("manualSelector");
        errors.push(Error::not_supported(manual.path(), manual.value, &["nil", "false"]));
    }
}

/// A job in a CronJob has no defaults of its own yet.
fn job_spec_of_cron(job: &At<'_>, errors: &mut Errors) {
    let counts = ["parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"];
    non_negative(job, &counts, errors);
    for (field, known) in
        [("completionMode", ["NonIndexed", "Indexed"]), ("podReplacementPolicy", ["Failed", "TerminatingOrFailed"])]
    {
        if job.get(field).is_set() {
            job.get(field).one_of(errors, &known);
        }
    }
    let template = job.get("template");
    pod::validate_template(&template, errors);
    restart_policy(&template.get("spec"), job.get("podFailurePolicy").is_set(), errors);
    let name = template.get("metadata");
    if !name.get("name").is_empty() {
        let name = name.get("name");
        name.invalid_each(errors, names::subdomain(name.str()));
    }
}
