//! Changes to the bytes of one message.

use std::borrow::Cow;

use super::edits::{Action, Edit, Edits, When};
use crate::Signal;
use crate::numbers::{key_value, log, span};
use crate::view::{KeyValue, View};
use crate::wire::{Fields, put_bytes};

/// Where in a message the things are that can be changed.
#[derive(Clone, Copy)]
pub(super) struct Target {
    /// The field of the attributes.
    pub(super) attributes: u32,
    /// The field of the trace state, for a span.
    pub(super) trace_state: Option<u32>,
}

impl Target {
    /// The things of a span or a log record; a metric has them in its points.
    pub(super) fn of_record(signal: Signal) -> Option<Self> {
        match signal {
            Signal::Traces => Some(Self { attributes: span::ATTRIBUTES, trace_state: Some(span::TRACE_STATE) }),
            Signal::Logs => Some(Self { attributes: log::ATTRIBUTES, trace_state: None }),
            Signal::Metrics => None,
        }
    }
}

/// Writes the content of `message` with the edits done into `out`. False if it is as it was; `out` is of no use then.
pub(super) fn write(edits: &Edits, message: &[u8], target: Target, out: &mut Vec<u8>) -> bool {
    if edits.is_empty() {
        return false;
    }
    out.clear();
    apply(edits.as_slice(), message, target, out);
    out != message
}

/// All other fields stay as they are; the attributes stand together where the first of them was, if they are edited. A
/// message that is not well formed is written as it was.
fn apply(edits: &[Edit], message: &[u8], target: Target, out: &mut Vec<u8>) {
    let mut fields = Fields::new(message);
    let mut attributes: Vec<KeyValueCow<'_>> = match edits.iter().all(Edit::is_trace_state) {
        true => {
            fields.by_ref().for_each(drop);
            Vec::new()
        }
        false => {
            fields.by_ref().filter(|field| field.is_len(target.attributes)).map(|field| field.value.into()).collect()
        }
    };
    if !fields.rest().is_empty() {
        out.extend_from_slice(message);
        return;
    }
    let mut trace_state = None;
    for Edit(action) in edits {
        match action {
            Action::Set { key, value, when } => set(&mut attributes, key, value, *when),
            Action::Remove { key } => attributes.retain(|attribute| attribute.key() != key),
            Action::Rename { from, to } => rename(&mut attributes, from, to),
            Action::TraceState { value } => trace_state = target.trace_state.map(|number| (number, value)),
        }
    }
    let attributes = (!edits.iter().all(Edit::is_trace_state)).then_some(attributes);
    put(message, target, attributes, trace_state.map(|(number, value)| (number, value.as_ref())), out);
}

/// Without new `attributes` those of the message stay where they are.
fn put(
    message: &[u8],
    target: Target,
    attributes: Option<Vec<KeyValueCow<'_>>>,
    trace_state: Option<(u32, &[u8])>,
    out: &mut Vec<u8>,
) {
    let edited = attributes.is_some();
    let mut attributes = attributes.unwrap_or_default();
    let mut put_attributes = |out: &mut Vec<u8>| {
        for attribute in attributes.drain(..) {
            put_bytes(out, target.attributes, &attribute.0);
        }
    };
    for field in Fields::new(message) {
        if edited && field.is_len(target.attributes) {
            put_attributes(out);
        } else if !trace_state.is_some_and(|(number, _)| field.is_len(number)) {
            out.extend_from_slice(field.raw);
        }
    }
    put_attributes(out);
    if let Some((number, value)) = trace_state.filter(|(_, value)| !value.is_empty()) {
        put_bytes(out, number, value);
    }
}

/// The content of a `KeyValue`, as it was or new.
struct KeyValueCow<'a>(Cow<'a, [u8]>);

impl<'a> From<&'a [u8]> for KeyValueCow<'a> {
    fn from(content: &'a [u8]) -> Self {
        Self(Cow::Borrowed(content))
    }
}

impl KeyValueCow<'_> {
    fn key(&self) -> &[u8] {
        KeyValue::new(&self.0).key()
    }

    fn with(key: &[u8], value: &[u8]) -> Self {
        let mut content = Vec::with_capacity(key.len() + value.len() + 8);
        put_bytes(&mut content, key_value::KEY, key);
        put_bytes(&mut content, key_value::VALUE, value);
        Self(Cow::Owned(content))
    }

    /// The same with another key. The last key counts, so the old ones go and everything else stays.
    fn with_key(&self, key: &[u8]) -> Self {
        let mut content = Vec::with_capacity(self.0.len() + key.len() + 8);
        put_bytes(&mut content, key_value::KEY, key);
        let mut fields = Fields::new(&self.0);
        for field in fields.by_ref().filter(|field| !field.is_len(key_value::KEY)) {
            content.extend_from_slice(field.raw);
        }
        content.extend_from_slice(fields.rest());
        Self(Cow::Owned(content))
    }
}

fn set(attributes: &mut Vec<KeyValueCow<'_>>, key: &[u8], value: &[u8], when: When) {
    let place = attributes.iter().position(|attribute| attribute.key() == key);
    match (place, when) {
        (Some(_), When::Absent) | (None, When::Present) => {}
        (None, _) => attributes.push(KeyValueCow::with(key, value)),
        (Some(place), _) => keep_one(attributes, place, key, KeyValueCow::with(key, value)),
    }
}

fn rename(attributes: &mut Vec<KeyValueCow<'_>>, from: &[u8], to: &[u8]) {
    let Some(place) = attributes.iter().position(|attribute| attribute.key() == from) else { return };
    let Some(renamed) = attributes.get(place).map(|attribute| attribute.with_key(to)) else { return };
    let before = attributes.iter().take(place).filter(|attribute| attribute.key() == to).count();
    attributes.retain(|attribute| attribute.key() != to || from == to);
    keep_one(attributes, place - before.min(place), from, renamed);
}

/// Puts `attribute` at `place`, and removes all others with `key`.
fn keep_one<'a>(attributes: &mut Vec<KeyValueCow<'a>>, place: usize, key: &[u8], attribute: KeyValueCow<'a>) {
    let mut index = 0;
    let mut new = Some(attribute);
    attributes.retain_mut(|old| {
        let is_place = index == place;
        index += 1;
        if is_place && let Some(new) = new.take() {
            *old = new;
            return true;
        }
        old.key() != key
    });
}
