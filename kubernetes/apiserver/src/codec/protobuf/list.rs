//! Encodes a list item by item.

use serde_json::{Map, Value};

use super::{
    MAGIC,
    message_table::{FieldCardinality, FieldType, MessageTable},
    wire::{put_bytes, put_tag, put_varint},
    write,
};

/// The message of a list, without its items.
#[derive(Clone, Debug)]
pub struct ListMessage {
    version: String,
    kind: String,
    /// All fields but the items, which have the highest number.
    envelope: Vec<u8>,
    number: u32,
    item: FieldType,
}

impl ListMessage {
    /// The message of a list without its items, which are in `field`. None if its kind has no message here.
    pub fn new(list: &Map<String, Value>, field: &str) -> Option<Self> {
        let text = |name| list.get(name).and_then(Value::as_str);
        let version = text("apiVersion")?;
        let kind = text("kind")?;
        let message = MessageTable::get().kind(version, kind)?;
        let items = message.fields.last().filter(|last| last.name == field && last.label == FieldCardinality::List)?;
        let mut envelope = Vec::new();
        write::message(&mut envelope, message, list);
        Some(Self { version: version.into(), kind: kind.into(), envelope, number: items.number, item: items.kind })
    }

    pub fn item(&self, item: &Value) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(1024);
        write::put_value(&mut bytes, self.number, self.item, Some(item));
        bytes
    }

    /// The bytes before and after the items, given the total length of the items.
    pub fn encode_envelope(&self, items: u64) -> (Vec<u8>, Vec<u8>) {
        let mut meta = Vec::with_capacity(self.version.len() + self.kind.len() + 4);
        put_bytes(&mut meta, 1, self.version.as_bytes());
        put_bytes(&mut meta, 2, self.kind.as_bytes());
        let mut start = MAGIC.to_vec();
        put_bytes(&mut start, 1, &meta);
        put_tag(&mut start, 2, 2);
        put_varint(&mut start, self.envelope.len() as u64 + items);
        start.extend_from_slice(&self.envelope);
        let mut end = Vec::new();
        put_bytes(&mut end, 3, b"");
        put_bytes(&mut end, 4, b"");
        (start, end)
    }
}
