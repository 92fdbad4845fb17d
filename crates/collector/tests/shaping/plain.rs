//! The reference implementation of the rules, on decoded data.

use aws_lc_rs::digest;
use kubewake_collector::core::Origin;
use kubewake_config::model::{
    AttributeAction, AttributeMatch, AttributeValueSource, ContextKey, ConvertedType, KeySelector, MatchProperties,
    TextMatcher, ValueMatch,
};
use kubewake_otlp::{SetCondition, Value};
use opentelemetry_proto::tonic::{
    common::v1::{AnyValue, ArrayValue, KeyValue, KeyValueList, any_value::Value as Any},
    logs::v1::LogRecord,
    metrics::v1::Metric,
    trace::v1::{Span, span::SpanKind, status::StatusCode},
};

use crate::model::{Record, ResourceEntry, ScopeEntry};

/// The parts of a record that rules use.
pub(crate) trait Plain: Record {
    fn name(&self) -> String;
    fn has(&self, rule: &MatchProperties) -> bool;
}

pub(crate) fn any_of(texts: &Option<TextMatcher>, text: &str) -> bool {
    match texts {
        None => true,
        Some(TextMatcher::Strict(all)) => all.iter().any(|one| one == text),
        Some(TextMatcher::Regexp(all)) => {
            all.iter().any(|one| regex::Regex::new(&escaped(one.as_str())).unwrap().is_match(text))
        }
    }
}

/// Escapes the one construct of an expression that is written differently in this crate.
pub(crate) fn escaped(expression: &str) -> String {
    expression.replace('{', "\\{")
}

impl Plain for Span {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn has(&self, rule: &MatchProperties) -> bool {
        let kind = SpanKind::try_from(self.kind).map_or("", |kind| kind.as_str_name());
        let code = self.status.as_ref().map_or(0, |status| status.code);
        let code = StatusCode::try_from(code).map_or("", |code| code.as_str_name());
        any_of(&rule.span_names, &self.name)
            && any_of(&rule.span_kinds, kind)
            && any_of(&rule.status_codes, code)
            && rule.attributes.iter().all(|one| attribute_matches(one, &self.attributes))
    }
}

impl Plain for LogRecord {
    fn name(&self) -> String {
        self.severity_text.clone()
    }

    fn has(&self, rule: &MatchProperties) -> bool {
        let severe = rule.severity_number.is_none_or(|wanted| match self.severity_number {
            0 => wanted.match_undefined,
            number => number >= wanted.min,
        });
        severe
            && any_of(&rule.severity_texts, &self.severity_text)
            && any_of(&rule.bodies, &text_of(self.body.as_ref()))
            && rule.attributes.iter().all(|one| attribute_matches(one, &self.attributes))
    }
}

impl Plain for Metric {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn has(&self, rule: &MatchProperties) -> bool {
        any_of(&rule.metric_names, &self.name)
    }
}

pub(crate) fn matches<R: Plain>(
    rule: &MatchProperties,
    entry: &ResourceEntry<R>,
    scope: &ScopeEntry<R>,
    record: &R,
) -> bool {
    let resource = entry.resource.clone().unwrap_or_default();
    let service = match find(&resource.attributes, "service.name") {
        Some(pair) => text_of(pair.value.as_ref()),
        None => "<nil-service-name>".into(),
    };
    let library = scope.scope.clone().unwrap_or_default();
    any_of(&rule.services, &service)
        && rule.resources.iter().all(|one| attribute_matches(one, &resource.attributes))
        && (rule.libraries.is_empty()
            || rule
                .libraries
                .iter()
                .any(|one| any_of(&Some(one.name.clone()), &library.name) && any_of(&one.version, &library.version)))
        && record.has(rule)
}

fn find<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a KeyValue> {
    attributes.iter().find(|pair| pair.key == key)
}

pub(crate) fn inner(value: Option<&AnyValue>) -> Option<&Any> {
    value.and_then(|value| value.value.as_ref())
}

fn attribute_matches(wanted: &AttributeMatch, attributes: &[KeyValue]) -> bool {
    let Some(pair) = find(attributes, &wanted.key) else { return false };
    let value = inner(pair.value.as_ref());
    match &wanted.value {
        ValueMatch::Any => true,
        ValueMatch::Equal(wanted) => value.is_some_and(|value| sorted(value.clone()) == sorted(any(wanted))),
        ValueMatch::Regexp(pattern) => {
            let text = match value {
                Some(Any::StringValue(text)) => text.clone(),
                Some(Any::BoolValue(value)) => value.to_string(),
                Some(Any::IntValue(value)) => value.to_string(),
                Some(Any::DoubleValue(value)) => value.to_string(),
                _ => return false,
            };
            any_of(&Some(TextMatcher::Regexp(vec![pattern.clone()])), &text)
        }
    }
}

