//! `processors`

use super::{
    sampling::TailSamplingSection,
    yaml::{YamlMap, YamlValue},
};

#[derive(Clone, Debug, PartialEq)]
pub enum ProcessorSection {
    MemoryLimiter {
        limit_percentage: u32,
        spike_limit_percentage: u32,
    },
    /// `k8s_attributes`
    KubernetesAttributes {
        metadata: Vec<&'static str>,
        wait_for_metadata: bool,
        /// `pod_association`, each with a single source: a resource attribute, or the connection for `None`.
        associations: Vec<Option<&'static str>>,
        /// `verify_senders: trusted_relays`: namespaces and ServiceAccounts. Senders are always verified.
        trusted_relays: Vec<(String, String)>,
    },
    FilterSpans(FilterSection),
    FilterLogs(FilterSection),
    FilterMetrics(FilterSection),
    ProbabilisticSampler {
        mode: &'static str,
        sampling_percentage: f64,
        fail_closed: bool,
    },
    TailSampling(TailSamplingSection),
}

/// The conditions of a `filter`: it keeps records that match one of `include`, or all if that is empty, without
/// those that match one of `exclude`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FilterSection {
    pub include: Vec<MatchConditions>,
    pub exclude: Vec<MatchConditions>,
}

/// Conditions that must all be met.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MatchConditions {
    pub match_type: ConditionMatchType,
    /// Lists of texts of which one must match, by the names of their fields.
    pub texts: Vec<(&'static str, Vec<String>)>,
    /// Lists of attributes that must all be there, by the names of their fields.
    pub attributes: Vec<(&'static str, Vec<AttributeCondition>)>,
    /// `severity_number: min`, which records without a severity match, too.
    pub min_severity: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConditionMatchType {
    #[default]
    Strict,
    Regexp,
}

/// An attribute that must be there.
#[derive(Clone, Debug, PartialEq)]
pub struct AttributeCondition {
    pub key: String,
    pub value: Option<String>,
}

impl ProcessorSection {
    pub(super) fn to_value(&self) -> YamlValue {
        match self {
            Self::MemoryLimiter { limit_percentage, spike_limit_percentage } => YamlMap::default()
                .with_field("check_interval", "1s")
                .with_field("limit_percentage", *limit_percentage)
                .with_field("spike_limit_percentage", *spike_limit_percentage),
            Self::KubernetesAttributes { metadata, wait_for_metadata, associations, trusted_relays } => {
                YamlMap::default()
                    .with_flag("wait_for_metadata", *wait_for_metadata)
                    .with_field("extract", YamlMap::default().with_list("metadata", metadata.iter().copied()))
                    .with_list("pod_association", associations.iter().copied().map(association))
                    .with_field(
                        "verify_senders",
                        YamlMap::default().with_list("trusted_relays", trusted_relays.iter().map(relay)),
                    )
            }
            Self::FilterSpans(selection) => YamlMap::default().with_field("spans", selection.to_value()),
            Self::FilterLogs(selection) => YamlMap::default().with_field("logs", selection.to_value()),
            Self::FilterMetrics(selection) => YamlMap::default().with_field("metrics", selection.to_value()),
            Self::ProbabilisticSampler { mode, sampling_percentage, fail_closed } => YamlMap::default()
                .with_field("mode", *mode)
                .with_field("sampling_percentage", *sampling_percentage)
                .with_field("fail_closed", *fail_closed),
            Self::TailSampling(tail) => tail.to_value(),
        }
        .into()
    }
}

fn relay((namespace, service_account): &(String, String)) -> YamlMap {
    YamlMap::default()
        .with_field("namespace", namespace.as_str())
        .with_field("service_account", service_account.as_str())
}

fn association(attribute: Option<&'static str>) -> YamlMap {
    let source = match attribute {
        Some(name) => YamlMap::default().with_field("from", "resource_attribute").with_field("name", name),
        None => YamlMap::default().with_field("from", "connection"),
    };
    YamlMap::default().with_list("sources", [source])
}

impl FilterSection {
    fn to_value(&self) -> YamlValue {
        YamlMap::default()
            .with_list("include", self.include.iter().map(MatchConditions::to_value))
            .with_list("exclude", self.exclude.iter().map(MatchConditions::to_value))
            .into()
    }
}

impl MatchConditions {
    fn to_value(&self) -> YamlValue {
        let attribute = |one: &AttributeCondition| {
            YamlMap::default().with_field("key", &one.key).with_optional("value", one.value.as_ref())
        };
        let compares = !self.texts.is_empty() || !self.attributes.is_empty();
        let mut map = YamlMap::default().with_optional("match_type", compares.then_some(self.match_type.word()));
        for (field, texts) in &self.texts {
            map = map.with_list(field, texts);
        }
        for (field, attributes) in &self.attributes {
            map = map.with_list(field, attributes.iter().map(attribute));
        }
        let severity =
            |min: &'static str| YamlMap::default().with_field("min", min).with_field("match_undefined", true);
        map.with_optional("severity_number", self.min_severity.map(severity)).into()
    }
}

impl ConditionMatchType {
    fn word(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Regexp => "regexp",
        }
    }
}
