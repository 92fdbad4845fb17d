//! A protobuf writer that records the positions of the fields that change from request to request.

use super::ids::{self, RunSeed};

/// A field that every request fills with a value of its own. Its length is fixed, and so are the lengths of the
/// messages around it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TemplateSlot {
    offset: usize,
    fill: SlotContent,
}

/// The content of a slot.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SlotContent {
    /// Id of the trace with this index in the request.
    Trace(u64),
    /// Id of the item with this index in the request.
    Item(u64),
    /// The time of sending plus this many nanoseconds.
    Time(u64),
}

/// The values of one request's slots.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestValues {
    pub seed: RunSeed,
    /// Number of the request's first trace.
    pub first_trace: u64,
    /// Number of the request's first item.
    pub first_item: u64,
    /// Time of sending, in nanoseconds since 1970.
    pub now: u64,
}

impl TemplateSlot {
    /// Writes the value of this slot into a request.
    pub(crate) fn write(&self, bytes: &mut [u8], values: &RequestValues) {
        match self.fill {
            SlotContent::Trace(index) => put(bytes, self.offset, &values.seed.trace_id(values.first_trace + index)),
            SlotContent::Item(index) => put(bytes, self.offset, &ids::span_id(values.first_item + index)),
            SlotContent::Time(after) => put(bytes, self.offset, &(values.now + after).to_le_bytes()),
        }
    }
}

fn put(bytes: &mut [u8], offset: usize, value: &[u8]) {
    if let Some(place) = bytes.get_mut(offset..offset + value.len()) {
        place.copy_from_slice(value);
    }
}

#[derive(Debug, Default)]
pub(crate) struct MessageBuilder {
    bytes: Vec<u8>,
    slots: Vec<TemplateSlot>,
}

impl MessageBuilder {
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

    pub(crate) fn message(mut self, field: u64, inner: MessageBuilder) -> Self {
        self.put_varint(field << 3 | 2);
        self.put_varint(inner.bytes.len() as u64);
        let start = self.bytes.len();
        self.slots.extend(inner.slots.iter().map(|slot| TemplateSlot { offset: slot.offset + start, ..*slot }));
        self.bytes.extend_from_slice(&inner.bytes);
        self
    }

    /// A field that each request fills.
    pub(crate) fn slot(mut self, field: u64, fill: SlotContent) -> Self {
        let length = match fill {
            SlotContent::Trace(_) => 16,
            SlotContent::Item(_) | SlotContent::Time(_) => 8,
        };
        if let SlotContent::Time(_) = fill {
            self.put_varint(field << 3 | 1);
        } else {
            self.put_varint(field << 3 | 2);
            self.put_varint(length);
        }
        self.slots.push(TemplateSlot { offset: self.bytes.len(), fill });
        self.bytes.resize(self.bytes.len() + length as usize, 0);
        self
    }

    /// Applies `step` for each of several things.
    pub(crate) fn for_each<T>(self, things: impl IntoIterator<Item = T>, step: impl Fn(Self, T) -> Self) -> Self {
        things.into_iter().fold(self, step)
    }

    /// The encoded message, and its slots.
    pub(crate) fn finish(self) -> (Vec<u8>, Vec<TemplateSlot>) {
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
