//! Rules that have to do with a request: their keys, names and values are mostly from it.

use kubewake_config::{
    Pattern,
    model::{
        Action, AttributeMatch, Context, ConvertedType, Keys, Library, Match, SeverityNumber, Source, Texts, ValueMatch,
    },
};
use kubewake_otlp::{Signal, Value, When};
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value as Any};

use crate::model::Decoded;
use crate::plain::Plain;

/// Chooses by a seed.
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
        // A linear congruence is as random as this needs to be; its high bits are.
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

    pub(crate) fn pattern(&mut self) -> Pattern {
        let text = ["^[a-m]", "é", "^$", "x+$", "[0-9]", "^-?1", "", "true|^a", "SERVER|OK|{"][self.below(9)];
        Pattern::new(text).unwrap()
    }

    fn texts(&mut self, known: &[String]) -> Texts {
        if self.flip() {
            return Texts::Regexp((0..=self.below(2)).map(|_| self.pattern()).collect());
        }
        let mut texts: Vec<String> = (0..=self.below(3)).filter_map(|_| self.one_of(known)).collect();
        texts.push("never".into());
        Texts::strict(texts)
    }

    fn some_texts(&mut self, known: &[String]) -> Option<Texts> {
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

    pub(crate) fn rule(&mut self) -> Match {
        let words = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
        let (names, attributes, resources) = (self.names.clone(), self.attributes.clone(), self.resources.clone());
        let libraries = self.libraries.clone();
        let mut rule = Match { resources: self.attributes(&resources), ..Match::default() };
        if self.signal == Signal::Metrics {
            rule.metric_names = self.some_texts(&names);
            return rule;
        }
        rule.attributes = self.attributes(&attributes);
        if self.below(4) == 0 {
            let (name, version) = self.one_of(&libraries).unwrap_or_default();
            let (name, version) = (self.texts(&[name]), self.some_texts(&[version]));
            rule.libraries.push(Library { name, version });
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

    fn keys(&mut self) -> Keys {
        let (key, pattern) = (self.key(), self.pattern());
        match self.below(3) {
            0 => Keys { key: Some(key), pattern: None },
            1 => Keys { key: None, pattern: Some(pattern) },
            _ => Keys { key: Some(key), pattern: Some(pattern) },
        }
    }

    fn action(&mut self) -> Action {
        let (key, other) = (self.key(), self.key());
        match self.below(9) {
            0..=3 => {
                let from = match self.below(8) {
                    0 | 1 => Source::Value(Value::Array(vec![7.into(), "x".into()])),
                    2 | 3 => Source::Attribute(other),
                    4 => Source::Context(Context::ClientAddress),
                    5 => Source::Context(Context::Metadata(["x-tenant", "absent"][self.below(2)].into())),
                    6 => Source::Context(Context::Auth(["subject", "raw"][self.below(2)].into())),
                    _ => Source::Nothing,
                };
                let when = [When::Always, When::Absent, When::Present][self.below(3)];
                Action::Set { key, when, from, default: self.flip().then(|| "default".into()) }
            }
            4 => Action::Delete(self.keys()),
            5 => Action::Hash(self.keys()),
            6 => {
                Action::Extract { key, pattern: Pattern::new("^(?P<group>[a-z])(?P<b>é)?.*(?P<new>[k-z]*)$").unwrap() }
            }
            7 => {
                let to = [ConvertedType::String, ConvertedType::Int, ConvertedType::Double][self.below(3)];
                Action::Convert { key, to }
            }
            _ => Action::Rename { from: key, to: other },
        }
    }

    pub(crate) fn actions(&mut self) -> Vec<Action> {
        (0..=self.below(4)).map(|_| self.action()).collect()
    }
}

/// What a document can say of a value; nothing of bytes, and of what is nothing.
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
