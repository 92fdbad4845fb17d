//! What a pipeline takes and what it drops, as one `filter`.

use kubewake_config::written::{AttributeMatch, Conditions, MatchType, Processor, Selection};

use crate::{
    Settings, Signal, Valid,
    pipeline::{Filter, Input},
    v1alpha1::{self, Attribute, Severity, SpanKind, StatusCode, Workload, WorkloadKind},
};

const NAMESPACE: &str = "k8s.namespace.name";

/// Whether a pipeline has to know who sent something.
pub(super) fn selects(input: &Input) -> bool {
    let Input { namespaces, workloads, .. } = input;
    !(namespaces.include.is_empty()
        && namespaces.exclude.is_empty()
        && workloads.include.is_empty()
        && workloads.exclude.is_empty())
}

/// `k8s_attributes`, with what the pipelines select by.
pub(super) fn enrichment(pipelines: &[&Valid], settings: &Settings) -> Processor {
    let by_set = pipelines.iter().any(|pipeline| {
        let workloads = &pipeline.input.workloads;
        workloads.include.iter().chain(&workloads.exclude).any(|one| one.kind == WorkloadKind::ReplicaSet)
    });
    let mut metadata = vec![
        NAMESPACE,
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
    // Who sent something is known from the first request on, or pipelines would take what is not theirs.
    let relays = settings.trusted_relays.iter();
    let trusted_relays = relays.map(|relay| (relay.namespace.clone(), relay.service_account.clone())).collect();
    Processor::KubernetesAttributes { metadata, wait_for_metadata: true, associations, trusted_relays }
}

/// The `filter` of a pipeline; none if it takes and keeps everything.
pub(super) fn filter(pipeline: &Valid) -> Option<Processor> {
    let signal = pipeline.signal;
    let selection = Selection {
        include: included(signal, &pipeline.input, least_severity(&pipeline.filter)),
        exclude: excluded(signal, pipeline),
    };
    if selection == Selection::default() {
        return None;
    }
    Some(match signal {
        Signal::Traces => Processor::FilterSpans(selection),
        Signal::Logs => Processor::FilterLogs(selection),
        Signal::Metrics => Processor::FilterMetrics(selection),
    })
}

/// What is taken: from one of the namespaces and from one of the workloads, and severe enough.
fn included(signal: Signal, input: &Input, min_severity: Option<&'static str>) -> Vec<Conditions> {
    let namespaces = (!input.namespaces.include.is_empty()).then(|| one_of(NAMESPACE, &input.namespaces.include));
    let with = |workload: Vec<AttributeMatch>| {
        let attributes: Vec<_> = namespaces.iter().cloned().chain(workload).collect();
        Conditions { min_severity, ..by_resource(signal, attributes) }
    };
    match (input.workloads.include.as_slice(), &namespaces, min_severity) {
        ([], None, None) => Vec::new(),
        ([], ..) => vec![with(Vec::new())],
        (workloads, ..) => workloads.iter().map(|one| with(workload(one))).collect(),
    }
}

fn excluded(signal: Signal, pipeline: &Valid) -> Vec<Conditions> {
    let Input { namespaces, workloads, .. } = &pipeline.input;
    let mut excluded = Vec::new();
    if !namespaces.exclude.is_empty() {
        excluded.push(by_resource(signal, vec![one_of(NAMESPACE, &namespaces.exclude)]));
    }
    excluded.extend(workloads.exclude.iter().map(|one| by_resource(signal, workload(one))));
    let drops = pipeline.filter.iter().filter(|filter| filter.severity_below.is_none());
    excluded.extend(drops.map(|filter| conditions(signal, filter)));
    excluded
}

/// The highest of all that are asked for.
fn least_severity(filters: &[Filter]) -> Option<&'static str> {
    const ORDER: [(Severity, &str); 6] = [
        (Severity::Fatal, "FATAL"),
        (Severity::Error, "ERROR"),
        (Severity::Warn, "WARN"),
        (Severity::Info, "INFO"),
        (Severity::Debug, "DEBUG"),
        (Severity::Trace, "TRACE"),
    ];
    let asked = |severity: Severity| filters.iter().any(|filter| filter.severity_below == Some(severity));
    ORDER.iter().find(|(severity, _)| asked(*severity)).map(|(_, word)| *word)
}