fn any(value: &Value) -> Any {
    let wrap = |value: &Value| AnyValue { value: Some(any(value)) };
    match value {
        Value::String(text) => Any::StringValue(text.clone()),
        Value::Bool(value) => Any::BoolValue(*value),
        Value::Int(value) => Any::IntValue(*value),
        Value::Double(value) => Any::DoubleValue(*value),
        Value::Bytes(bytes) => Any::BytesValue(bytes.to_vec()),
        Value::Array(values) => Any::ArrayValue(ArrayValue { values: values.iter().map(wrap).collect() }),
        Value::KeyValueList(pairs) => {
            let pair = |(key, value): &(String, Value)| KeyValue {
                key: key.clone(),
                value: Some(wrap(value)),
                ..Default::default()
            };
            Any::KvlistValue(KeyValueList { values: pairs.iter().map(pair).collect() })
        }
        Value::Encoded(_) => panic!("no document says this"),
    }
}

/// Maps in the order of their keys. Of duplicate keys the first one wins, everywhere.
fn sorted(value: Any) -> Any {
    let sort = |value: Option<AnyValue>| value.map(|value| AnyValue { value: value.value.map(sorted) });
    match value {
        Any::ArrayValue(list) => {
            let values = list.values.into_iter().map(|value| sort(Some(value)).unwrap()).collect();
            Any::ArrayValue(ArrayValue { values })
        }
        Any::KvlistValue(list) => {
            let mut values: Vec<KeyValue> =
                list.values.into_iter().map(|pair| KeyValue { value: sort(pair.value), ..pair }).collect();
            values.sort_by(|a, b| a.key.cmp(&b.key));
            Any::KvlistValue(KeyValueList { values })
        }
        other => other,
    }
}

/// A value as text, in the Collector's format.
pub(crate) fn text_of(value: Option<&AnyValue>) -> String {
    use base64::{Engine, prelude::BASE64_STANDARD};
    match inner(value) {
        None => String::new(),
        Some(Any::StringValue(text)) => text.clone(),
        Some(Any::BytesValue(bytes)) => BASE64_STANDARD.encode(bytes),
        Some(other) => json(Some(other)),
    }
}

fn json(value: Option<&Any>) -> String {
    use base64::{Engine, prelude::BASE64_STANDARD};
    match value {
        Some(Any::StringValue(text)) => format!("{text:?}"),
        Some(Any::BoolValue(value)) => value.to_string(),
        Some(Any::IntValue(value)) => value.to_string(),
        Some(Any::DoubleValue(value)) if *value == 1e300 => "1e+300".into(),
        Some(Any::DoubleValue(value)) => value.to_string(),
        Some(Any::BytesValue(bytes)) => format!("\"{}\"", BASE64_STANDARD.encode(bytes)),
        Some(Any::ArrayValue(list)) => {
            let all: Vec<String> = list.values.iter().map(|value| json(value.value.as_ref())).collect();
            format!("[{}]", all.join(","))
        }
        Some(Any::KvlistValue(list)) => {
            let mut last = std::collections::BTreeMap::new();
            list.values.iter().for_each(|pair| drop(last.insert(&pair.key, json(inner(pair.value.as_ref())))));
            let all: Vec<String> = last.iter().map(|(key, value)| format!("{key:?}:{value}")).collect();
            format!("{{{}}}", all.join(","))
        }
        _ => "null".into(),
    }
}

pub(crate) fn change(attributes: &mut Vec<KeyValue>, actions: &[AttributeAction], origin: &Origin) {
    for action in actions {
        match action {
            AttributeAction::Set { key, when, from, default } => {
                let found = match from {
                    AttributeValueSource::Value(value) => Some(Some(AnyValue { value: Some(any(value)) })),
                    AttributeValueSource::Attribute(name) => {
                        find(attributes, name).map(|pair| Some(pair.value.clone().unwrap_or_default()))
                    }
                    AttributeValueSource::Context(context) => {
                        from_context(context, origin).map(|text| Some(string(text)))
                    }
                    AttributeValueSource::Nothing => None,
                };
                let default = default.as_ref().map(|value| Some(AnyValue { value: Some(any(value)) }));
                if let Some(value) = found.or(default) {
                    set(attributes, key, value, *when);
                }
            }
            AttributeAction::Delete(keys) => attributes.retain(|pair| !meant(keys, &pair.key)),
            AttributeAction::Hash(keys) => {
                let hash = |pair: &mut KeyValue| pair.value = Some(string(hash(inner(pair.value.as_ref()))));
                attributes.iter_mut().filter(|pair| meant(keys, &pair.key)).for_each(hash);
            }
            AttributeAction::Extract { key, pattern } => {
                let Some(Any::StringValue(text)) = find(attributes, key).and_then(|pair| inner(pair.value.as_ref()))
                else {
                    continue;
                };
                let regex = regex::Regex::new(pattern.as_str()).unwrap();
                let Some(found) = regex.captures(&text.clone()).map(|found| {
                    let group = |name: &str| found.name(name).map_or("", |group| group.as_str()).to_owned();
                    regex.capture_names().flatten().map(|name| (name.to_owned(), group(name))).collect::<Vec<_>>()
                }) else {
                    continue;
                };
                for (name, text) in found {
                    set(attributes, &name, Some(string(text)), SetCondition::Always);
                }
            }
            AttributeAction::Convert { key, to } => {
                let converted = find(attributes, key).and_then(|pair| converted(pair.value.as_ref(), *to));
                if let Some(value) = converted {
                    set(attributes, key, Some(AnyValue { value: Some(value) }), SetCondition::Always);
                }
            }
            AttributeAction::Rename { from, to } => rename(attributes, from, to),
        }
    }
}

