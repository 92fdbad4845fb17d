//! Encodes lists in forms other than the stored JSON: YAML, protobuf, indented JSON, Tables, metadata only.
//!
//! Guaranteed: a large list is never in memory as a whole. Its objects are decoded, transformed and encoded a
//! few at a time, while the caller reads. Small lists are encoded at once, so that their length is known.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value};

use super::{
    call::ResourceRequest,
    handler_response::{self, ListPage},
    heavy_work,
    transform::ResponseTransform,
};
use crate::{
    codec::{self, MediaType, accept::MediaTypeOptions, protobuf::ListMessage},
    http::Body,
    registry::ServedResource,
    store::Stored,
};

/// The size of the chunks of a large list.
const LIST_CHUNK_BYTES: usize = 64 << 10;

/// How the objects of a list are encoded.
#[derive(Clone, Debug)]
pub struct ListShape {
    resource: Arc<ServedResource>,
    /// The resource as served to the caller, if it is another one.
    view: Option<Arc<ServedResource>>,
    form: ResponseTransform,
}

impl ListShape {
    /// The shape of the response to a request.
    pub fn new(on: ResourceRequest<'_>, form: &ResponseTransform) -> Self {
        Self { resource: Arc::clone(on.resource), view: on.view.cloned(), form: *form }
    }

    fn served_resource(&self) -> &ServedResource {
        self.view.as_ref().unwrap_or(&self.resource)
    }

    /// The list without its items, and the name of their field.
    fn envelope(&self, listing: &ListPage) -> (Map<String, Value>, &'static str) {
        self.form.envelope(self.served_resource(), listing)
    }

    fn item(&self, stored: &Stored) -> Value {
        let mut object = handler_response::value(&self.resource, stored);
        if let Some(view) = &self.view {
            view.strategy.convert_to_served(&mut object);
            handler_response::set_type_meta(view, &mut object);
        }
        self.form.transform_item(self.served_resource(), object)
    }

    /// The encoded list.
    pub fn body(self, listing: ListPage) -> Body {
        let size: usize = listing.items.iter().map(|item| item.body.len()).sum();
        if heavy_work::is_heavy(size) { self.encode_in_chunks(listing) } else { self.encode_at_once(&listing).into() }
    }

    fn encode_at_once(&self, listing: &ListPage) -> Bytes {
        let (mut envelope, field) = self.envelope(listing);
        let items: Vec<Value> = listing.items.iter().map(|item| self.item(item)).collect();
        // A nil slice in Go.
        let items = if items.is_empty() && !self.form.is_object() { Value::Null } else { items.into() };
        let items = if field == "rows" && items.is_null() { Value::Array(Vec::new()) } else { items };
        envelope.insert(field.to_owned(), items);
        super::respond::encode(&Value::Object(envelope), self.form.chosen)
    }

    fn encode_in_chunks(self, listing: ListPage) -> Body {
        let (envelope, field) = self.envelope(&listing);
        let mut writer = ListWriter::new(envelope, field, self.form.chosen);
        let items = listing.items;
        let length = writer.measure(items.iter().map(|item| self.item(item)));
        let pieces = EncodedListChunks { shape: self, writer, items: items.into_iter(), state: EncodingState::Start };
        match length {
            Some(length) => Body::lazy_with_length(length, pieces),
            None => Body::lazy(pieces),
        }
    }
}

enum EncodingState {
    Start,
    Items,
    End,
}

/// The remaining chunks of a list.
struct EncodedListChunks {
    shape: ListShape,
    writer: ListWriter,
    items: std::vec::IntoIter<Arc<Stored>>,
    state: EncodingState,
}

impl Iterator for EncodedListChunks {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let mut bytes = Vec::new();
        match self.state {
            EncodingState::Start => {
                self.state = EncodingState::Items;
                bytes.append(&mut self.writer.start);
            }
            EncodingState::Items => {}
            EncodingState::End => return None,
        }
        while bytes.len() < LIST_CHUNK_BYTES {
            match self.items.next() {
                Some(item) => self.writer.item(&mut bytes, &self.shape.item(&item)),
                None => {
                    self.state = EncodingState::End;
                    bytes.append(&mut self.writer.end);
                    break;
                }
            }
        }
        Some(bytes.into())
    }
}

