//! A pipeline of any kind and API version.

use std::collections::BTreeSet;

use kube::core::ObjectMeta;
pub use kubewake_otlp::Signal;

use crate::{
    ValueReference,
    v1alpha1::{
        self, AttributeMatcher, LogFilter, LogPipeline, LogSeverity, MatchType, MetricFilter, MetricPipeline,
        NamespaceSelector, OtlpOutput, SamplingOptions, SpanFilter, SpanKind, StatusCode, TracePipeline, ValueType,
        WorkloadSelector,
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
    /// It drops records that match one of these.
    pub filter: Vec<RecordFilter>,
    /// Which traces it keeps; `None` for all.
    pub sampling: Option<SamplingOptions>,
    /// The destination.
    pub output: Option<OtlpOutput>,
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
        self.values().iter().filter_map(ValueReference::from_value).collect()
    }

    /// All values that may be references.
    fn values(&self) -> Vec<ValueType> {
        let Some(otlp) = &self.output else { return Vec::new() };
        let mut values = vec![otlp.endpoint.clone()];
        values.extend(otlp.headers.iter().map(v1alpha1::RequestHeader::source));
        let mut tls: Vec<_> = otlp.tls.iter().collect();
        if let Some(authentication) = &otlp.authentication {
            if let Some(basic) = &authentication.basic {
                values.extend([basic.user.clone(), basic.password.clone()]);
            }
            if let Some(bearer) = &authentication.bearer {
                values.push(bearer.token.clone());
            }
            if let Some(oauth2) = &authentication.oauth2 {
                values.extend([oauth2.token_url.clone(), oauth2.client_id.clone(), oauth2.client_secret.clone()]);
                tls.extend(&oauth2.tls);
            }
        }
        values.extend(tls.into_iter().flat_map(|tls| [&tls.ca, &tls.cert, &tls.key]).flatten().cloned());
        values
    }

    fn from_metadata(signal: Signal, metadata: &ObjectMeta) -> Self {
        Self {
            signal,
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
            generation: metadata.generation.unwrap_or_default(),
            input: InputSelection::default(),
            filter: Vec::new(),
            sampling: None,
            output: None,
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
            output: spec.output.otlp.clone(),
            paused: spec.paused,
            ..Self::from_metadata(Signal::Traces, &resource.metadata)
        }
    }
}

impl From<&LogPipeline> for TelemetryPipeline {
    fn from(resource: &LogPipeline) -> Self {
        let spec = &resource.spec;
        Self {
            input: spec.input.as_ref().map(InputSelection::from).unwrap_or_default(),
            filter: spec.filter.iter().map(RecordFilter::from).collect(),
            output: spec.output.otlp.clone(),
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
            output: spec.output.otlp.clone(),
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
        let Some(otlp) = &inputs.otlp else { return Self::default() };
        Self {
            enabled: otlp.enabled.unwrap_or(true),
            namespaces: otlp.namespaces.clone().unwrap_or_default(),
            workloads: otlp.workloads.clone().unwrap_or_default(),
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
