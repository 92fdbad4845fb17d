//! Lists that are not the JSON that is stored: YAML, protobuf, indented JSON, Tables, metadata only.
//!
//! Guaranteed: a large list is never in memory as a whole. Its objects are decoded, shaped and encoded a few at a time, when the caller
//! reads. Small lists are encoded at once, so that their length is known.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value};

use super::{
    answer::{self, Listing},
    call::On,
    form::Form,
    heavy,
};
use crate::{
    codec::{self, Media, accept::Chosen, protobuf::ListMessage},
    http::Body,
    registry::Resource,
    store::Stored,
};

/// What a large list is written in.
const PIECE: usize = 64 << 10;

/// How the objects of a list are shown.
#[derive(Clone, Debug)]
pub struct ListShape {
    resource: Arc<Resource>,
    /// The resource as the caller sees it, where that is another one.
    view: Option<Arc<Resource>>,
    form: Form,
}

impl ListShape {
    /// The shape of the answer to a request.
    pub fn new(on: On<'_>, form: &Form) -> Self {
        Self { resource: Arc::clone(on.resource), view: on.view.cloned(), form: *form }
    }

    fn shown(&self) -> &Resource {
        self.view.as_ref().unwrap_or(&self.resource)
    }

    /// The list without its items, and the name of the field that has them.
    fn envelope(&self, listing: &Listing) -> (Map<String, Value>, &'static str) {
        self.form.envelope(self.shown(), listing)
    }

    fn item(&self, stored: &Stored) -> Value {
        let mut object = answer::value(&self.resource, stored);
        if let Some(view) = &self.view {
            view.strategy.served(&mut object);
            answer::stamp(view, &mut object);
        }
        self.form.item(self.shown(), object)
    }

    /// The list as its caller reads it.
    pub fn body(self, listing: Listing) -> Body {
        let size: usize = listing.items.iter().map(|item| item.body.len()).sum();
        if heavy::is_heavy(size) { self.in_pieces(listing) } else { self.at_once(&listing).into() }
    }

    fn at_once(&self, listing: &Listing) -> Bytes {
        let (mut envelope, field) = self.envelope(listing);
        let items: Vec<Value> = listing.items.iter().map(|item| self.item(item)).collect();
        // As Go writes a list that was never filled.
        let items = if items.is_empty() && !self.form.is_object() { Value::Null } else { items.into() };
        let items = if field == "rows" && items.is_null() { Value::Array(Vec::new()) } else { items };
        envelope.insert(field.to_owned(), items);
        super::respond::encode(&Value::Object(envelope), self.form.chosen)
    }

    fn in_pieces(self, listing: Listing) -> Body {
        let (envelope, field) = self.envelope(&listing);
        let mut writer = Writer::new(envelope, field, self.form.chosen);
        let items = listing.items;
        let length = writer.measure(items.iter().map(|item| self.item(item)));
        let pieces = Pieces { shape: self, writer, items: items.into_iter(), state: State::Start };
        match length {
            Some(length) => Body::made(length, pieces),
            None => Body::made_of_any_length(pieces),
        }
    }
}

enum State {
    Start,
    Items,
    End,
}

/// The rest of a list.
struct Pieces {
    shape: ListShape,
    writer: Writer,
    items: std::vec::IntoIter<Arc<Stored>>,
    state: State,
}

impl Iterator for Pieces {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let mut bytes = Vec::new();
        match self.state {
            State::Start => {
                self.state = State::Items;
                bytes.append(&mut self.writer.start);
            }
            State::Items => {}
            State::End => return None,
        }
        while bytes.len() < PIECE {
            match self.items.next() {
                Some(item) => self.writer.item(&mut bytes, &self.shape.item(&item)),
                None => {
                    self.state = State::End;
                    bytes.append(&mut self.writer.end);
                    break;
                }
            }
        }
        Some(bytes.into())
    }
}

/// Writes a list in one of the forms, item by item.
struct Writer {
    start: Vec<u8>,
    end: Vec<u8>,
    begun: bool,
    text: Text,
}

