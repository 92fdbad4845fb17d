//! What a handler answers, before it is written in the form that the caller asked for.

use std::{borrow::Cow, iter::Peekable, sync::Arc, vec};

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use serde_json::Value;

use crate::{crd::versions, http::Body, registry::Resource, store::Stored};

/// An answer.
#[derive(Debug)]
pub enum Answer {
    /// One object, as it is stored.
    Stored(StatusCode, Arc<Stored>),
    /// One object that is not stored in this form: dry runs, subresources, reviews. It has its own `apiVersion` and `kind`.
    Object(StatusCode, Value),
    /// A list of objects.
    List(Listing),
    /// Events until the watch ends.
    Watch(Body),
    /// Something that is no object.
    Text(StatusCode, &'static str, Bytes),
    /// Plain text that goes on until whoever writes it ends.
    Stream(Body),
}

/// A page of a list.
#[derive(Debug)]
pub struct Listing {
    /// The objects.
    pub items: Vec<Arc<Stored>>,
    /// The revision at which they were read.
    pub revision: u64,
    /// Where the next page begins.
    pub continuation: Option<String>,
    /// How many come after this page, where that is known.
    pub remaining: Option<u64>,
}

/// What stands before an object of this resource: `apiVersion` and `kind`, which the store does not keep.
pub fn head(resource: &Resource) -> String {
    format!(r#"{{"kind":"{}","apiVersion":"{}","#, resource.kind, resource.gv)
}

/// A stored object as the resource's version shows it.
pub fn shown<'a>(resource: &Resource, stored: &'a Arc<Stored>) -> Cow<'a, Arc<Stored>> {
    if !versions::is_shown_otherwise(resource, stored) {
        return Cow::Borrowed(stored);
    }
    let mut object = stored.value();
    versions::show(resource, stored.revision, &mut object);
    // Less than what could be stored can be encoded.
    match Stored::of(stored.key.clone(), stored.revision, &object) {
        Ok(shown) => Cow::Owned(Arc::new(shown)),
        Err(_) => Cow::Borrowed(stored),
    }
}

/// An object as JSON.
pub fn object(resource: &Resource, stored: &Arc<Stored>) -> Bytes {
    let stored = &*shown(resource, stored);
    let head = head(resource);
    let mut bytes = BytesMut::with_capacity(head.len() + stored.body.len());
    put_object(&mut bytes, &head, stored);
    bytes.freeze()
}

/// A list as JSON: the bytes of its objects between few of its own. Items of built-in kinds have no `kind` of their own.
pub fn list(resource: &Resource, mut listing: Listing) -> Body {
    if resource.custom.is_some() {
        for item in &mut listing.items {
            if let Cow::Owned(shown) = shown(resource, item) {
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
    let head = if resource.custom.is_some() { head(resource) } else { "{".to_owned() };
    let objects: usize = listing.items.iter().map(|item| head.len() + after_brace(item).len()).sum();
    let commas = listing.items.len().saturating_sub(1);
    let left = start.len() + objects + commas + LIST_END.len();
    let pieces = Pieces { start, head, items: listing.items.into_iter().peekable(), comma: false, left };
    Body::made(left as u64, pieces)
}

const LIST_END: &[u8] = b"]}";
/// What a list is written in: large enough that few are written, small enough to stay in the processor's cache until they are.
const PIECE: usize = 64 << 10;

/// The rest of a list.
struct Pieces {
    /// Empty once it is written.
    start: String,
    /// Before each object.
    head: String,
    items: Peekable<vec::IntoIter<Arc<Stored>>>,
    /// Whether an object was written.
    comma: bool,
    /// Bytes to come.
    left: usize,
}

impl Iterator for Pieces {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        if self.left == 0 {
            return None;
        }
        let mut bytes = BytesMut::with_capacity(self.left.min(PIECE));
        bytes.extend_from_slice(std::mem::take(&mut self.start).as_bytes());
        let room = PIECE.saturating_sub(self.head.len() + LIST_END.len());
        // A larger object is a piece of its own.
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

/// `metadata` of a list. Those of custom resources say `continue` even when there is nothing to continue.
pub fn list_meta(resource: &Resource, listing: &Listing) -> Value {
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

/// One event of a watch, as a line of JSON.
pub fn event(bytes: &mut BytesMut, kind: &str, head: &str, stored: &Stored) {
    put_event(bytes, kind, |bytes| put_object(bytes, head, stored));
}

/// One event of a watch about what is not stored in this form.
pub fn event_value(bytes: &mut BytesMut, kind: &str, object: &Value) {
    put_event(bytes, kind, |bytes| bytes.extend_from_slice(object.to_string().as_bytes()));
}

fn put_event(bytes: &mut BytesMut, kind: &str, put: impl FnOnce(&mut BytesMut)) {
    bytes.extend_from_slice(br#"{"type":""#);
    bytes.extend_from_slice(kind.as_bytes());
    bytes.extend_from_slice(br#"","object":"#);
    put(bytes);
    bytes.extend_from_slice(b"}\n");
}

/// `head` replaces the brace that the stored object begins with.
fn put_object(bytes: &mut BytesMut, head: &str, stored: &Stored) {
    bytes.extend_from_slice(head.as_bytes());
    bytes.extend_from_slice(after_brace(stored));
}

fn after_brace(stored: &Stored) -> &[u8] {
    stored.body.get(1..).unwrap_or(b"}")
}

/// A stored object as a whole value.
pub fn value(resource: &Resource, stored: &Stored) -> Value {
    let mut value = stored.value();
    if versions::is_shown_otherwise(resource, stored) {
        versions::show(resource, stored.revision, &mut value);
    }
    stamp(resource, &mut value);
    value
}

/// Says in an object what it is.
pub fn stamp(resource: &Resource, object: &mut Value) {
    if let Some(object) = object.as_object_mut() {
        object.insert("apiVersion".into(), resource.gv.to_string().into());
        object.insert("kind".into(), (*resource.kind).into());
    }
}

/// An object to be shown: as it is stored, or made for this answer.
#[derive(Debug)]
pub enum Shown<'a> {
    /// As it is stored.
    Stored(&'a Arc<Stored>),
    /// With its own `apiVersion` and `kind`.
    Value(Value),
}

#[cfg(test)]
mod tests;
