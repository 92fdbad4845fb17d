//! What is done to attributes.

use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use kubewake_config::{
    Pattern,
    model::{Action, Context, ConvertedType, Keys, Source},
};
use kubewake_otlp::{AttributeList, Change, Edit, Value, Verdict, When, view::AnyValue, view::KeyValue};

use crate::{core::Origin, processor::hex::hex};

/// Actions in their order.
pub(super) struct Actions {
    actions: Arc<[Action]>,
    /// The same for all requests, if none looks at where a request is from.
    constant: Option<Edit>,
}

/// Actions for one request.
#[derive(Debug)]
struct Bound {
    actions: Arc<[Action]>,
    /// For each action what the context of the request has for it.
    context: Vec<Option<Value>>,
}

impl Actions {
    pub(super) fn new(actions: Vec<Action>) -> Self {
        let uses_context = |action: &Action| matches!(action, Action::Set { from: Source::Context(_), .. });
        let constant = !actions.iter().any(uses_context);
        let actions: Arc<[Action]> = actions.into();
        let constant = constant.then(|| Edit::with(Arc::new(Bound { actions: actions.clone(), context: Vec::new() })));
        Self { actions, constant }
    }

    /// All of them as one edit.
    pub(super) fn edit(&self, origin: &Origin) -> Edit {
        self.constant.clone().unwrap_or_else(|| {
            let value = |action: &Action| match action {
                Action::Set { from: Source::Context(context), .. } => from_context(context, origin).map(Value::String),
                _ => None,
            };
            let context = self.actions.iter().map(value).collect();
            Edit::with(Arc::new(Bound { actions: self.actions.clone(), context }))
        })
    }
}

impl Change for Bound {
    fn change(&self, attributes: &mut AttributeList<'_>) {
        for (at, action) in self.actions.iter().enumerate() {
            match action {
                Action::Set { key, when, from, default } => {
                    let context = self.context.get(at).and_then(Option::as_ref);
                    set(attributes, key, *when, from, context, default.as_ref());
                }
                Action::Delete(keys) => delete(attributes, keys),
                Action::Hash(keys) => hash(attributes, keys),
                Action::Extract { key, pattern } => extract(attributes, key, pattern),
                Action::Convert { key, to } => convert(attributes, key, *to),
                Action::Rename { from, to } => attributes.rename(from, to),
            }
        }
    }
}

fn set(
    attributes: &mut AttributeList<'_>,
    key: &str,
    when: When,
    from: &Source,
    context: Option<&Value>,
    default: Option<&Value>,
) {
    let value = match from {
        Source::Value(value) => Some(value),
        Source::Attribute(name) if attributes.copy(name, key, when) => return,
        Source::Context(_) => context.or(default),
        Source::Attribute(_) | Source::Nothing => default,
    };
    if let Some(value) = value {
        attributes.set(key, value, when);
    }
}

/// What the context of a request has. Several values of a header are one, as in the Collector.
fn from_context(context: &Context, origin: &Origin) -> Option<String> {
    match context {
        Context::ClientAddress => {
            Some(origin.peer.map_or_else(String::new, |peer| peer.ip().to_canonical().to_string()))
        }
        Context::Metadata(name) => {
            let values = origin.metadata.iter().filter(|(header, _)| header == name).map(|(_, value)| value.as_str());
            let values: Vec<&str> = values.collect();
            (!values.is_empty()).then(|| values.join(";"))
        }
        Context::Auth(name) if matches!(name.as_str(), "subject" | "username") => origin.subject.clone(),
        Context::Auth(_) => None,
    }
}

fn are_meant(keys: &Keys, key: &[u8]) -> bool {
    keys.key.as_ref().is_some_and(|one| one.as_bytes() == key)
        || keys.pattern.as_ref().is_some_and(|pattern| pattern.is_match(key))
}

fn delete(attributes: &mut AttributeList<'_>, keys: &Keys) {
    attributes.visit(|attribute| if are_meant(keys, attribute.key()) { Verdict::Remove } else { Verdict::Keep });
}

fn hash(attributes: &mut AttributeList<'_>, keys: &Keys) {
    let hashed = |attribute: KeyValue<'_>| Verdict::Set(Value::String(hash_of(attribute.value())));
    attributes.visit(|attribute| if are_meant(keys, attribute.key()) { hashed(attribute) } else { Verdict::Keep });
}

/// The SHA-256 of a value in hexadecimal. A value without a single representation leaves nothing, as in the Collector.
fn hash_of(value: AnyValue<'_>) -> String {
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

fn extract(attributes: &mut AttributeList<'_>, key: &str, pattern: &Pattern) {
    let Some(AnyValue::String(text)) = attributes.get(key) else { return };
    let Some(found) = pattern.regex().captures(text) else { return };
    let groups = pattern.groups().zip(found.iter().skip(1));
    // A group that took no part in the match is empty. What is not UTF-8 was not when it came.
    let values: Vec<(&str, Value)> = groups
        .filter_map(|(name, group)| Some((name?, text_value(group.map_or(&[][..], |group| group.as_bytes())))))
        .collect();
    for (name, value) in values {
        attributes.set(name, &value, When::Always);
    }
}

fn text_value(text: &[u8]) -> Value {
    Value::String(String::from_utf8_lossy(text).into_owned())
}

fn convert(attributes: &mut AttributeList<'_>, key: &str, to: ConvertedType) {
    if let Some(value) = attributes.get(key).and_then(|value| converted(value, to)) {
        attributes.set(key, &value, When::Present);
    }
}

/// The value as another type; `None` if it is of that type, or cannot be.
fn converted(value: AnyValue<'_>, to: ConvertedType) -> Option<Value> {
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
