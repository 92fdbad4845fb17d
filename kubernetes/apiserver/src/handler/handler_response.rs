//! The result of a handler, before it is encoded for the caller.

use std::{borrow::Cow, iter::Peekable, sync::Arc, vec};

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use serde_json::Value;

use crate::{crd::versions, http::Body, registry::ServedResource, store::Stored};

#[derive(Debug)]
pub enum HandlerResponse {
    Stored(StatusCode, Arc<Stored>),
    /// One object that is not stored in this form: dry runs, subresources, reviews. It has its own `apiVersion`
    /// and `kind`.
    Object(StatusCode, Value),
    List(ListPage),
    /// The events of a watch.
    Watch(Body),
    /// A response that is not an object.
    Text(StatusCode, &'static str, Bytes),
    /// Plain text that is streamed until its writer ends.
    Stream(Body),
}

/// A page of a list.
#[derive(Debug)]
pub struct ListPage {
    pub items: Vec<Arc<Stored>>,
    /// The revision at which the objects were read.
    pub revision: u64,
    /// The continue token of the next page.
    pub continuation: Option<String>,
    /// The number of items after this page, if known.
    pub remaining: Option<u64>,
}

/// The `apiVersion` and `kind` of an object as the start of its JSON; the store does not keep them.
pub fn type_meta_prefix(resource: &ServedResource) -> String {
    format!(r#"{{"kind":"{}","apiVersion":"{}","#, resource.kind, resource.gv)
}

/// A stored object in the version of the resource.
pub fn convert_stored<'a>(resource: &ServedResource, stored: &'a Arc<Stored>) -> Cow<'a, Arc<Stored>> {
    if !versions::differs_from_stored(resource, stored) {
        return Cow::Borrowed(stored);
    }
    let mut object = stored.value();
    versions::convert_to_served(resource, stored.revision, &mut object);
    // The result is smaller than the stored object, so encoding succeeds.
    match Stored::from_value(stored.key.clone(), stored.revision, &object) {
        Ok(shown) => Cow::Owned(Arc::new(shown)),
        Err(_) => Cow::Borrowed(stored),
    }
}

pub fn object(resource: &ServedResource, stored: &Arc<Stored>) -> Bytes {
    let stored = &*convert_stored(resource, stored);
    let head = type_meta_prefix(resource);
    let mut bytes = BytesMut::with_capacity(head.len() + stored.body.len());
    put_object(&mut bytes, &head, stored);
    bytes.freeze()
}

/// A list as JSON: the stored bytes of its objects within a small envelope. Items of built-in kinds have no
/// `kind` of their own.
pub fn list(resource: &ServedResource, mut listing: ListPage) -> Body {
    if resource.custom.is_some() {
        for item in &mut listing.items {
            if let Cow::Owned(shown) = convert_stored(resource, item) {
                *item = shown;
            }
        }
    }
    let start = format!(
        r#"{{"kind":"{}","apiVersion":"{}","metadata":{},"items":["#,
        resource.list_kind,
        resource.gv,
        list_meta(resource, &listing)
    );
    let head = if resource.custom.is_some() { type_meta_prefix(resource) } else { "{".to_owned() };
    let objects: usize = listing.items.iter().map(|item| head.len() + after_brace(item).len()).sum();
    let commas = listing.items.len().saturating_sub(1);
    let left = start.len() + objects + commas + LIST_END.len();
    let pieces = JsonListChunks { start, head, items: listing.items.into_iter().peekable(), comma: false, left };
    Body::lazy_with_length(left as u64, pieces)
}

const LIST_END: &[u8] = b"]}";
/// The size of the chunks of a list: large enough for few writes, small enough to stay in the processor's cache
/// until written.
const LIST_CHUNK_BYTES: usize = 64 << 10;

/// The remaining chunks of a list.
struct JsonListChunks {
    /// The envelope before the items; empty once it is written.
    start: String,
    head: String,
    items: Peekable<vec::IntoIter<Arc<Stored>>>,
    /// Whether the next item needs a comma.
    comma: bool,
    /// The number of remaining bytes.
    left: usize,
}

