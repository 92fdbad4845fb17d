//! `include` and `exclude`: conditions on records.

mod encode;
mod properties;

use kubewake_otlp::{Signal, Value};

pub(crate) use encode::PropertyNames;
pub(crate) use properties::{cache, log_properties, metric_properties, properties, span_properties};

use crate::RegexPattern;

/// Conditions of a record, all of which must hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MatchProperties {
    pub services: Option<TextMatcher>,
    pub span_names: Option<TextMatcher>,
    pub span_kinds: Option<TextMatcher>,
    /// `status_codes`, such as `STATUS_CODE_ERROR`, which the Collector does not have.
    pub status_codes: Option<TextMatcher>,
    pub bodies: Option<TextMatcher>,
    pub severity_texts: Option<TextMatcher>,
    pub severity_number: Option<SeverityNumber>,
    pub metric_names: Option<TextMatcher>,
    /// `attributes` or `record_attributes`: all of them.
    pub attributes: Vec<AttributeMatch>,
    /// `resources` or `resource_attributes`: all of them.
    pub resources: Vec<AttributeMatch>,
    /// `libraries`: one of them; none: any.
    pub libraries: Vec<LibraryMatch>,
}

/// Texts of which one must match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextMatcher {
    /// `match_type: strict`, sorted.
    Strict(Vec<String>),
    Regexp(Vec<RegexPattern>),
}

/// An attribute that must be there.
#[derive(Clone, Debug, PartialEq)]
pub struct AttributeMatch {
    pub key: String,
    pub value: ValueMatch,
}

/// The condition on its value.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueMatch {
    Any,
    /// Equal to this value, of the same type.
    Equal(Value),
    Regexp(RegexPattern),
}

/// An instrumentation library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryMatch {
    pub name: TextMatcher,
    pub version: Option<TextMatcher>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeverityNumber {
    /// `min`, as OTLP numbers them.
    pub min: i32,
    /// `match_undefined`: whether one without a severity matches.
    pub match_undefined: bool,
}

impl TextMatcher {
    /// The texts, sorted.
    pub fn strict(mut texts: Vec<String>) -> Self {
        texts.sort_unstable();
        texts.dedup();
        Self::Strict(texts)
    }

    /// The texts or patterns as they are written.
    pub(crate) fn texts(&self) -> Vec<&str> {
        match self {
            Self::Strict(texts) => texts.iter().map(String::as_str).collect(),
            Self::Regexp(patterns) => patterns.iter().map(RegexPattern::as_str).collect(),
        }
    }

    /// Whether one of them matches.
    pub fn matches(&self, text: &[u8]) -> bool {
        match self {
            Self::Strict(texts) => texts.binary_search_by(|one| one.as_bytes().cmp(text)).is_ok(),
            Self::Regexp(patterns) => patterns.iter().any(|pattern| pattern.is_match(text)),
        }
    }
}

impl MatchProperties {
    /// The first field that does not apply to records of this signal.
    pub fn unsupported_condition(&self, signal: Signal) -> Option<&'static str> {
        let fields = [
            ("services", self.services.is_some(), [Signal::Traces].as_slice()),
            ("span_names", self.span_names.is_some(), &[Signal::Traces]),
            ("span_kinds", self.span_kinds.is_some(), &[Signal::Traces]),
            ("status_codes", self.status_codes.is_some(), &[Signal::Traces]),
            ("log_bodies", self.bodies.is_some(), &[Signal::Logs]),
            ("log_severity_texts", self.severity_texts.is_some(), &[Signal::Logs]),
            ("log_severity_number", self.severity_number.is_some(), &[Signal::Logs]),
            ("metric_names", self.metric_names.is_some(), &[Signal::Metrics]),
            ("attributes", !self.attributes.is_empty(), &[Signal::Traces, Signal::Logs]),
            ("libraries", !self.libraries.is_empty(), &[Signal::Traces, Signal::Logs]),
        ];
        fields.iter().find(|(_, is_set, signals)| *is_set && !signals.contains(&signal)).map(|(name, ..)| *name)
    }
}
