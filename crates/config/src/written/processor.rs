//! `processors`

use super::{
    sampling::TailSampling,
    yaml::{Map, Value},
};

/// A processor.
#[derive(Clone, Debug, PartialEq)]
pub enum Processor {
    /// `memory_limiter`
    MemoryLimiter {
        /// `limit_percentage`
        limit_percentage: u32,
        /// `spike_limit_percentage`
        spike_limit_percentage: u32,
    },
    /// `k8s_attributes`
    KubernetesAttributes {
        /// `extract: metadata`
        metadata: Vec<&'static str>,
        /// `wait_for_metadata`
        wait_for_metadata: bool,
        /// `pod_association`: each of one source, an attribute of the resource, or the connection if there is none.
        associations: Vec<Option<&'static str>>,
        /// `verify_senders: trusted_relays`: namespaces and ServiceAccounts. Senders are always verified.
        trusted_relays: Vec<(String, String)>,
    },
    /// `filter` of spans
    FilterSpans(Selection),
    /// `filter` of log records
    FilterLogs(Selection),
    /// `filter` of metrics
    FilterMetrics(Selection),
    /// `probabilistic_sampler`
    ProbabilisticSampler {
        /// `mode`
        mode: &'static str,
        /// `sampling_percentage`
        sampling_percentage: f64,
        /// `fail_closed`
        fail_closed: bool,
    },
    /// `tail_sampling`
    TailSampling(TailSampling),
}

/// What a `filter` keeps: what one of `include` matches, or everything if there is none; and of that what none of `exclude` matches.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// `include`
    pub include: Vec<Conditions>,
    /// `exclude`
    pub exclude: Vec<Conditions>,
}

/// Conditions that must all be met.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conditions {
    /// `match_type`
    pub match_type: MatchType,
    /// Lists of texts of which one must match, by the names of their fields.
    pub texts: Vec<(&'static str, Vec<String>)>,
    /// Lists of attributes that must all be there, by the names of their fields.
    pub attributes: Vec<(&'static str, Vec<AttributeMatch>)>,
    /// `severity_number: min`, where one without a severity matches, too.
    pub min_severity: Option<&'static str>,
}

/// `match_type`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MatchType {
    /// `strict`
    #[default]
    Strict,
    /// `regexp`
    Regexp,
}

/// An attribute that must be there.
#[derive(Clone, Debug, PartialEq)]
pub struct AttributeMatch {
    /// `key`
    pub key: String,
    /// `value`; absent: any.
    pub value: Option<String>,
}

impl Processor {
    pub(super) fn to_value(&self) -> Value {
        match self {
            Self::MemoryLimiter { limit_percentage, spike_limit_percentage } => Map::default()
                .with("check_interval", "1s")
                .with("limit_percentage", *limit_percentage)
                .with("spike_limit_percentage", *spike_limit_percentage),
            Self::KubernetesAttributes { metadata, wait_for_metadata, associations, trusted_relays } => Map::default()
                .flag("wait_for_metadata", *wait_for_metadata)
                .with("extract", Map::default().list("metadata", metadata.iter().copied()))
                .list("pod_association", associations.iter().copied().map(association))
                .with("verify_senders", Map::default().list("trusted_relays", trusted_relays.iter().map(relay))),
            Self::FilterSpans(selection) => Map::default().with("spans", selection.to_value()),
            Self::FilterLogs(selection) => Map::default().with("logs", selection.to_value()),
            Self::FilterMetrics(selection) => Map::default().with("metrics", selection.to_value()),
            Self::ProbabilisticSampler { mode, sampling_percentage, fail_closed } => Map::default()
                .with("mode", *mode)
                .with("sampling_percentage", *sampling_percentage)
                .with("fail_closed", *fail_closed),
            Self::TailSampling(tail) => tail.to_value(),
        }
        .into()
    }
}

fn relay((namespace, service_account): &(String, String)) -> Map {
    Map::default().with("namespace", namespace.as_str()).with("service_account", service_account.as_str())
}

fn association(attribute: Option<&'static str>) -> Map {
    let source = match attribute {
        Some(name) => Map::default().with("from", "resource_attribute").with("name", name),
        None => Map::default().with("from", "connection"),
    };
    Map::default().list("sources", [source])
}

impl Selection {
    fn to_value(&self) -> Value {
        Map::default()
            .list("include", self.include.iter().map(Conditions::to_value))
            .list("exclude", self.exclude.iter().map(Conditions::to_value))
            .into()
    }
}

impl Conditions {
    fn to_value(&self) -> Value {
        let attribute = |one: &AttributeMatch| Map::default().with("key", &one.key).maybe("value", one.value.as_ref());
        let compares = !self.texts.is_empty() || !self.attributes.is_empty();
        let mut map = Map::default().maybe("match_type", compares.then_some(self.match_type.word()));
        for (field, texts) in &self.texts {
            map = map.list(field, texts);
        }
        for (field, attributes) in &self.attributes {
            map = map.list(field, attributes.iter().map(attribute));
        }
        let severity = |min: &'static str| Map::default().with("min", min).with("match_undefined", true);
        map.maybe("severity_number", self.min_severity.map(severity)).into()
    }
}

impl MatchType {
    fn word(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Regexp => "regexp",
        }
    }
}
