//! Protobuf, written by hand, with the places that change from request to request remembered.

use super::ids::{self, Seed};

/// A place in a message that every request fills anew. Its length never changes, so neither does any length around it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    offset: usize,
    fill: Fill,
}

/// What goes into a slot.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fill {
    /// The id of the request's trace with this index.
    Trace(u64),
    /// The id of the request's item with this index.
    Item(u64),
    /// The time of sending, and this many nanoseconds.
    Time(u64),
}

/// What one request fills its slots with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Values {
    /// The run.
    pub seed: Seed,
    /// The number of the request's first trace.
    pub first_trace: u64,
    /// The number of the request's first item.
    pub first_item: u64,
    /// The time of sending, in nanoseconds of Unix time.
    pub now: u64,
}

impl Slot {
    /// Writes the value of this request into its place.
    pub(crate) fn write(&self, bytes: &mut [u8], values: &Values) {
        match self.fill {
            Fill::Trace(index) => put(bytes, self.offset, &values.seed.trace_id(values.first_trace + index)),
            Fill::Item(index) => put(bytes, self.offset, &ids::span_id(values.first_item + index)),
            Fill::Time(after) => put(bytes, self.offset, &(values.now + after).to_le_bytes()),
        }
    }
}

fn put(bytes: &mut [u8], offset: usize, value: &[u8]) {
    if let Some(place) = bytes.get_mut(offset..offset + value.len()) {
        place.copy_from_slice(value);
    }
}

/// A protobuf message under construction.
#[derive(Debug, Default)]
pub(crate) struct Message {
    bytes: Vec<u8>,
    slots: Vec<Slot>,
}

impl Message {
    /// An integer or an enum.
    pub(crate) fn varint(mut self, field: u64, value: u64) -> Self {
        self.put_varint(field << 3);
        self.put_varint(value);
        self
    }

    /// A string or bytes.
    pub(crate) fn text(mut self, field: u64, value: &str) -> Self {
        self.put_varint(field << 3 | 2);
        self.put_varint(value.len() as u64);
        self.bytes.extend_from_slice(value.as_bytes());
        self
    }

    /// A message inside this one.
    pub(crate) fn message(mut self, field: u64, inner: Message) -> Self {
        self.put_varint(field << 3 | 2);
        self.put_varint(inner.bytes.len() as u64);
        let start = self.bytes.len();
        self.slots.extend(inner.slots.iter().map(|slot| Slot { offset: slot.offset + start, ..*slot }));
        self.bytes.extend_from_slice(&inner.bytes);
        self
    }

    /// A field that each request fills.
    pub(crate) fn slot(mut self, field: u64, fill: Fill) -> Self {
        let length = match fill {
            Fill::Trace(_) => 16,
            Fill::Item(_) | Fill::Time(_) => 8,
        };
        if let Fill::Time(_) = fill {
            self.put_varint(field << 3 | 1);
        } else {
            self.put_varint(field << 3 | 2);
            self.put_varint(length);
        }
        self.slots.push(Slot { offset: self.bytes.len(), fill });
        self.bytes.resize(self.bytes.len() + length as usize, 0);
        self
    }

    /// Applies a step for each of several things.
    pub(crate) fn each<T>(self, things: impl IntoIterator<Item = T>, step: impl Fn(Self, T) -> Self) -> Self {
        things.into_iter().fold(self, step)
    }

    /// The bytes, and the places to fill.
    pub(crate) fn finish(self) -> (Vec<u8>, Vec<Slot>) {
        (self.bytes, self.slots)
    }

    fn put_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }
}
