//! The attributes of one message during an edit.

use std::fmt;

use super::Value;
use crate::field_numbers::key_value;
use crate::view::{AnyValue, KeyValue, MessageView};
use crate::wire::{WireFields, put_bytes, put_header};

/// A change that sees the attributes as the edits before it left them.
pub trait AttributeChange: fmt::Debug + Send + Sync {
    fn change(&self, attributes: &mut AttributeList<'_>);
}

/// The attributes of one message, in order, to be read and edited. Other attributes stay as they were sent.
#[derive(Debug)]
pub struct AttributeList<'m> {
    message: &'m [u8],
    memory: &'m mut ListBuffers,
    changed: bool,
}

/// The condition on which a value is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetCondition {
    /// Whether the attribute exists or not.
    Always,
    /// If the attribute does not exist.
    Absent,
    Present,
}

/// The decision on an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum AttributeDisposition {
    /// It stays unchanged.
    Keep,
    Remove,
    Set(Value),
}

/// Buffers of a list, reused from one message to the next.
#[derive(Debug, Default)]
pub(super) struct ListBuffers {
    pairs: Vec<PairLocation>,
    /// New pairs, one after another.
    new: Vec<u8>,
}

/// Location of a `KeyValue`: in the message or among the new pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PairLocation {
    /// The offset of its field in the message. A new pair has no field yet: this is the offset of its content.
    field: usize,
    start: usize,
    end: usize,
    is_new: bool,
}

impl<'m> AttributeList<'m> {
    /// Reads the attributes in field `number` of a message; `None` if the message is malformed.
    pub(super) fn read(message: &'m [u8], number: u32, memory: &'m mut ListBuffers) -> Option<Self> {
        memory.pairs.clear();
        memory.new.clear();
        let mut fields = WireFields::new(message);
        for field in fields.by_ref().filter(|field| field.is_len(number)) {
            let end = field.raw.as_ptr().addr() - message.as_ptr().addr() + field.raw.len();
            let (field, start) = (end - field.raw.len(), end - field.value.len());
            memory.pairs.push(PairLocation { field, start, end, is_new: false });
        }
        fields.rest().is_empty().then_some(Self { message, memory, changed: false })
    }

    /// Whether any attribute was edited.
    pub(super) fn is_changed(&self) -> bool {
        self.changed
    }

