//! `spec.input` and `spec.filter`

use kubewake_config::RegexPattern;

use super::{context::ValidationContext, input_path};
use crate::{
    ConditionReason, Signal, TelemetryPipeline,
    pipeline::RecordFilter,
    v1alpha1::{AttributeMatcher, MatchType, NamespaceSelector, WorkloadReference, WorkloadSelector},
};

/// More than enough, as each expression may take megabytes in a collector.
const MAX_PATTERNS: usize = 256;
/// The schema's limit.
const MAX_TEXT_BYTES: usize = 1024;

pub(super) fn input(check: &mut ValidationContext<'_>, pipeline: &TelemetryPipeline) {
    let input = &pipeline.input;
    let path = input_path(pipeline.signal);
    if !input.enabled && pipeline.runtime.is_none() {
        let message = "is false, and the pipeline has no other input: it receives nothing";
        check.warn(format!("{path}.enabled"), ConditionReason::InputInvalid, message);
    }
    namespaces(check, path, &input.namespaces);
    workloads(check, path, &input.workloads);
}

/// `spec.input.runtime`
pub(super) fn runtime(check: &mut ValidationContext<'_>, pipeline: &TelemetryPipeline) {
    let Some(runtime) = &pipeline.runtime else { return };
    let path = "spec.input.runtime";
    namespaces(check, path, &runtime.namespaces);
    let containers = &runtime.containers;
    check_exclusive(check, &format!("{path}.containers"), &containers.include, &containers.exclude);
    for (field, names) in [("include", &containers.include), ("exclude", &containers.exclude)] {
        for (index, _) in names.iter().enumerate().filter(|(_, name)| !is_label(name)) {
            let path = format!("{path}.containers.{field}[{index}]");
            check.refuse(path, ConditionReason::InputInvalid, "is not the name of a container");
        }
    }
    workloads(check, path, &runtime.workloads);
    let lines = runtime.lines;
    for (field, is_set) in
        [("message", lines.message), ("severity", lines.severity), ("traceContext", lines.trace_context)]
    {
        if is_set && !lines.json {
            let path = format!("{path}.parse.{field}");
            check.refuse(path, ConditionReason::InputInvalid, "needs `json`, which is false");
        }
    }
}

fn namespaces(check: &mut ValidationContext<'_>, path: &str, namespaces: &NamespaceSelector) {
    check_exclusive(check, &format!("{path}.namespaces"), &namespaces.include, &namespaces.exclude);
    for (field, names) in [("include", &namespaces.include), ("exclude", &namespaces.exclude)] {
        for (index, _) in names.iter().enumerate().filter(|(_, name)| !is_label(name)) {
            let path = format!("{path}.namespaces.{field}[{index}]");
            check.refuse(path, ConditionReason::InputInvalid, "is not the name of a namespace");
        }
    }
}

fn workloads(check: &mut ValidationContext<'_>, path: &str, workloads: &WorkloadSelector) {
    check_exclusive(check, &format!("{path}.workloads"), &workloads.include, &workloads.exclude);
    for (field, list) in [("include", &workloads.include), ("exclude", &workloads.exclude)] {
        for (index, one) in list.iter().enumerate() {
            workload(check, &format!("{path}.workloads.{field}[{index}]"), one);
        }
    }
}

fn check_exclusive<T>(check: &mut ValidationContext<'_>, path: &str, include: &[T], exclude: &[T]) {
    if !include.is_empty() && !exclude.is_empty() {
        check.refuse(path, ConditionReason::InputInvalid, "set either `include` or `exclude`");
    }
}

fn workload(check: &mut ValidationContext<'_>, path: &str, workload: &WorkloadReference) {
    if !is_name(&workload.name) {
        check.refuse(format!("{path}.name"), ConditionReason::InputInvalid, "is not the name of a workload");
    }
    if !workload.namespace.as_deref().is_none_or(is_label) {
        check.refuse(format!("{path}.namespace"), ConditionReason::InputInvalid, "is not the name of a namespace");
    }
}

pub(crate) fn is_label(text: &str) -> bool {
    text.len() <= 63 && !text.contains('.') && is_name(text)
}

/// Whether Kubernetes accepts it as the name of most objects.
pub(crate) fn is_name(text: &str) -> bool {
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.len() <= 253
        && text.starts_with(edge)
        && text.ends_with(edge)
        && text.chars().all(|c| edge(c) || matches!(c, '-' | '.'))
}

pub(super) fn filter(check: &mut ValidationContext<'_>, pipeline: &TelemetryPipeline) {
    let mut patterns = 0;
    for (index, filter) in pipeline.filter.iter().enumerate() {
        check_filter(check, pipeline.signal, &format!("spec.filter[{index}]"), filter, &mut patterns);
    }
    if patterns > MAX_PATTERNS {
        let message =
            format!("has {patterns} expressions, but at most {MAX_PATTERNS} are allowed: combine some with `|`");
        check.refuse("spec.filter", ConditionReason::FilterInvalid, message);
    }
}

fn check_filter(
    check: &mut ValidationContext<'_>,
    signal: Signal,
    path: &str,
    filter: &RecordFilter,
    patterns: &mut usize,
) {
    let plain = RecordFilter { match_type: filter.match_type, ..RecordFilter::default() };
    if *filter == plain {
        check.refuse(path, ConditionReason::FilterInvalid, "has no condition, and would drop everything");
        return;
    }
    let alone = RecordFilter { severity_below: filter.severity_below, ..plain };
    if filter.severity_below.is_some() && *filter != alone {
        let message = "must be the only condition of a filter: move the other conditions to another filter";
        check.refuse(format!("{path}.severityBelow"), ConditionReason::FilterInvalid, message);
    }
    let names = if signal == Signal::Metrics { "metricNames" } else { "spanNames" };
    let lists = [
        ("services", &filter.services),
        (names, &filter.names),
        ("severityTexts", &filter.severity_texts),
        ("bodies", &filter.bodies),
    ];
    for (field, texts) in lists {
        for (index, text) in texts.iter().enumerate() {
            check_pattern(check, &format!("{path}.{field}[{index}]"), text, filter.match_type, patterns);
        }
    }
    for (field, attributes) in [("attributes", &filter.attributes), ("resources", &filter.resources)] {
        for (index, one) in attributes.iter().enumerate() {
            attribute(check, &format!("{path}.{field}[{index}]"), one, filter.match_type, patterns);
        }
    }
}

fn attribute(
    check: &mut ValidationContext<'_>,
    path: &str,
    attribute: &AttributeMatcher,
    kind: MatchType,
    patterns: &mut usize,
) {
    if attribute.key.is_empty() {
        check.refuse(format!("{path}.key"), ConditionReason::FilterInvalid, "is empty");
    }
    if let Some(value) = &attribute.value {
        check_pattern(check, &format!("{path}.value"), value, kind, patterns);
    }
}

fn check_pattern(check: &mut ValidationContext<'_>, path: &str, text: &str, kind: MatchType, patterns: &mut usize) {
    if text.len() > 4 * MAX_TEXT_BYTES {
        check.refuse(path, ConditionReason::FilterInvalid, format!("is longer than {MAX_TEXT_BYTES} characters"));
    } else if kind == MatchType::Regexp {
        *patterns += 1;
        if *patterns <= MAX_PATTERNS
            && let Err(error) = RegexPattern::new(text)
        {
            check.refuse(path, ConditionReason::FilterInvalid, format!("is not a valid regular expression: {error}"));
        }
    }
}
