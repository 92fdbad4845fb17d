//! The attributes of one message while they are changed.

use std::fmt;

use super::Value;
use crate::numbers::key_value;
use crate::view::{AnyValue, KeyValue, View};
use crate::wire::{Fields, put_bytes, put_header};

/// A change that looks at the attributes as they are when its turn comes.
pub trait Change: fmt::Debug + Send + Sync {
    /// Changes them.
    fn change(&self, attributes: &mut AttributeList<'_>);
}

/// The attributes of one message, in order, to be read and changed. What is not touched stays as it was sent.
#[derive(Debug)]
pub struct AttributeList<'m> {
    message: &'m [u8],
    memory: &'m mut Memory,
    changed: bool,
}

/// For which attributes a value is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Whether it is there or not.
    Always,
    /// If it is not there.
    Absent,
    /// If it is there.
    Present,
}

/// What becomes of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It stays as it is.
    Keep,
    /// It goes.
    Remove,
    /// It gets another value.
    Set(Value),
}

/// What a list needs, kept from one message to the next.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pairs: Vec<Pair>,
    /// New pairs, one after another.
    new: Vec<u8>,
}

/// Where a `KeyValue` is: in the message or among the new ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pair {
    /// Its field in the message, with tag and length. A new one has no field yet: here its content begins.
    field: usize,
    /// Its content.
    start: usize,
    end: usize,
    is_new: bool,
}

impl<'m> AttributeList<'m> {
    /// The attributes in field `number` of a message; `None` if that is not well formed.
    pub(super) fn read(message: &'m [u8], number: u32, memory: &'m mut Memory) -> Option<Self> {
        memory.pairs.clear();
        memory.new.clear();
        let mut fields = Fields::new(message);
        for field in fields.by_ref().filter(|field| field.is_len(number)) {
            let end = field.raw.as_ptr().addr() - message.as_ptr().addr() + field.raw.len();
            let (field, start) = (end - field.raw.len(), end - field.value.len());
            memory.pairs.push(Pair { field, start, end, is_new: false });
        }
        fields.rest().is_empty().then_some(Self { message, memory, changed: false })
    }

    /// Whether anything was done to them.
    pub(super) fn is_changed(&self) -> bool {
        self.changed
    }

    /// All of them. Keys should differ, but nothing made sure that they do.
    pub fn iter(&self) -> impl Iterator<Item = KeyValue<'_>> {
        self.memory.pairs.iter().map(|pair| KeyValue::new(self.content(*pair)))
    }

    /// Writes them as fields of this number: what is not new as it stands, neighbours as one.
    pub(super) fn put_all(&self, number: u32, out: &mut Vec<u8>) {
        let mut run = 0..0;
        for pair in &self.memory.pairs {
            if !pair.is_new && pair.field == run.end {
                run.end = pair.end;
                continue;
            }
            out.extend_from_slice(self.message.get(run).unwrap_or_default());
            run = match pair.is_new {
                true => 0..0,
                false => pair.field..pair.end,
            };
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

    /// Sets an attribute. Further attributes with that key go.
    pub fn set(&mut self, key: impl AsRef<[u8]>, value: &Value, when: When) {
        let key = key.as_ref();
        self.put(key, when, |new| value.encode(new));
    }

    /// Sets an attribute to the value that another one has; false if there is no such one.
    pub fn copy(&mut self, from: impl AsRef<[u8]>, to: impl AsRef<[u8]>, when: When) -> bool {
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

    /// Gives an attribute another key, if it is there. It keeps its place and value; any other attribute with the new key
    /// goes, and so do further ones with the old key.
    pub fn rename(&mut self, from: impl AsRef<[u8]>, to: impl AsRef<[u8]>) {
        let (from, to) = (from.as_ref(), to.as_ref());
        let Some((place, source)) = self.find(from) else { return };
        self.changed = true;
        let renamed = self.renamed(source, to);
        if let Some(pair) = self.memory.pairs.get_mut(place) {
            *pair = renamed;
        }
        self.retain(|at, pair| at == place || (pair.key() != from && pair.key() != to));
    }

    /// Asks for each attribute what becomes of it.
    pub fn visit(&mut self, mut judge: impl FnMut(KeyValue<'_>) -> Verdict) {
        let mut kept = 0;
        for at in 0..self.memory.pairs.len() {
            let Some(pair) = self.memory.pairs.get(at).copied() else { break };
            let attribute = KeyValue::new(self.content(pair));
            let pair = match judge(attribute) {
                Verdict::Keep => pair,
                Verdict::Remove => continue,
                Verdict::Set(value) => {
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

    /// Sets what is already encoded.
    pub(super) fn put(&mut self, key: &[u8], when: When, value: impl FnOnce(&mut Vec<u8>)) {
        let found = self.find(key);
        match (found, when) {
            (Some(_), When::Absent) | (None, When::Present) => return,
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

    fn find(&self, key: &[u8]) -> Option<(usize, Pair)> {
        let pairs = self.memory.pairs.iter().copied().enumerate();
        pairs.into_iter().find(|(_, pair)| KeyValue::new(self.content(*pair)).key() == key)
    }

    fn content(&self, pair: Pair) -> &[u8] {
        let source = if pair.is_new { self.memory.new.as_slice() } else { self.message };
        source.get(pair.start..pair.end).unwrap_or_default()
    }

    /// Writes a new pair, which is in the list when whoever asked puts it there.
    fn write(&mut self, key: &[u8], value: impl FnOnce(&mut Vec<u8>)) -> Pair {
        // The length of a value stands before it, so it is written once to be measured and once to stay.
        let new = &mut self.memory.new;
        let measured = new.len();
        value(new);
        let start = new.len();
        put_bytes(new, key_value::KEY, key);
        put_header(new, key_value::VALUE, start - measured);
        new.extend_from_within(measured..start);
        Pair { field: start, start, end: new.len(), is_new: true }
    }

    /// The same pair with another key. The last key counts, so the old ones go and everything else stays.
    fn renamed(&mut self, source: Pair, key: &[u8]) -> Pair {
        let content = self.content(source).to_vec();
        let new = &mut self.memory.new;
        let start = new.len();
        put_bytes(new, key_value::KEY, key);
        let mut fields = Fields::new(&content);
        for field in fields.by_ref().filter(|field| !field.is_len(key_value::KEY)) {
            new.extend_from_slice(field.raw);
        }
        new.extend_from_slice(fields.rest());
        Pair { field: start, start, end: new.len(), is_new: true }
    }

    fn retain(&mut self, mut keep: impl FnMut(usize, KeyValue<'_>) -> bool) {
        let Memory { pairs, new } = &mut *self.memory;
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