fn by_resource(signal: Signal, attributes: Vec<AttributeMatch>) -> Conditions {
    let attributes = if attributes.is_empty() { Vec::new() } else { vec![(resource_field(signal), attributes)] };
    Conditions { match_type: MatchType::Regexp, attributes, ..Conditions::default() }
}

fn resource_field(signal: Signal) -> &'static str {
    match signal {
        Signal::Traces => "resources",
        Signal::Logs | Signal::Metrics => "resource_attributes",
    }
}

fn one_of(key: &str, values: &[String]) -> AttributeMatch {
    let values: Vec<String> = values.iter().map(|value| quoted(value)).collect();
    AttributeMatch { key: key.to_owned(), value: Some(format!("^(?:{})$", values.join("|"))) }
}

fn workload(workload: &Workload) -> Vec<AttributeMatch> {
    let key = match workload.kind {
        WorkloadKind::Deployment => "k8s.deployment.name",
        WorkloadKind::StatefulSet => "k8s.statefulset.name",
        WorkloadKind::DaemonSet => "k8s.daemonset.name",
        WorkloadKind::ReplicaSet => "k8s.replicaset.name",
        WorkloadKind::Job => "k8s.job.name",
        WorkloadKind::CronJob => "k8s.cronjob.name",
        WorkloadKind::Pod => "k8s.pod.name",
    };
    let exact = |key: &str, value: &str| AttributeMatch { key: key.to_owned(), value: Some(whole(value)) };
    let namespace = workload.namespace.iter().map(|namespace| exact(NAMESPACE, namespace));
    [exact(key, &workload.name)].into_iter().chain(namespace).collect()
}

/// One of `spec.filter`.
fn conditions(signal: Signal, filter: &Filter) -> Conditions {
    let values = || filter.attributes.iter().chain(&filter.resources).any(|attribute| attribute.value.is_some());
    // As texts, numbers and booleans are compared as they are written only by expressions.
    let style = match filter.match_type {
        v1alpha1::MatchType::Regexp => Style::Given,
        v1alpha1::MatchType::Strict if values() => Style::Quoted,
        v1alpha1::MatchType::Strict => Style::Strict,
    };
    let names = if signal == Signal::Metrics { "metric_names" } else { "span_names" };
    let kinds: Vec<String> = filter.span_kinds.iter().map(|kind| style.word(kind_word(*kind))).collect();
    let codes: Vec<String> = filter.status_codes.iter().map(|code| style.word(code_word(*code))).collect();
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
    Conditions {
        match_type: if style == Style::Strict { MatchType::Strict } else { MatchType::Regexp },
        texts: lists.into_iter().filter(|(_, texts)| !texts.is_empty()).collect(),
        attributes: attributes.into_iter().filter(|(_, attributes)| !attributes.is_empty()).collect(),
        min_severity: None,
    }
}

/// How texts are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    /// As they are, to be compared as they are.
    Strict,
    /// As expressions that match them alone.
    Quoted,
    /// As they are: they are expressions.
    Given,
}

impl Style {
    fn text(self, text: &str) -> String {
        match self {
            Self::Strict | Self::Given => text.to_owned(),
            Self::Quoted => whole(text),
        }
    }

    /// A word of ours, which is no expression of the user's.
    fn word(self, text: &str) -> String {
        if self == Self::Strict { text.to_owned() } else { whole(text) }
    }

    fn texts(self, texts: &[String]) -> Vec<String> {
        texts.iter().map(|text| self.text(text)).collect()
    }

    fn attributes(self, attributes: &[Attribute]) -> Vec<AttributeMatch> {
        let attribute = |one: &Attribute| AttributeMatch {
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

/// An expression that matches a text and nothing else.
fn whole(text: &str) -> String {
    format!("^{}$", quoted(text))
}

/// An expression that finds a text.
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