impl Iterator for JsonListChunks {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        if self.left == 0 {
            return None;
        }
        let mut bytes = BytesMut::with_capacity(self.left.min(LIST_CHUNK_BYTES));
        bytes.extend_from_slice(std::mem::take(&mut self.start).as_bytes());
        let room = LIST_CHUNK_BYTES.saturating_sub(self.head.len() + LIST_END.len());
        // A larger object is a chunk of its own.
        while let Some(item) = self.items.next_if(|item| bytes.is_empty() || bytes.len() + item.body.len() < room) {
            if std::mem::replace(&mut self.comma, true) {
                bytes.extend_from_slice(b",");
            }
            put_object(&mut bytes, &self.head, &item);
        }
        if self.items.peek().is_none() {
            bytes.extend_from_slice(LIST_END);
        }
        self.left = self.left.saturating_sub(bytes.len());
        Some(bytes.freeze())
    }
}

/// The `metadata` of a list. Lists of custom resources have `continue` even when there is no next page.
pub fn list_meta(resource: &ServedResource, listing: &ListPage) -> Value {
    let mut meta = serde_json::Map::new();
    meta.insert("resourceVersion".into(), listing.revision.to_string().into());
    match &listing.continuation {
        Some(token) => drop(meta.insert("continue".into(), token.as_str().into())),
        None if resource.custom.is_some() => drop(meta.insert("continue".into(), "".into())),
        None => {}
    }
    if let Some(remaining) = listing.remaining {
        meta.insert("remainingItemCount".into(), remaining.into());
    }
    meta.into()
}

/// Writes a watch event as a line of JSON.
pub fn write_event(bytes: &mut BytesMut, kind: &str, head: &str, stored: &Stored) {
    put_event(bytes, kind, |bytes| put_object(bytes, head, stored));
}

/// Writes a watch event about an object that is not stored in this form.
pub fn write_event_value(bytes: &mut BytesMut, kind: &str, object: &Value) {
    put_event(bytes, kind, |bytes| bytes.extend_from_slice(object.to_string().as_bytes()));
}

fn put_event(bytes: &mut BytesMut, kind: &str, put: impl FnOnce(&mut BytesMut)) {
    bytes.extend_from_slice(br#"{"type":""#);
    bytes.extend_from_slice(kind.as_bytes());
    bytes.extend_from_slice(br#"","object":"#);
    put(bytes);
    bytes.extend_from_slice(b"}\n");
}

/// Writes a stored object; `head` replaces its opening brace.
fn put_object(bytes: &mut BytesMut, head: &str, stored: &Stored) {
    bytes.extend_from_slice(head.as_bytes());
    bytes.extend_from_slice(after_brace(stored));
}

fn after_brace(stored: &Stored) -> &[u8] {
    stored.body.get(1..).unwrap_or(b"}")
}

/// A stored object as a value with its `apiVersion` and `kind`.
pub fn value(resource: &ServedResource, stored: &Stored) -> Value {
    let mut value = stored.value();
    if versions::differs_from_stored(resource, stored) {
        versions::convert_to_served(resource, stored.revision, &mut value);
    }
    set_type_meta(resource, &mut value);
    value
}

/// Sets the `apiVersion` and `kind` of an object.
pub fn set_type_meta(resource: &ServedResource, object: &mut Value) {
    if let Some(object) = object.as_object_mut() {
        object.insert("apiVersion".into(), resource.gv.to_string().into());
        object.insert("kind".into(), (*resource.kind).into());
    }
}

/// An object to encode: a stored one, or one made for this response.
#[derive(Debug)]
pub enum ResponseObject<'a> {
    Stored(&'a Arc<Stored>),
    /// With its own `apiVersion` and `kind`.
    Value(Value),
}

#[cfg(test)]
mod tests;