    /// All attributes. Keys should be unique, but may not be.
    pub fn iter(&self) -> impl Iterator<Item = KeyValue<'_>> {
        self.memory.pairs.iter().map(|pair| KeyValue::new(self.content(*pair)))
    }

    /// Writes the attributes as fields of this number: existing ones unchanged, consecutive ones at once.
    pub(super) fn put_all(&self, number: u32, out: &mut Vec<u8>) {
        let mut run = 0..0;
        for pair in &self.memory.pairs {
            if !pair.is_new && pair.field == run.end {
                run.end = pair.end;
                continue;
            }
            out.extend_from_slice(self.message.get(run).unwrap_or_default());
            run = if pair.is_new { 0..0 } else { pair.field..pair.end };
            if pair.is_new {
                put_bytes(out, number, self.content(*pair));
            }
        }
        out.extend_from_slice(self.message.get(run).unwrap_or_default());
    }

    /// The value of the first attribute with that key.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Option<AnyValue<'_>> {
        self.find(key.as_ref()).map(|(_, pair)| KeyValue::new(self.content(pair)).value())
    }

    /// Sets an attribute. Duplicates of the key are removed.
    pub fn set(&mut self, key: impl AsRef<[u8]>, value: &Value, when: SetCondition) {
        let key = key.as_ref();
        self.put(key, when, |new| value.encode(new));
    }

    /// Sets an attribute to the value of another one; false if the other does not exist.
    pub fn copy(&mut self, from: impl AsRef<[u8]>, to: impl AsRef<[u8]>, when: SetCondition) -> bool {
        let Some((_, source)) = self.find(from.as_ref()) else { return false };
        let value = KeyValue::new(self.content(source)).raw_value().into_owned();
        self.put(to.as_ref(), when, |new| new.extend_from_slice(&value));
        true
    }

    /// Removes all attributes with that key.
    pub fn remove(&mut self, key: impl AsRef<[u8]>) {
        let key = key.as_ref();
        self.retain(|_, pair| pair.key() != key);
    }

    /// Renames an attribute, if it exists. It keeps its position and value; other attributes with the new key
    /// and duplicates of the old key are removed.
    pub fn rename(&mut self, from: impl AsRef<[u8]>, to: impl AsRef<[u8]>) {
        let from = from.as_ref();
        let to = to.as_ref();
        let Some((place, source)) = self.find(from) else { return };
        self.changed = true;
        let renamed = self.renamed(source, to);
        if let Some(pair) = self.memory.pairs.get_mut(place) {
            *pair = renamed;
        }
        self.retain(|at, pair| at == place || (pair.key() != from && pair.key() != to));
    }

    /// Calls `judge` for each attribute, and applies its decision.
    pub fn visit(&mut self, mut judge: impl FnMut(KeyValue<'_>) -> AttributeDisposition) {
        let mut kept = 0;
        for at in 0..self.memory.pairs.len() {
            let Some(pair) = self.memory.pairs.get(at).copied() else { break };
            let attribute = KeyValue::new(self.content(pair));
            let pair = match judge(attribute) {
                AttributeDisposition::Keep => pair,
                AttributeDisposition::Remove => continue,
                AttributeDisposition::Set(value) => {
                    let key = attribute.key().to_vec();
                    self.write(&key, |new| value.encode(new))
                }
            };
            self.changed |= pair.is_new;
            if let Some(place) = self.memory.pairs.get_mut(kept) {
                *place = pair;
            }
            kept += 1;
        }
        self.changed |= kept < self.memory.pairs.len();
        self.memory.pairs.truncate(kept);
    }

    /// Sets an encoded value.
    pub(super) fn put(&mut self, key: &[u8], when: SetCondition, value: impl FnOnce(&mut Vec<u8>)) {
        let found = self.find(key);
        match (found, when) {
            (Some(_), SetCondition::Absent) | (None, SetCondition::Present) => return,
            (None, _) => {
                let pair = self.write(key, value);
                self.memory.pairs.push(pair);
            }
            (Some((place, _)), _) => {
                let written = self.write(key, value);
                if let Some(pair) = self.memory.pairs.get_mut(place) {
                    *pair = written;
                }
                self.retain(|at, pair| at == place || pair.key() != key);
            }
        }
        self.changed = true;
    }

    fn find(&self, key: &[u8]) -> Option<(usize, PairLocation)> {
        let pairs = self.memory.pairs.iter().copied().enumerate();
        pairs.into_iter().find(|(_, pair)| KeyValue::new(self.content(*pair)).key() == key)
    }

    fn content(&self, pair: PairLocation) -> &[u8] {
        let source = if pair.is_new { self.memory.new.as_slice() } else { self.message };
        source.get(pair.start..pair.end).unwrap_or_default()
    }

    /// Writes a new pair, which is not in the list until the caller puts it there.
    fn write(&mut self, key: &[u8], value: impl FnOnce(&mut Vec<u8>)) -> PairLocation {
        // The length of a value precedes it, so the value is written once to be measured and once to stay.
        let new = &mut self.memory.new;
        let measured = new.len();
        value(new);
        let start = new.len();
        put_bytes(new, key_value::KEY, key);
        put_header(new, key_value::VALUE, start - measured);
        new.extend_from_within(measured..start);
        PairLocation { field: start, start, end: new.len(), is_new: true }
    }

    /// The same pair with another key. Old key fields are removed, as the last key counts.
    fn renamed(&mut self, source: PairLocation, key: &[u8]) -> PairLocation {
        let content = self.content(source).to_vec();
        let new = &mut self.memory.new;
        let start = new.len();
        put_bytes(new, key_value::KEY, key);
        let mut fields = WireFields::new(&content);
        for field in fields.by_ref().filter(|field| !field.is_len(key_value::KEY)) {
            new.extend_from_slice(field.raw);
        }
        new.extend_from_slice(fields.rest());
        PairLocation { field: start, start, end: new.len(), is_new: true }
    }

    fn retain(&mut self, mut keep: impl FnMut(usize, KeyValue<'_>) -> bool) {
        let ListBuffers { pairs, new } = &mut *self.memory;
        let before = pairs.len();
        let mut at = 0;
        pairs.retain(|pair| {
            let source = if pair.is_new { new.as_slice() } else { self.message };
            let kept = keep(at, KeyValue::new(source.get(pair.start..pair.end).unwrap_or_default()));
            at += 1;
            kept
        });
        self.changed |= pairs.len() != before;
    }
}
