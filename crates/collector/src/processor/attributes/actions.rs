//! Attribute actions: insert, update, upsert, delete, hash, extract and convert.

use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use kubewake_config::{
    RegexPattern,
    model::{AttributeAction, AttributeValueSource, ContextKey, ConvertedType, KeySelector},
};
use kubewake_otlp::{
    AttributeChange, AttributeDisposition, AttributeList, MessageEdit, SetCondition, Value, view::AnyValue,
    view::KeyValue,
};

use crate::{core::Origin, processor::hex::hex};

pub(in crate::processor) struct AttributeActions {
    actions: Arc<[AttributeAction]>,
    /// The compiled edit, if no action depends on the request's origin.
    constant: Option<MessageEdit>,
}

#[derive(Debug)]
struct BoundActions {
    actions: Arc<[AttributeAction]>,
    /// For each action the value from the request's context.
    context: Vec<Option<Value>>,
}

impl AttributeActions {
    pub(in crate::processor) fn new(actions: Vec<AttributeAction>) -> Self {
        let uses_context = |action: &AttributeAction| {
            matches!(action, AttributeAction::Set { from: AttributeValueSource::Context(_), .. })
        };
        let constant = !actions.iter().any(uses_context);
        let actions: Arc<[AttributeAction]> = actions.into();
        let constant = constant.then(|| {
            MessageEdit::apply_change(Arc::new(BoundActions { actions: actions.clone(), context: Vec::new() }))
        });
        Self { actions, constant }
    }

    /// All actions as one edit.
    pub(in crate::processor) fn edit(&self, origin: &Origin) -> MessageEdit {
        self.constant.clone().unwrap_or_else(|| {
            let value = |action: &AttributeAction| match action {
                AttributeAction::Set { from: AttributeValueSource::Context(context), .. } => {
                    from_context(context, origin).map(Value::String)
                }
                _ => None,
            };
            let context = self.actions.iter().map(value).collect();
            MessageEdit::apply_change(Arc::new(BoundActions { actions: self.actions.clone(), context }))
        })
    }
}

impl AttributeChange for BoundActions {
    fn change(&self, attributes: &mut AttributeList<'_>) {
        for (at, action) in self.actions.iter().enumerate() {
            match action {
                AttributeAction::Set { key, when, from, default } => {
                    let context = self.context.get(at).and_then(Option::as_ref);
                    set(attributes, key, *when, from, context, default.as_ref());
                }
                AttributeAction::Delete(keys) => delete(attributes, keys),
                AttributeAction::Hash(keys) => hash_values(attributes, keys),
                AttributeAction::Extract { key, pattern } => extract(attributes, key, pattern),
                AttributeAction::Convert { key, to } => convert(attributes, key, *to),
                AttributeAction::Rename { from, to } => attributes.rename(from, to),
            }
        }
    }
}

fn set(
    attributes: &mut AttributeList<'_>,
    key: &str,
    when: SetCondition,
    from: &AttributeValueSource,
    context: Option<&Value>,
    default: Option<&Value>,
) {
    let value = match from {
        AttributeValueSource::Value(value) => Some(value),
        AttributeValueSource::Attribute(name) if attributes.copy(name, key, when) => return,
        AttributeValueSource::Context(_) => context.or(default),
        AttributeValueSource::Attribute(_) | AttributeValueSource::Nothing => default,
    };
    if let Some(value) = value {
        attributes.set(key, value, when);
    }
}

/// A value from a request's context. Several values of a header are joined, as in the Collector.
fn from_context(context: &ContextKey, origin: &Origin) -> Option<String> {
    match context {
        ContextKey::ClientAddress => {
            Some(origin.peer.map_or_else(String::new, |peer| peer.ip().to_canonical().to_string()))
        }
        ContextKey::Metadata(name) => {
            let values = origin.metadata.iter().filter(|(header, _)| header == name).map(|(_, value)| value.as_str());
            let values: Vec<&str> = values.collect();
            (!values.is_empty()).then(|| values.join(";"))
        }
        ContextKey::Auth(name) if matches!(name.as_str(), "subject" | "username") => origin.subject.clone(),
        ContextKey::Auth(_) => None,
    }
}

