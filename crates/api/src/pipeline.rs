//! A pipeline, whatever its kind and the version that it was written in.

use std::collections::BTreeSet;

use kube::core::ObjectMeta;
pub use kubewake_otlp::Signal;

use crate::{
    Reference,
    v1alpha1::{
        self, Attribute, LogFilter, LogPipeline, MatchType, MetricFilter, MetricPipeline, NamespaceSelector, Otlp,
        Sampling, Severity, SpanFilter, SpanKind, StatusCode, TracePipeline, ValueType, WorkloadSelector,
    },
};

/// A pipeline of any kind. Nothing of it has been checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Pipeline {
    /// What flows through it, and so its kind.
    pub signal: Signal,
    /// Its name.
    pub name: String,
    /// Its uid; empty if it was never stored.
    pub uid: String,
    /// Its generation.
    pub generation: i64,
    /// What it takes.
    pub input: Input,
    /// What it drops: what matches one of these.
    pub filter: Vec<Filter>,
    /// Which traces it keeps.
    pub sampling: Option<Sampling>,
    /// Where it sends to.
    pub output: Option<Otlp>,
    /// Nothing flows.
    pub paused: bool,
}

/// What a pipeline takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// Whether it takes what is sent by OTLP.
    pub enabled: bool,
    /// From which namespaces.
    pub namespaces: NamespaceSelector,
    /// From which workloads.
    pub workloads: WorkloadSelector,
}

/// Records to drop, of any signal. What the records of a signal do not have is empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// How texts are compared.
    pub match_type: MatchType,
    /// `service.name`
    pub services: Vec<String>,
    /// Names of spans or metrics.
    pub names: Vec<String>,
    /// Kinds of spans.
    pub span_kinds: Vec<SpanKind>,
    /// Statuses of spans.
    pub status_codes: Vec<StatusCode>,
    /// The least severity that is kept.
    pub severity_below: Option<Severity>,
    /// Severities as programs write them.
    pub severity_texts: Vec<String>,
    /// Bodies of log records.
    pub bodies: Vec<String>,
    /// Attributes of records.
    pub attributes: Vec<Attribute>,
    /// Attributes of resources.
    pub resources: Vec<Attribute>,
}

impl Pipeline {
    /// The kind that it is of.
    pub fn kind(&self) -> &'static str {
        match self.signal {
            Signal::Traces => "TracePipeline",
            Signal::Logs => "LogPipeline",
            Signal::Metrics => "MetricPipeline",
        }
    }

    /// All keys of Secrets and ConfigMaps that it names.
    pub fn references(&self) -> BTreeSet<Reference> {
        self.values().iter().filter_map(Reference::of).collect()
    }

    /// All texts that may stand elsewhere.
    fn values(&self) -> Vec<ValueType> {
        let Some(otlp) = &self.output else { return Vec::new() };
        let mut values = vec![otlp.endpoint.clone()];
        values.extend(otlp.headers.iter().map(v1alpha1::Header::source));
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

    fn named(signal: Signal, metadata: &ObjectMeta) -> Self {
        Self {
            signal,
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
            generation: metadata.generation.unwrap_or_default(),
            input: Input::default(),
            filter: Vec::new(),
            sampling: None,
            output: None,
            paused: false,
        }
    }
}

impl Default for Input {
    fn default() -> Self {
        Self { enabled: true, namespaces: NamespaceSelector::default(), workloads: WorkloadSelector::default() }
    }
}

impl From<&TracePipeline> for Pipeline {
    fn from(resource: &TracePipeline) -> Self {
        let spec = &resource.spec;
        Self {
            input: spec.input.as_ref().map(Input::from).unwrap_or_default(),
            filter: spec.filter.iter().map(Filter::from).collect(),
            sampling: spec.sampling.clone(),
            output: spec.output.otlp.clone(),
            paused: spec.paused,
            ..Self::named(Signal::Traces, &resource.metadata)
        }
    }
}

impl From<&LogPipeline> for Pipeline {
    fn from(resource: &LogPipeline) -> Self {
        let spec = &resource.spec;
        Self {
            input: spec.input.as_ref().map(Input::from).unwrap_or_default(),
            filter: spec.filter.iter().map(Filter::from).collect(),
            output: spec.output.otlp.clone(),
            paused: spec.paused,
            ..Self::named(Signal::Logs, &resource.metadata)
        }
    }
}

impl From<&MetricPipeline> for Pipeline {
    fn from(resource: &MetricPipeline) -> Self {
        let spec = &resource.spec;
        Self {
            input: spec.input.as_ref().map(Input::from).unwrap_or_default(),
            filter: spec.filter.iter().map(Filter::from).collect(),
            output: spec.output.otlp.clone(),
            paused: spec.paused,
            ..Self::named(Signal::Metrics, &resource.metadata)
        }
    }
}

impl From<&v1alpha1::Input> for Input {
    fn from(input: &v1alpha1::Input) -> Self {
        Self {
            enabled: true,
            namespaces: input.namespaces.clone().unwrap_or_default(),
            workloads: input.workloads.clone().unwrap_or_default(),
        }
    }
}

impl From<&v1alpha1::Inputs> for Input {
    fn from(inputs: &v1alpha1::Inputs) -> Self {
        let Some(otlp) = &inputs.otlp else { return Self::default() };
        Self {
            enabled: otlp.enabled.unwrap_or(true),
            namespaces: otlp.namespaces.clone().unwrap_or_default(),
            workloads: otlp.workloads.clone().unwrap_or_default(),
        }
    }
}

impl From<&SpanFilter> for Filter {
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

impl From<&LogFilter> for Filter {
    fn from(filter: &LogFilter) -> Self {
        let LogFilter { match_type, services, severity_below, severity_texts, bodies, attributes, resources } =
            filter.clone();
        Self { match_type, services, severity_below, severity_texts, bodies, attributes, resources, ..Self::default() }
    }
}

impl From<&MetricFilter> for Filter {
    fn from(filter: &MetricFilter) -> Self {
        let MetricFilter { match_type, services, metric_names, resources } = filter.clone();
        Self { match_type, services, names: metric_names, resources, ..Self::default() }
    }
}
