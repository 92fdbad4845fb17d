//! A pipeline of any kind and API version.

use std::collections::BTreeSet;

use kube::core::ObjectMeta;
pub use kubewake_otlp::Signal;

use crate::{
    ValueReference,
    destination::PipelineDestination,
    v1alpha1::{
        self, AttributeMatcher, ContainerSelector, LogFilter, LogPipeline, LogSeverity, MatchType, MetricFilter,
        MetricPipeline, MultilineMode, NamespaceSelector, RuntimeInput, RuntimeNamespaceSelector, SamplingOptions,
        SpanFilter, SpanKind, StatusCode, TracePipeline, WorkloadSelector,
    },
};

/// A pipeline of any kind, before validation.
#[derive(Clone, Debug, PartialEq)]
pub struct TelemetryPipeline {
    /// The signal that it carries, which determines its kind.
    pub signal: Signal,
    /// The name of the resource.
    pub name: String,
    /// The uid of the resource; empty if it was never stored.
    pub uid: String,
    /// The generation of the resource.
    pub generation: i64,
    /// The senders from which it receives.
    pub input: InputSelection,
    /// The containers whose logs it receives; `None` for none.
    pub runtime: Option<RuntimeLogs>,
    /// It drops records that match one of these.
    pub filter: Vec<RecordFilter>,
    /// Which traces it keeps; `None` for all.
    pub sampling: Option<SamplingOptions>,
    /// The destinations that are set: a valid pipeline has one.
    pub destinations: Vec<PipelineDestination>,
    /// Whether it is suspended: no data flows.
    pub paused: bool,
}

/// The senders from which a pipeline receives.
#[derive(Clone, Debug, PartialEq)]
pub struct InputSelection {
    /// Whether it receives OTLP.
    pub enabled: bool,
    /// The namespaces from which it receives.
    pub namespaces: NamespaceSelector,
    /// The workloads from which it receives.
    pub workloads: WorkloadSelector,
}

/// The logs of containers that a pipeline receives.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RuntimeLogs {
    /// The namespaces from which it receives. System namespaces are in the list if they are excluded.
    pub namespaces: NamespaceSelector,
    /// The containers from which it receives.
    pub containers: ContainerSelector,
    /// The workloads from which it receives.
    pub workloads: WorkloadSelector,
    /// Whether records have the annotations of their pod.
    pub keep_annotations: bool,
    /// Whether records lack the labels of their pod.
    pub drop_labels: bool,
    /// How lines become records.
    pub lines: LineSettings,
}

/// How lines of containers become records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineSettings {
    /// How lines are joined.
    pub multiline: MultilineMode,
    /// Whether the fields of JSON lines become attributes.
    pub json: bool,
    /// Whether the message of JSON lines becomes the body.
    pub message: bool,
    /// Whether the severity is read from JSON lines.
    pub severity: bool,
    /// Whether the ids of trace and span are read from JSON lines.
    pub trace_context: bool,
    /// Whether a record from a JSON line also has the line.
    pub keep_original: bool,
}

/// Namespaces whose logs a pipeline receives only on request, beside those of the operator and its collectors.
pub const SYSTEM_NAMESPACES: [&str; 7] = [
    "kube-system",
    "kube-public",
    "kube-node-lease",
    "istio-system",
    "kubewake-system",
    "kubewake-agents",
    "kubewake-webhook",
];

/// Records to drop, of any signal. Conditions that do not apply to a signal are empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordFilter {
    /// How strings are compared.
    pub match_type: MatchType,
    /// Values of `service.name`.
    pub services: Vec<String>,
    /// Names of spans or metrics.
    pub names: Vec<String>,
    /// Kinds of spans.
    pub span_kinds: Vec<SpanKind>,
    /// Statuses of spans.
    pub status_codes: Vec<StatusCode>,
    /// Records below this severity are dropped.
    pub severity_below: Option<LogSeverity>,
    /// Severity texts as programs write them.
    pub severity_texts: Vec<String>,
    /// Bodies of log records.
    pub bodies: Vec<String>,
    /// Attributes of records.
    pub attributes: Vec<AttributeMatcher>,
    /// Attributes of resources.
    pub resources: Vec<AttributeMatcher>,
}

impl TelemetryPipeline {
    /// The resource kind.
    pub fn kind(&self) -> &'static str {
        match self.signal {
            Signal::Traces => "TracePipeline",
            Signal::Logs => "LogPipeline",
            Signal::Metrics => "MetricPipeline",
        }
    }

    /// All keys of Secrets and ConfigMaps that it references.
    pub fn references(&self) -> BTreeSet<ValueReference> {
        let values = self.destinations.iter().flat_map(PipelineDestination::values);
        values.filter_map(|value| ValueReference::from_value(&value)).collect()
    }

    fn from_metadata(signal: Signal, metadata: &ObjectMeta) -> Self {
        Self {
            signal,
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
            generation: metadata.generation.unwrap_or_default(),
            input: InputSelection::default(),
            runtime: None,
            filter: Vec::new(),
            sampling: None,
            destinations: Vec::new(),
            paused: false,
        }
    }
}

impl Default for InputSelection {
    fn default() -> Self {
        Self { enabled: true, namespaces: NamespaceSelector::default(), workloads: WorkloadSelector::default() }
    }
}