enum Text {
    Yaml,
    Json,
    Pretty,
    Protobuf(ListMessage),
}

impl Writer {
    fn new(mut envelope: Map<String, Value>, field: &'static str, chosen: Chosen) -> Self {
        if chosen.media == Media::Protobuf
            && let Some(message) = ListMessage::new(&envelope, field)
        {
            return Self { start: Vec::new(), end: Vec::new(), begun: false, text: Text::Protobuf(message) };
        }
        // The place of the items in the order of the fields.
        envelope.insert(field.to_owned(), Value::Null);
        let after = envelope.iter().skip_while(|(name, _)| *name != field).skip(1);
        let after: Map<String, Value> = after.map(|(name, value)| (name.clone(), value.clone())).collect();
        envelope.retain(|name, _| name != field && !after.contains_key(name));
        let (start, end, text) = match (chosen.media, chosen.pretty) {
            (Media::Yaml, _) => {
                let start = format!("{}{field}:\n", codec::yaml::encode(&Value::Object(envelope)));
                let end = if after.is_empty() { String::new() } else { codec::yaml::encode(&Value::Object(after)) };
                (start.into_bytes(), end.into_bytes(), Text::Yaml)
            }
            (_, true) => {
                let mut start = codec::json::encode_pretty(&Value::Object(envelope));
                start.truncate(start.len().saturating_sub(b"\n}".len()));
                start.extend_from_slice(format!(",\n  \"{field}\": [\n    ").as_bytes());
                let mut end = b"\n  ]".to_vec();
                end.extend(tail(&after, codec::json::encode_pretty(&Value::Object(after.clone())), b"\n}"));
                (start, end, Text::Pretty)
            }
            _ => {
                let mut start = Vec::new();
                codec::json::write(&mut start, &Value::Object(envelope));
                start.pop();
                start.extend_from_slice(format!(",\"{field}\":[").as_bytes());
                let mut end = b"]".to_vec();
                end.extend(tail(&after, codec::json::encode(&Value::Object(after.clone())), b"}\n"));
                (start, end, Text::Json)
            }
        };
        Self { start, end, begun: false, text }
    }

    /// How long the list will be, where that has to be known before it is written.
    fn measure(&mut self, items: impl Iterator<Item = Value>) -> Option<u64> {
        let Text::Protobuf(message) = &self.text else { return None };
        let length = items.fold(0_u64, |sum, item| sum + message.item(&item).len() as u64);
        (self.start, self.end) = message.around(length);
        Some(length + (self.start.len() + self.end.len()) as u64)
    }

    fn item(&mut self, to: &mut Vec<u8>, item: &Value) {
        let begun = std::mem::replace(&mut self.begun, true);
        match &self.text {
            Text::Yaml => to.extend_from_slice(codec::yaml::encode(&Value::Array(vec![item.clone()])).as_bytes()),
            Text::Json => {
                to.extend_from_slice(if begun { b"," } else { b"" });
                codec::json::write(to, item);
            }
            Text::Pretty => {
                to.extend_from_slice(if begun { b",\n    " } else { b"" });
                // A line's end inside of a text is escaped, so that all of them belong to the form.
                let text = codec::json::encode_pretty(item);
                for (number, line) in text.split(|byte| *byte == b'\n').enumerate() {
                    to.extend_from_slice(if number > 0 { b"\n    " } else { b"" });
                    to.extend_from_slice(line);
                }
            }
            Text::Protobuf(message) => to.extend_from_slice(&message.item(item)),
        }
    }
}

/// The fields behind the items, from their comma on; without any, the end of the list.
fn tail(after: &Map<String, Value>, encoded: Vec<u8>, end: &[u8]) -> Vec<u8> {
    if after.is_empty() {
        return end.to_vec();
    }
    let mut tail = encoded;
    if let Some(brace) = tail.first_mut() {
        *brace = b',';
    }
    tail
}

#[cfg(test)]
mod tests;
