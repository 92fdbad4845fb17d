//! Renders the senders and records that a pipeline selects as one `filter`.

use kubewake_config::{
    RegexPattern,
    model::{
        AssociationSource, AttributeMatch, Field, FilterProcessor, KubernetesAttributesProcessor, MatchProperties,
        RecordSelection, RelayServiceAccount, SeverityNumber, TextMatcher, ValueMatch, VerifySenders,
    },
};
use kubewake_otlp::Value;

use crate::{
    CollectorSettings, Signal, ValidPipeline,
    pipeline::{InputSelection, RecordFilter},
    v1alpha1::{
        self, AttributeMatcher, ContainerSelector, LogSeverity, NamespaceSelector, SpanKind, StatusCode, TrustedRelay,
        WorkloadKind, WorkloadReference, WorkloadSelector,
    },
};

/// Whether a pipeline selects by sender.
pub(super) fn has_selection(input: &InputSelection) -> bool {
    let InputSelection { namespaces, workloads, .. } = input;
    !(namespaces.include.is_empty()
        && namespaces.exclude.is_empty()
        && workloads.include.is_empty()
        && workloads.exclude.is_empty())
}

/// `k8s_attributes`, with the attributes by which the pipelines select.
pub(super) fn enrichment(pipelines: &[&ValidPipeline], settings: &CollectorSettings) -> KubernetesAttributesProcessor {
    let by_attribute = |field: Field| vec![AssociationSource::Attribute(field.name().to_owned())];
    let relay = |relay: &TrustedRelay| RelayServiceAccount {
        namespace: relay.namespace.clone(),
        service_account: relay.service_account.clone(),
    };
    KubernetesAttributesProcessor {
        metadata: pod_fields(pipelines.iter().map(|pipeline| &pipeline.input.workloads)),
        associations: vec![
            by_attribute(Field::PodUid),
            by_attribute(Field::PodIp),
            vec![AssociationSource::Connection],
        ],
        // Senders must be known from the first request on, or pipelines would receive others' data.
        wait: Some(KubernetesAttributesProcessor::DEFAULT_WAIT),
        verify_senders: Some(VerifySenders { trusted_relays: settings.trusted_relays.iter().map(relay).collect() }),
        ..KubernetesAttributesProcessor::default()
    }
}

/// The attributes that data gets of its pod, with those by which these selectors select.
pub(super) fn pod_fields<'a>(selectors: impl IntoIterator<Item = &'a WorkloadSelector>) -> Vec<Field> {
    let by_set = selectors.into_iter().any(|workloads| {
        workloads.include.iter().chain(&workloads.exclude).any(|one| one.kind == WorkloadKind::ReplicaSet)
    });
    let mut fields = vec![
        Field::NamespaceName,
        Field::PodName,
        Field::PodUid,
        Field::PodStartTime,
        Field::NodeName,
        Field::DeploymentName,
        Field::StatefulSetName,
        Field::DaemonSetName,
        Field::JobName,
        Field::CronJobName,
        Field::ContainerName,
    ];
    fields.extend(by_set.then_some(Field::ReplicaSetName));
    fields
}

/// The `filter` of a pipeline for what is sent; none if it keeps everything.
pub(super) fn filter(pipeline: &ValidPipeline) -> Option<FilterProcessor> {
    let InputSelection { namespaces, workloads, .. } = &pipeline.input;
    let senders = SenderSelection { namespaces, containers: &ContainerSelector::default(), workloads };
    filter_senders(pipeline, &senders)
}

/// The namespaces, containers and workloads whose data a pipeline keeps.
#[derive(Clone, Copy)]
pub(super) struct SenderSelection<'a> {
    pub(super) namespaces: &'a NamespaceSelector,
    pub(super) containers: &'a ContainerSelector,
    pub(super) workloads: &'a WorkloadSelector,
}

/// The `filter` of a pipeline for data of these senders; none if it keeps everything.
pub(super) fn filter_senders(pipeline: &ValidPipeline, senders: &SenderSelection<'_>) -> Option<FilterProcessor> {
    let signal = pipeline.signal;
    let selection = RecordSelection {
        include: included(senders, least_severity(&pipeline.filter)),
        exclude: excluded(signal, senders, &pipeline.filter),
    };
    if selection == RecordSelection::default() {
        return None;
    }
    let nothing = FilterProcessor::default();
    Some(match signal {
        Signal::Traces => FilterProcessor { spans: selection, ..nothing },
        Signal::Logs => FilterProcessor { logs: selection, ..nothing },
        Signal::Metrics => FilterProcessor { metrics: selection, ..nothing },
    })
}

/// Conditions for the data that is kept: from one of the namespaces and from one of the workloads, and severe
/// enough.
fn included(senders: &SenderSelection<'_>, min_severity: Option<i32>) -> Vec<MatchProperties> {
    let names =
        [(Field::NamespaceName, &senders.namespaces.include), (Field::ContainerName, &senders.containers.include)];
    let named = names.into_iter().filter(|(_, names)| !names.is_empty());
    let named: Vec<AttributeMatch> = named.map(|(field, names)| one_of(field, names)).collect();
    let severity_number = min_severity.map(|min| SeverityNumber { min, match_undefined: true });
    let with = |workload: Vec<AttributeMatch>| {
        let resources = named.iter().cloned().chain(workload).collect();
        MatchProperties { resources, severity_number, ..MatchProperties::default() }
    };
    match (senders.workloads.include.as_slice(), named.as_slice(), min_severity) {
        ([], [], None) => Vec::new(),
        ([], ..) => vec![with(Vec::new())],
        (workloads, ..) => workloads.iter().map(|one| with(workload(one))).collect(),
    }
}