pub(crate) fn string(text: String) -> AnyValue {
    AnyValue { value: Some(Any::StringValue(text)) }
}

fn from_context(context: &ContextKey, origin: &Origin) -> Option<String> {
    match context {
        ContextKey::ClientAddress => Some("10.0.0.7".into()),
        ContextKey::Metadata(name) if name == "x-tenant" => Some("one;two".into()),
        ContextKey::Auth(name) if name == "subject" => origin.subject.clone(),
        _ => None,
    }
}

fn set(attributes: &mut Vec<KeyValue>, key: &str, value: Option<AnyValue>, when: SetCondition) {
    let is_there = find(attributes, key).is_some();
    if when == SetCondition::Absent && is_there || when == SetCondition::Present && !is_there {
        return;
    }
    let new = KeyValue { key: key.to_owned(), value, ..Default::default() };
    if !is_there {
        return attributes.push(new);
    }
    let mut new = Some(new);
    attributes.retain_mut(|pair| {
        if pair.key != key {
            return true;
        }
        new.take().map(|new| *pair = new).is_some()
    });
}

pub(crate) fn set_text(attributes: &mut Vec<KeyValue>, key: &str, text: String) {
    set(attributes, key, Some(string(text)), SetCondition::Always);
}

pub(crate) fn set_int(attributes: &mut Vec<KeyValue>, key: &str, number: i64) {
    set(attributes, key, Some(AnyValue { value: Some(Any::IntValue(number)) }), SetCondition::Always);
}

fn rename(attributes: &mut Vec<KeyValue>, from: &str, to: &str) {
    if find(attributes, from).is_none() {
        return;
    }
    let mut seen = false;
    attributes.retain_mut(|pair| {
        if pair.key == from && !seen {
            seen = true;
            pair.key = to.to_owned();
            return true;
        }
        pair.key != from && pair.key != to
    });
    // Keeps only the last pair with the key `to`.
    if from != to {
        let last = attributes.iter().rposition(|pair| pair.key == to).unwrap();
        let mut at = 0;
        attributes.retain(|pair| {
            at += 1;
            pair.key != to || at - 1 == last
        });
    }
}

fn meant(keys: &KeySelector, key: &str) -> bool {
    keys.key.as_deref() == Some(key)
        || keys.pattern.as_ref().is_some_and(|one| any_of(&Some(TextMatcher::Regexp(vec![one.clone()])), key))
}

fn hash(value: Option<&Any>) -> String {
    let bytes = match value {
        Some(Any::StringValue(text)) => text.as_bytes().to_vec(),
        Some(Any::BoolValue(value)) => vec![u8::from(*value)],
        Some(Any::IntValue(value)) => value.to_le_bytes().to_vec(),
        Some(Any::DoubleValue(value)) => value.to_le_bytes().to_vec(),
        _ => return String::new(),
    };
    digest::digest(&digest::SHA256, &bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn converted(value: Option<&AnyValue>, to: ConvertedType) -> Option<Any> {
    match (to, inner(value)) {
        (ConvertedType::String, Some(Any::StringValue(_))) => None,
        (ConvertedType::String, _) => Some(Any::StringValue(text_of(value))),
        (ConvertedType::Int, Some(Any::DoubleValue(value))) => Some(Any::IntValue(*value as i64)),
        (ConvertedType::Int, Some(Any::BoolValue(value))) => Some(Any::IntValue(i64::from(*value))),
        (ConvertedType::Int, Some(Any::StringValue(text))) => text.parse().ok().map(Any::IntValue),
        (ConvertedType::Double, Some(Any::IntValue(value))) => Some(Any::DoubleValue(*value as f64)),
        (ConvertedType::Double, Some(Any::BoolValue(value))) => Some(Any::DoubleValue(f64::from(u8::from(*value)))),
        (ConvertedType::Double, Some(Any::StringValue(text))) => text.parse().ok().map(Any::DoubleValue),
        _ => None,
    }
}
