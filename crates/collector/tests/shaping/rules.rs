//! Random rules that concern a request: their keys, names and values are mostly from it.

use kubewake_config::{
    RegexPattern,
    model::{
        AttributeAction, AttributeMatch, AttributeValueSource, ContextKey, ConvertedType, KeySelector, LibraryMatch,
        MatchProperties, SeverityNumber, TextMatcher, ValueMatch,
    },
};
use kubewake_otlp::{SetCondition, Signal, Value};
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value as Any};

use crate::model::Decoded;
use crate::plain::Plain;

pub(crate) struct Picker {
    state: u64,
    signal: Signal,
    attributes: Vec<KeyValue>,
    resources: Vec<KeyValue>,
    names: Vec<String>,
    libraries: Vec<(String, String)>,
}

impl Picker {
    pub(crate) fn new<R: Plain>(seed: u64, request: &Decoded<R>) -> Self {
        let mut records: Vec<R> = request.records().cloned().collect();
        let resources = request.0.iter().filter_map(|entry| entry.resource.as_ref());
        let scopes = request.0.iter().flat_map(|entry| &entry.scopes).filter_map(|scope| scope.scope.as_ref());
        Self {
            state: seed,
            signal: R::SIGNAL,
            names: records.iter().map(|record| record.name()).collect(),
            attributes: records
                .iter_mut()
                .flat_map(|record| record.attribute_lists())
                .flatten()
                .map(|one| one.clone())
                .collect(),
            resources: resources.flat_map(|resource| resource.attributes.clone()).collect(),
            libraries: scopes.map(|scope| (scope.name.clone(), scope.version.clone())).collect(),
        }
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        // A linear congruential generator is random enough here; only its high bits are used.
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) as usize % limit.max(1)
    }

    pub(crate) fn flip(&mut self) -> bool {
        self.below(2) == 0
    }

    fn one_of<T: Clone>(&mut self, all: &[T]) -> Option<T> {
        let at = self.below(all.len());
        all.get(at).cloned()
    }

    pub(crate) fn pattern(&mut self) -> RegexPattern {
        let text = ["^[a-m]", "é", "^$", "x+$", "[0-9]", "^-?1", "", "true|^a", "SERVER|OK|{"][self.below(9)];
        RegexPattern::new(text).unwrap()
    }

    fn texts(&mut self, known: &[String]) -> TextMatcher {
        if self.flip() {
            return TextMatcher::Regexp((0..=self.below(2)).map(|_| self.pattern()).collect());
        }
        let mut texts: Vec<String> = (0..=self.below(3)).filter_map(|_| self.one_of(known)).collect();
        texts.push("never".into());
        TextMatcher::strict(texts)
    }

    fn some_texts(&mut self, known: &[String]) -> Option<TextMatcher> {
        (self.below(3) == 0).then(|| self.texts(known))
    }

    fn attribute(&mut self, known: &[KeyValue]) -> AttributeMatch {
        let pair = self.one_of(known).unwrap_or_default();
        let value = match self.below(3) {
            0 => ValueMatch::Any,
            1 => ValueMatch::Regexp(self.pattern()),
            _ => pair.value.as_ref().and_then(value).map_or(ValueMatch::Any, ValueMatch::Equal),
        };
        AttributeMatch { key: pair.key, value }
    }

    fn attributes(&mut self, known: &[KeyValue]) -> Vec<AttributeMatch> {
        let count = self.below(5).saturating_sub(2);
        (0..count).map(|_| self.attribute(known)).collect()
    }

    pub(crate) fn rule(&mut self) -> MatchProperties {
        let words = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
        let names = self.names.clone();
        let attributes = self.attributes.clone();
        let resources = self.resources.clone();
        let libraries = self.libraries.clone();
        let mut rule = MatchProperties { resources: self.attributes(&resources), ..MatchProperties::default() };
        if self.signal == Signal::Metrics {
            rule.metric_names = self.some_texts(&names);
            return rule;
        }
        rule.attributes = self.attributes(&attributes);
        if self.below(4) == 0 {
            let (name, version) = self.one_of(&libraries).unwrap_or_default();
            let name = self.texts(&[name]);
            let version = self.some_texts(&[version]);
            rule.libraries.push(LibraryMatch { name, version });
        }
        match self.signal {
            Signal::Traces => {
                rule.services = self.some_texts(&words(&["<nil-service-name>", ""]));
                rule.span_names = self.some_texts(&names);
                rule.span_kinds = self.some_texts(&words(&["SPAN_KIND_SERVER", "SPAN_KIND_CLIENT"]));
                rule.status_codes = self.some_texts(&words(&["STATUS_CODE_ERROR", "STATUS_CODE_UNSET"]));
            }
            _ => {
                rule.bodies = self.some_texts(&words(&["", "[]", "true", "0"]));
                rule.severity_texts = self.some_texts(&names);
                rule.severity_number = (self.below(3) == 0)
                    .then(|| SeverityNumber { min: self.below(26) as i32, match_undefined: self.flip() });
            }
        }
        rule
    }

    pub(crate) fn key(&mut self) -> String {
        ["a", "b", "service.name", "new", "group"][self.below(5)].to_owned()
    }

    fn keys(&mut self) -> KeySelector {
        let key = self.key();
        let pattern = self.pattern();
        match self.below(3) {
            0 => KeySelector { key: Some(key), pattern: None },
            1 => KeySelector { key: None, pattern: Some(pattern) },
            _ => KeySelector { key: Some(key), pattern: Some(pattern) },
        }
    }

    fn action(&mut self) -> AttributeAction {
        let key = self.key();
        let other = self.key();
        match self.below(9) {
            0..=3 => {
                let from = match self.below(8) {
                    0 | 1 => AttributeValueSource::Value(Value::Array(vec![7.into(), "x".into()])),
                    2 | 3 => AttributeValueSource::Attribute(other),
                    4 => AttributeValueSource::Context(ContextKey::ClientAddress),
                    5 => AttributeValueSource::Context(ContextKey::Metadata(
                        ["x-tenant", "absent"][self.below(2)].into(),
                    )),
                    6 => AttributeValueSource::Context(ContextKey::Auth(["subject", "raw"][self.below(2)].into())),
                    _ => AttributeValueSource::Nothing,
                };
                let when = [SetCondition::Always, SetCondition::Absent, SetCondition::Present][self.below(3)];
                AttributeAction::Set { key, when, from, default: self.flip().then(|| "default".into()) }
            }
            4 => AttributeAction::Delete(self.keys()),
            5 => AttributeAction::Hash(self.keys()),
            6 => AttributeAction::Extract {
                key,
                pattern: RegexPattern::new("^(?P<group>[a-z])(?P<b>é)?.*(?P<new>[k-z]*)$").unwrap(),
            },
            7 => {
                let to = [ConvertedType::String, ConvertedType::Int, ConvertedType::Double][self.below(3)];
                AttributeAction::Convert { key, to }
            }
            _ => AttributeAction::Rename { from: key, to: other },
        }
    }

    pub(crate) fn actions(&mut self) -> Vec<AttributeAction> {
        (0..=self.below(4)).map(|_| self.action()).collect()
    }
}

/// The value as a document can write it; `None` for bytes and for empty values.
fn value(value: &AnyValue) -> Option<Value> {
    Some(match value.value.as_ref()? {
        Any::StringValue(text) => Value::String(text.clone()),
        Any::BoolValue(value) => Value::Bool(*value),
        Any::IntValue(value) => Value::Int(*value),
        Any::DoubleValue(value) => Value::Double(*value),
        Any::ArrayValue(list) => Value::Array(list.values.iter().map(self::value).collect::<Option<_>>()?),
        Any::KvlistValue(list) => {
            let mut pairs = list.values.iter().map(|pair| Some((pair.key.clone(), self::value(pair.value.as_ref()?)?)));
            let mut pairs: Vec<_> = pairs.by_ref().collect::<Option<_>>()?;
            pairs.reverse();
            Value::KeyValueList(pairs)
        }
        _ => return None,
    })
}