fn excluded(signal: Signal, senders: &SenderSelection<'_>, filters: &[RecordFilter]) -> Vec<MatchProperties> {
    let by_resource = |resources| MatchProperties { resources, ..MatchProperties::default() };
    let mut excluded = Vec::new();
    let names =
        [(Field::NamespaceName, &senders.namespaces.exclude), (Field::ContainerName, &senders.containers.exclude)];
    let named = names.into_iter().filter(|(_, names)| !names.is_empty());
    excluded.extend(named.map(|(field, names)| by_resource(vec![one_of(field, names)])));
    excluded.extend(senders.workloads.exclude.iter().map(|one| by_resource(workload(one))));
    let drops = filters.iter().filter(|filter| filter.severity_below.is_none());
    excluded.extend(drops.map(|filter| conditions(signal, filter)));
    excluded
}

/// The highest minimum severity of all filters, as OTLP numbers them.
fn least_severity(filters: &[RecordFilter]) -> Option<i32> {
    let number = |severity: LogSeverity| match severity {
        LogSeverity::Trace => 1,
        LogSeverity::Debug => 5,
        LogSeverity::Info => 9,
        LogSeverity::Warn => 13,
        LogSeverity::Error => 17,
        LogSeverity::Fatal => 21,
    };
    filters.iter().filter_map(|filter| filter.severity_below).map(number).max()
}

/// An attribute whose value is one of these texts.
fn one_of(field: Field, values: &[String]) -> AttributeMatch {
    let values: Vec<String> = values.iter().map(|value| quoted(value)).collect();
    matching(field.name(), &format!("^(?:{})$", values.join("|")))
}

/// An attribute whose value matches an expression. One that is no expression matches nothing; validation refuses it.
fn matching(key: &str, expression: &str) -> AttributeMatch {
    let value = match RegexPattern::new(expression) {
        Ok(pattern) => ValueMatch::Regexp(pattern),
        Err(_) => ValueMatch::Equal(Value::String(expression.to_owned())),
    };
    AttributeMatch { key: key.to_owned(), value }
}

fn workload(workload: &WorkloadReference) -> Vec<AttributeMatch> {
    let field = match workload.kind {
        WorkloadKind::Deployment => Field::DeploymentName,
        WorkloadKind::StatefulSet => Field::StatefulSetName,
        WorkloadKind::DaemonSet => Field::DaemonSetName,
        WorkloadKind::ReplicaSet => Field::ReplicaSetName,
        WorkloadKind::Job => Field::JobName,
        WorkloadKind::CronJob => Field::CronJobName,
        WorkloadKind::Pod => Field::PodName,
    };
    let exact = |field: Field, value: &str| matching(field.name(), &match_whole_text(value));
    let namespace = workload.namespace.iter().map(|namespace| exact(Field::NamespaceName, namespace));
    [exact(field, &workload.name)].into_iter().chain(namespace).collect()
}

/// Converts one item of `spec.filter`.
fn conditions(signal: Signal, filter: &RecordFilter) -> MatchProperties {
    let values = || filter.attributes.iter().chain(&filter.resources).any(|attribute| attribute.value.is_some());
    // Attributes that are numbers or booleans can be compared with texts only by expressions.
    let style = match filter.match_type {
        v1alpha1::MatchType::Regexp => MatchStyle::Given,
        v1alpha1::MatchType::Strict if values() => MatchStyle::Quoted,
        v1alpha1::MatchType::Strict => MatchStyle::Strict,
    };
    let names = style.matcher(&filter.names);
    let kinds: Vec<&str> = filter.span_kinds.iter().map(|kind| kind_word(*kind)).collect();
    let codes: Vec<&str> = filter.status_codes.iter().map(|code| code_word(*code)).collect();
    MatchProperties {
        services: style.matcher(&filter.services),
        span_names: names.clone().filter(|_| signal != Signal::Metrics),
        metric_names: names.filter(|_| signal == Signal::Metrics),
        span_kinds: style.builtin_matcher(&kinds),
        status_codes: style.builtin_matcher(&codes),
        severity_texts: style.matcher(&filter.severity_texts),
        bodies: style.matcher(&filter.bodies),
        attributes: style.attributes(&filter.attributes),
        resources: style.attributes(&filter.resources),
        ..MatchProperties::default()
    }
}

/// How texts are matched.
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
    fn matcher(self, texts: &[String]) -> Option<TextMatcher> {
        let patterns = |text: fn(&str) -> String| {
            TextMatcher::Regexp(texts.iter().filter_map(|one| RegexPattern::new(&text(one)).ok()).collect())
        };
        (!texts.is_empty()).then(|| match self {
            Self::Strict => TextMatcher::strict(texts.to_vec()),
            Self::Quoted => patterns(match_whole_text),
            Self::Given => patterns(str::to_owned),
        })
    }

    /// Matches fixed texts, which are never expressions of the user's.
    fn builtin_matcher(self, texts: &[&str]) -> Option<TextMatcher> {
        let style = if self == Self::Given { Self::Quoted } else { self };
        style.matcher(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
    }

    fn attributes(self, attributes: &[AttributeMatcher]) -> Vec<AttributeMatch> {
        attributes.iter().map(|one| self.attribute(one)).collect()
    }

    fn attribute(self, one: &AttributeMatcher) -> AttributeMatch {
        match (&one.value, self) {
            (None, _) => AttributeMatch { key: one.key.clone(), value: ValueMatch::Any },
            (Some(value), Self::Given) => matching(&one.key, value),
            (Some(value), Self::Strict | Self::Quoted) => matching(&one.key, &match_whole_text(value)),
        }
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