impl From<&TracePipeline> for TelemetryPipeline {
    fn from(resource: &TracePipeline) -> Self {
        let spec = &resource.spec;
        Self {
            input: spec.input.as_ref().map(InputSelection::from).unwrap_or_default(),
            filter: spec.filter.iter().map(RecordFilter::from).collect(),
            sampling: spec.sampling.clone(),
            destinations: (&spec.output).into(),
            paused: spec.paused,
            ..Self::from_metadata(Signal::Traces, &resource.metadata)
        }
    }
}

impl From<&LogPipeline> for TelemetryPipeline {
    fn from(resource: &LogPipeline) -> Self {
        let spec = &resource.spec;
        let input = spec.input.as_ref();
        Self {
            input: InputSelection::from(input.and_then(|input| input.otlp.as_ref())),
            runtime: input.and_then(|input| RuntimeLogs::from_enabled(input.runtime.as_ref()?)),
            filter: spec.filter.iter().map(RecordFilter::from).collect(),
            destinations: (&spec.output).into(),
            paused: spec.paused,
            ..Self::from_metadata(Signal::Logs, &resource.metadata)
        }
    }
}

impl From<&MetricPipeline> for TelemetryPipeline {
    fn from(resource: &MetricPipeline) -> Self {
        let spec = &resource.spec;
        Self {
            input: spec.input.as_ref().map(InputSelection::from).unwrap_or_default(),
            filter: spec.filter.iter().map(RecordFilter::from).collect(),
            destinations: (&spec.output).into(),
            paused: spec.paused,
            ..Self::from_metadata(Signal::Metrics, &resource.metadata)
        }
    }
}

impl From<&v1alpha1::TracePipelineInput> for InputSelection {
    fn from(input: &v1alpha1::TracePipelineInput) -> Self {
        Self {
            enabled: true,
            namespaces: input.namespaces.clone().unwrap_or_default(),
            workloads: input.workloads.clone().unwrap_or_default(),
        }
    }
}

impl From<&v1alpha1::PipelineInputs> for InputSelection {
    fn from(inputs: &v1alpha1::PipelineInputs) -> Self {
        Self::from(inputs.otlp.as_ref())
    }
}

/// An input that is not set receives everything.
impl From<Option<&v1alpha1::OtlpInput>> for InputSelection {
    fn from(otlp: Option<&v1alpha1::OtlpInput>) -> Self {
        let Some(otlp) = otlp else { return Self::default() };
        Self {
            enabled: otlp.enabled.unwrap_or(true),
            namespaces: otlp.namespaces.clone().unwrap_or_default(),
            workloads: otlp.workloads.clone().unwrap_or_default(),
        }
    }
}

impl Default for LineSettings {
    fn default() -> Self {
        let multiline = MultilineMode::default();
        Self { multiline, json: true, message: true, severity: true, trace_context: true, keep_original: false }
    }
}

impl RuntimeLogs {
    /// The logs that an input selects; `None` if it is disabled.
    fn from_enabled(input: &RuntimeInput) -> Option<Self> {
        input.enabled.unwrap_or(true).then(|| Self {
            namespaces: input.namespaces.clone().unwrap_or_default().into(),
            containers: input.containers.clone().unwrap_or_default(),
            workloads: input.workloads.clone().unwrap_or_default(),
            keep_annotations: input.keep_annotations.unwrap_or_default(),
            drop_labels: input.drop_labels.unwrap_or_default(),
            lines: LineSettings::from(input),
        })
    }
}

/// System namespaces are excluded unless they are included, all together or one by one.
impl From<RuntimeNamespaceSelector> for NamespaceSelector {
    fn from(selector: RuntimeNamespaceSelector) -> Self {
        let RuntimeNamespaceSelector { include, mut exclude, system } = selector;
        if include.is_empty() && !system.unwrap_or_default() {
            let missing = SYSTEM_NAMESPACES.iter().filter(|name| !exclude.iter().any(|one| one == *name));
            let missing: Vec<String> = missing.map(|name| (*name).to_owned()).collect();
            exclude.extend(missing);
        }
        Self { include, exclude }
    }
}

impl From<&RuntimeInput> for LineSettings {
    fn from(input: &RuntimeInput) -> Self {
        let parse = input.parse.clone().unwrap_or_default();
        let json = parse.json.unwrap_or(true);
        Self {
            multiline: input.multiline.unwrap_or_default(),
            json,
            message: parse.message.unwrap_or(json),
            severity: parse.severity.unwrap_or(json),
            trace_context: parse.trace_context.unwrap_or(json),
            keep_original: json && input.keep_original_body.unwrap_or_default(),
        }
    }
}

impl From<&SpanFilter> for RecordFilter {
    fn from(filter: &SpanFilter) -> Self {
        let SpanFilter { match_type, services, span_names, span_kinds, status_codes, attributes, resources } =
            filter.clone();
        Self {
            match_type,
            services,
            names: span_names,
            span_kinds,
            status_codes,
            attributes,
            resources,
            ..Self::default()
        }
    }
}

impl From<&LogFilter> for RecordFilter {
    fn from(filter: &LogFilter) -> Self {
        let LogFilter { match_type, services, severity_below, severity_texts, bodies, attributes, resources } =
            filter.clone();
        Self { match_type, services, severity_below, severity_texts, bodies, attributes, resources, ..Self::default() }
    }
}

impl From<&MetricFilter> for RecordFilter {
    fn from(filter: &MetricFilter) -> Self {
        let MetricFilter { match_type, services, metric_names, resources } = filter.clone();
        Self { match_type, services, names: metric_names, resources, ..Self::default() }
    }
}