fn matches_key(keys: &KeySelector, key: &[u8]) -> bool {
    keys.key.as_ref().is_some_and(|one| one.as_bytes() == key)
        || keys.pattern.as_ref().is_some_and(|pattern| pattern.is_match(key))
}

fn delete(attributes: &mut AttributeList<'_>, keys: &KeySelector) {
    attributes.visit(|attribute| {
        if matches_key(keys, attribute.key()) { AttributeDisposition::Remove } else { AttributeDisposition::Keep }
    });
}

fn hash_values(attributes: &mut AttributeList<'_>, keys: &KeySelector) {
    let hashed = |attribute: KeyValue<'_>| AttributeDisposition::Set(Value::String(hash_value(attribute.value())));
    attributes.visit(
        |attribute| if matches_key(keys, attribute.key()) { hashed(attribute) } else { AttributeDisposition::Keep },
    );
}

/// The SHA-256 of a value in hexadecimal. A value without a single representation leaves nothing, as in the
/// Collector.
fn hash_value(value: AnyValue<'_>) -> String {
    match value {
        AnyValue::String(text) => hex_digest(text),
        AnyValue::Bool(value) => hex_digest(&[u8::from(value)]),
        AnyValue::Int(value) => hex_digest(&value.to_le_bytes()),
        AnyValue::Double(value) => hex_digest(&value.to_bits().to_le_bytes()),
        AnyValue::None | AnyValue::Array(_) | AnyValue::KeyValueList(_) | AnyValue::Bytes(_) => String::new(),
    }
}

fn hex_digest(bytes: &[u8]) -> String {
    hex(digest(&SHA256, bytes).as_ref())
}

fn extract(attributes: &mut AttributeList<'_>, key: &str, pattern: &RegexPattern) {
    let Some(AnyValue::String(text)) = attributes.get(key) else { return };
    let Some(found) = pattern.regex().captures(text) else { return };
    let groups = pattern.groups().zip(found.iter().skip(1));
    // A group that took no part in the match is empty. A value that is not UTF-8 was not when it arrived.
    let values: Vec<(&str, Value)> = groups
        .filter_map(|(name, group)| Some((name?, text_value(group.map_or(&[][..], |group| group.as_bytes())))))
        .collect();
    for (name, value) in values {
        attributes.set(name, &value, SetCondition::Always);
    }
}

fn text_value(text: &[u8]) -> Value {
    Value::String(String::from_utf8_lossy(text).into_owned())
}

fn convert(attributes: &mut AttributeList<'_>, key: &str, to: ConvertedType) {
    if let Some(value) = attributes.get(key).and_then(|value| convert_value(value, to)) {
        attributes.set(key, &value, SetCondition::Present);
    }
}

/// Converts a value to another type; `None` if it has that type, or cannot be converted.
fn convert_value(value: AnyValue<'_>, to: ConvertedType) -> Option<Value> {
    let parse = |text: &[u8]| std::str::from_utf8(text).ok().map(str::to_owned);
    Some(match (to, value) {
        (ConvertedType::String, AnyValue::String(_)) => return None,
        (ConvertedType::String, value) => text_value(&value.to_text()),
        (ConvertedType::Int, AnyValue::Double(value)) => Value::Int(value as i64),
        (ConvertedType::Int, AnyValue::Bool(value)) => Value::Int(value.into()),
        (ConvertedType::Int, AnyValue::String(text)) => Value::Int(parse(text)?.parse().ok()?),
        (ConvertedType::Double, AnyValue::Int(value)) => Value::Double(value as f64),
        (ConvertedType::Double, AnyValue::Bool(value)) => Value::Double(f64::from(u8::from(value))),
        (ConvertedType::Double, AnyValue::String(text)) => Value::Double(parse(text)?.parse().ok()?),
        _ => return None,
    })
}
