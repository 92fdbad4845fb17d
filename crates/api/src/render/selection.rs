//! Renders the senders and records that a pipeline selects as one `filter`.

use kubewake_config::document_builder::{
    AttributeCondition, ConditionMatchType, FilterSection, MatchConditions, ProcessorSection,
};

use crate::{
    CollectorSettings, Signal, ValidPipeline,
    pipeline::{InputSelection, RecordFilter},
    v1alpha1::{self, AttributeMatcher, LogSeverity, SpanKind, StatusCode, WorkloadKind, WorkloadReference},
};

const NAMESPACE_ATTRIBUTE: &str = "k8s.namespace.name";

/// Whether a pipeline selects by sender.
pub(super) fn has_selection(input: &InputSelection) -> bool {
    let InputSelection { namespaces, workloads, .. } = input;
    !(namespaces.include.is_empty()
        && namespaces.exclude.is_empty()
        && workloads.include.is_empty()
        && workloads.exclude.is_empty())
}

/// `k8s_attributes`, with the attributes by which the pipelines select.
pub(super) fn enrichment(pipelines: &[&ValidPipeline], settings: &CollectorSettings) -> ProcessorSection {
    let by_set = pipelines.iter().any(|pipeline| {
        let workloads = &pipeline.input.workloads;
        workloads.include.iter().chain(&workloads.exclude).any(|one| one.kind == WorkloadKind::ReplicaSet)
    });
    let mut metadata = vec![
        NAMESPACE_ATTRIBUTE,
        "k8s.pod.name",
        "k8s.pod.uid",
        "k8s.pod.start_time",
        "k8s.node.name",
        "k8s.deployment.name",
        "k8s.statefulset.name",
        "k8s.daemonset.name",
        "k8s.job.name",
        "k8s.cronjob.name",
        "k8s.container.name",
    ];
    metadata.extend(by_set.then_some("k8s.replicaset.name"));
    let associations = vec![Some("k8s.pod.uid"), Some("k8s.pod.ip"), None];
    // Senders must be known from the first request on, or pipelines would receive others' data.
    let relays = settings.trusted_relays.iter();
    let trusted_relays = relays.map(|relay| (relay.namespace.clone(), relay.service_account.clone())).collect();
    ProcessorSection::KubernetesAttributes { metadata, wait_for_metadata: true, associations, trusted_relays }
}

/// The `filter` of a pipeline; none if it keeps everything.
pub(super) fn filter(pipeline: &ValidPipeline) -> Option<ProcessorSection> {
    let signal = pipeline.signal;
    let selection = FilterSection {
        include: included(signal, &pipeline.input, least_severity(&pipeline.filter)),
        exclude: excluded(signal, pipeline),
    };
    if selection == FilterSection::default() {
        return None;
    }
    Some(match signal {
        Signal::Traces => ProcessorSection::FilterSpans(selection),
        Signal::Logs => ProcessorSection::FilterLogs(selection),
        Signal::Metrics => ProcessorSection::FilterMetrics(selection),
    })
}

/// Conditions for the data that is kept: from one of the namespaces and from one of the workloads, and severe
/// enough.
fn included(signal: Signal, input: &InputSelection, min_severity: Option<&'static str>) -> Vec<MatchConditions> {
    let namespaces =
        (!input.namespaces.include.is_empty()).then(|| attribute_in(NAMESPACE_ATTRIBUTE, &input.namespaces.include));
    let with = |workload: Vec<AttributeCondition>| {
        let attributes: Vec<_> = namespaces.iter().cloned().chain(workload).collect();
        MatchConditions { min_severity, ..by_resource(signal, attributes) }
    };
    match (input.workloads.include.as_slice(), &namespaces, min_severity) {
        ([], None, None) => Vec::new(),
        ([], ..) => vec![with(Vec::new())],
        (workloads, ..) => workloads.iter().map(|one| with(workload(one))).collect(),
    }
}

fn excluded(signal: Signal, pipeline: &ValidPipeline) -> Vec<MatchConditions> {
    let InputSelection { namespaces, workloads, .. } = &pipeline.input;
    let mut excluded = Vec::new();
    if !namespaces.exclude.is_empty() {
        excluded.push(by_resource(signal, vec![attribute_in(NAMESPACE_ATTRIBUTE, &namespaces.exclude)]));
    }
    excluded.extend(workloads.exclude.iter().map(|one| by_resource(signal, workload(one))));
    let drops = pipeline.filter.iter().filter(|filter| filter.severity_below.is_none());
    excluded.extend(drops.map(|filter| conditions(signal, filter)));
    excluded
}

/// The highest minimum severity of all filters.
fn least_severity(filters: &[RecordFilter]) -> Option<&'static str> {
    const ORDER: [(LogSeverity, &str); 6] = [
        (LogSeverity::Fatal, "FATAL"),
        (LogSeverity::Error, "ERROR"),
        (LogSeverity::Warn, "WARN"),
        (LogSeverity::Info, "INFO"),
        (LogSeverity::Debug, "DEBUG"),
        (LogSeverity::Trace, "TRACE"),
    ];
    let asked = |severity: LogSeverity| filters.iter().any(|filter| filter.severity_below == Some(severity));
    ORDER.iter().find(|(severity, _)| asked(*severity)).map(|(_, word)| *word)
}