/// Encodes a list, item by item.
struct ListWriter {
    start: Vec<u8>,
    end: Vec<u8>,
    begun: bool,
    text: ListEncoding,
}

enum ListEncoding {
    Yaml,
    Json,
    Pretty,
    Protobuf(ListMessage),
}

impl ListWriter {
    fn new(mut envelope: Map<String, Value>, field: &'static str, chosen: MediaTypeOptions) -> Self {
        if chosen.media == MediaType::Protobuf
            && let Some(message) = ListMessage::new(&envelope, field)
        {
            return Self { start: Vec::new(), end: Vec::new(), begun: false, text: ListEncoding::Protobuf(message) };
        }
        // Reserves the position of the items among the fields.
        envelope.insert(field.to_owned(), Value::Null);
        let after = envelope.iter().skip_while(|(name, _)| *name != field).skip(1);
        let after: Map<String, Value> = after.map(|(name, value)| (name.clone(), value.clone())).collect();
        envelope.retain(|name, _| name != field && !after.contains_key(name));
        let (start, end, text) = match (chosen.media, chosen.pretty) {
            (MediaType::Yaml, _) => {
                let start = format!("{}{field}:\n", codec::yaml::encode(&Value::Object(envelope)));
                let end = if after.is_empty() { String::new() } else { codec::yaml::encode(&Value::Object(after)) };
                (start.into_bytes(), end.into_bytes(), ListEncoding::Yaml)
            }
            (_, true) => {
                let mut start = codec::json::encode_pretty(&Value::Object(envelope));
                start.truncate(start.len().saturating_sub(b"\n}".len()));
                start.extend_from_slice(format!(",\n  \"{field}\": [\n    ").as_bytes());
                let mut end = b"\n  ]".to_vec();
                end.extend(encode_trailing_fields(
                    &after,
                    codec::json::encode_pretty(&Value::Object(after.clone())),
                    b"\n}",
                ));
                (start, end, ListEncoding::Pretty)
            }
            _ => {
                let mut start = Vec::new();
                codec::json::write(&mut start, &Value::Object(envelope));
                start.pop();
                start.extend_from_slice(format!(",\"{field}\":[").as_bytes());
                let mut end = b"]".to_vec();
                end.extend(encode_trailing_fields(&after, codec::json::encode(&Value::Object(after.clone())), b"}\n"));
                (start, end, ListEncoding::Json)
            }
        };
        Self { start, end, begun: false, text }
    }

    /// The length of the list, where it has to be known before it is written.
    fn measure(&mut self, items: impl Iterator<Item = Value>) -> Option<u64> {
        let ListEncoding::Protobuf(message) = &self.text else { return None };
        let length = items.fold(0_u64, |sum, item| sum + message.item(&item).len() as u64);
        (self.start, self.end) = message.encode_envelope(length);
        Some(length + (self.start.len() + self.end.len()) as u64)
    }

    fn item(&mut self, to: &mut Vec<u8>, item: &Value) {
        let begun = std::mem::replace(&mut self.begun, true);
        match &self.text {
            ListEncoding::Yaml => {
                to.extend_from_slice(codec::yaml::encode(&Value::Array(vec![item.clone()])).as_bytes())
            }
            ListEncoding::Json => {
                to.extend_from_slice(if begun { b"," } else { b"" });
                codec::json::write(to, item);
            }
            ListEncoding::Pretty => {
                to.extend_from_slice(if begun { b",\n    " } else { b"" });
                // Line ends inside of strings are escaped, so that all others are part of the formatting.
                let text = codec::json::encode_pretty(item);
                for (number, line) in text.split(|byte| *byte == b'\n').enumerate() {
                    to.extend_from_slice(if number > 0 { b"\n    " } else { b"" });
                    to.extend_from_slice(line);
                }
            }
            ListEncoding::Protobuf(message) => to.extend_from_slice(&message.item(item)),
        }
    }
}

/// The fields after the items, with their leading comma; without any, the end of the list.
fn encode_trailing_fields(after: &Map<String, Value>, encoded: Vec<u8>, end: &[u8]) -> Vec<u8> {
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
