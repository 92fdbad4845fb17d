//! `include` and `exclude`: which records are meant.

use kubewake_otlp::{Signal, Value};

use crate::Pattern;

/// What a record must have to match: all that is named here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Match {
    /// `services`: the resource's `service.name`.
    pub services: Option<Texts>,
    /// `span_names`
    pub span_names: Option<Texts>,
    /// `span_kinds`, such as `SPAN_KIND_SERVER`.
    pub span_kinds: Option<Texts>,
    /// `status_codes`, such as `STATUS_CODE_ERROR`, which the Collector does not have.
    pub status_codes: Option<Texts>,
    /// `bodies` or `log_bodies`
    pub bodies: Option<Texts>,
    /// `severity_texts` or `log_severity_texts`
    pub severity_texts: Option<Texts>,
    /// `severity_number` or `log_severity_number`
    pub severity_number: Option<SeverityNumber>,
    /// `metric_names`
    pub metric_names: Option<Texts>,
    /// `attributes` or `record_attributes`: all of them.
    pub attributes: Vec<AttributeMatch>,
    /// `resources` or `resource_attributes`: all of them.
    pub resources: Vec<AttributeMatch>,
    /// `libraries`: one of them; none: any.
    pub libraries: Vec<Library>,
}

/// Texts of which one must match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Texts {
    /// `match_type: strict`, sorted.
    Strict(Vec<String>),
    /// `match_type: regexp`
    Regexp(Vec<Pattern>),
}

/// An attribute that must be there.
#[derive(Clone, Debug, PartialEq)]
pub struct AttributeMatch {
    /// `key`
    pub key: String,
    /// `value`
    pub value: ValueMatch,
}

/// What value it must have.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueMatch {
    /// Any.
    Any,
    /// This one, of the same type.
    Equal(Value),
    /// One whose text matches.
    Regexp(Pattern),
}

/// A library that makes records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Library {
    /// `name`
    pub name: Texts,
    /// `version`; absent: any.
    pub version: Option<Texts>,
}

/// The least severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeverityNumber {
    /// `min`, as OTLP numbers them.
    pub min: i32,
    /// `match_undefined`: whether one without a severity matches.
    pub match_undefined: bool,
}

impl Texts {
    /// The texts, sorted.
    pub fn strict(mut texts: Vec<String>) -> Self {
        texts.sort_unstable();
        texts.dedup();
        Self::Strict(texts)
    }

    /// Whether one of them matches.
    pub fn matches(&self, text: &[u8]) -> bool {
        match self {
            Self::Strict(texts) => texts.binary_search_by(|one| one.as_bytes().cmp(text)).is_ok(),
            Self::Regexp(patterns) => patterns.iter().any(|pattern| pattern.is_match(text)),
        }
    }
}

impl Match {
    /// The first field that says nothing about records of this signal.
    pub fn out_of_place(&self, signal: Signal) -> Option<&'static str> {
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