fn by_resource(signal: Signal, attributes: Vec<AttributeCondition>) -> MatchConditions {
    let attributes = if attributes.is_empty() { Vec::new() } else { vec![(resource_field(signal), attributes)] };
    MatchConditions { match_type: ConditionMatchType::Regexp, attributes, ..MatchConditions::default() }
}

fn resource_field(signal: Signal) -> &'static str {
    match signal {
        Signal::Traces => "resources",
        Signal::Logs | Signal::Metrics => "resource_attributes",
    }
}

fn attribute_in(key: &str, values: &[String]) -> AttributeCondition {
    let values: Vec<String> = values.iter().map(|value| quoted(value)).collect();
    AttributeCondition { key: key.to_owned(), value: Some(format!("^(?:{})$", values.join("|"))) }
}

fn workload(workload: &WorkloadReference) -> Vec<AttributeCondition> {
    let key = match workload.kind {
        WorkloadKind::Deployment => "k8s.deployment.name",
        WorkloadKind::StatefulSet => "k8s.statefulset.name",
        WorkloadKind::DaemonSet => "k8s.daemonset.name",
        WorkloadKind::ReplicaSet => "k8s.replicaset.name",
        WorkloadKind::Job => "k8s.job.name",
        WorkloadKind::CronJob => "k8s.cronjob.name",
        WorkloadKind::Pod => "k8s.pod.name",
    };
    let exact =
        |key: &str, value: &str| AttributeCondition { key: key.to_owned(), value: Some(match_whole_text(value)) };
    let namespace = workload.namespace.iter().map(|namespace| exact(NAMESPACE_ATTRIBUTE, namespace));
    [exact(key, &workload.name)].into_iter().chain(namespace).collect()
}

/// Converts one item of `spec.filter`.
fn conditions(signal: Signal, filter: &RecordFilter) -> MatchConditions {
    let values = || filter.attributes.iter().chain(&filter.resources).any(|attribute| attribute.value.is_some());
    // Attributes that are numbers or booleans can be compared with texts only by expressions.
    let style = match filter.match_type {
        v1alpha1::MatchType::Regexp => MatchStyle::Given,
        v1alpha1::MatchType::Strict if values() => MatchStyle::Quoted,
        v1alpha1::MatchType::Strict => MatchStyle::Strict,
    };
    let names = if signal == Signal::Metrics { "metric_names" } else { "span_names" };
    let kinds: Vec<String> = filter.span_kinds.iter().map(|kind| style.builtin_text(kind_word(*kind))).collect();
    let codes: Vec<String> = filter.status_codes.iter().map(|code| style.builtin_text(code_word(*code))).collect();
    let lists = [
        ("services", style.texts(&filter.services)),
        (names, style.texts(&filter.names)),
        ("span_kinds", kinds),
        ("status_codes", codes),
        ("severity_texts", style.texts(&filter.severity_texts)),
        ("bodies", style.texts(&filter.bodies)),
    ];
    let records = if signal == Signal::Logs { "record_attributes" } else { "attributes" };
    let attributes = [
        (records, style.attributes(&filter.attributes)),
        (resource_field(signal), style.attributes(&filter.resources)),
    ];
    MatchConditions {
        match_type: if style == MatchStyle::Strict { ConditionMatchType::Strict } else { ConditionMatchType::Regexp },
        texts: lists.into_iter().filter(|(_, texts)| !texts.is_empty()).collect(),
        attributes: attributes.into_iter().filter(|(_, attributes)| !attributes.is_empty()).collect(),
        min_severity: None,
    }
}

/// How texts are rendered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MatchStyle {
    /// As they are, for comparison of whole texts.
    Strict,
    /// As expressions that match only these texts.
    Quoted,
    /// As they are, since they are expressions.
    Given,
}

impl MatchStyle {
    fn text(self, text: &str) -> String {
        match self {
            Self::Strict | Self::Given => text.to_owned(),
            Self::Quoted => match_whole_text(text),
        }
    }

    /// A fixed text, which is never an expression of the user's.
    fn builtin_text(self, text: &str) -> String {
        if self == Self::Strict { text.to_owned() } else { match_whole_text(text) }
    }

    fn texts(self, texts: &[String]) -> Vec<String> {
        texts.iter().map(|text| self.text(text)).collect()
    }

    fn attributes(self, attributes: &[AttributeMatcher]) -> Vec<AttributeCondition> {
        let attribute = |one: &AttributeMatcher| AttributeCondition {
            key: one.key.clone(),
            value: one.value.as_ref().map(|value| self.text(value)),
        };
        attributes.iter().map(attribute).collect()
    }
}

fn kind_word(kind: SpanKind) -> &'static str {
    match kind {
        SpanKind::Internal => "SPAN_KIND_INTERNAL",
        SpanKind::Server => "SPAN_KIND_SERVER",
        SpanKind::Client => "SPAN_KIND_CLIENT",
        SpanKind::Producer => "SPAN_KIND_PRODUCER",
        SpanKind::Consumer => "SPAN_KIND_CONSUMER",
    }
}

fn code_word(code: StatusCode) -> &'static str {
    match code {
        StatusCode::Unset => "STATUS_CODE_UNSET",
        StatusCode::Ok => "STATUS_CODE_OK",
        StatusCode::Error => "STATUS_CODE_ERROR",
    }
}

/// An expression that matches this text and no other.
fn match_whole_text(text: &str) -> String {
    format!("^{}$", quoted(text))
}

/// An expression that finds this text.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if r"\.+*?()|[]{}^$".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
