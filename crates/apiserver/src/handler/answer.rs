//! What a handler answers, before it is written in the form that the caller asked for.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use serde_json::Value;

use crate::{http::Body, registry::Resource, store::Stored};

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

/// An object as JSON.
pub fn object(resource: &Resource, stored: &Stored) -> Bytes {
    let head = head(resource);
    let mut bytes = BytesMut::with_capacity(head.len() + stored.body.len());
    put_object(&mut bytes, &head, stored);
    bytes.freeze()
}

/// A list as JSON: the bytes of its objects between few of its own. Items of built-in kinds have no `kind` of their own.
pub fn list(resource: &Resource, listing: &Listing) -> Bytes {
    let item_head = if resource.custom.is_some() { head(resource) } else { "{".to_owned() };
    let size: usize = listing.items.iter().map(|item| item.body.len() + item_head.len() + 1).sum();
    let mut bytes = BytesMut::with_capacity(size + 256);
    let start = format!(
        r#"{{"kind":"{}","apiVersion":"{}","metadata":{},"items":["#,
        resource.list_kind,
        resource.gv,
        list_meta(resource, listing)
    );
    bytes.extend_from_slice(start.as_bytes());
    for (index, item) in listing.items.iter().enumerate() {
        if index > 0 {
            bytes.extend_from_slice(b",");
        }
        put_object(&mut bytes, &item_head, item);
    }
    bytes.extend_from_slice(b"]}");
    bytes.freeze()
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
    bytes.extend_from_slice(br#"{"type":""#);
    bytes.extend_from_slice(kind.as_bytes());
    bytes.extend_from_slice(br#"","object":"#);
    put_object(bytes, head, stored);
    bytes.extend_from_slice(b"}\n");
}

/// One event of a watch about what is not stored in this form.
pub fn event_value(bytes: &mut BytesMut, kind: &str, object: &Value) {
    bytes.extend_from_slice(br#"{"type":""#);
    bytes.extend_from_slice(kind.as_bytes());
    bytes.extend_from_slice(br#"","object":"#);
    bytes.extend_from_slice(object.to_string().as_bytes());
    bytes.extend_from_slice(b"}\n");
}

/// `head` replaces the brace that the stored object begins with.
fn put_object(bytes: &mut BytesMut, head: &str, stored: &Stored) {
    bytes.extend_from_slice(head.as_bytes());
    bytes.extend_from_slice(stored.body.get(1..).unwrap_or(b"}"));
}

/// A stored object as a whole value.
pub fn value(resource: &Resource, stored: &Stored) -> Value {
    let mut value = stored.value();
    if let Some(object) = value.as_object_mut() {
        object.insert("apiVersion".into(), resource.gv.to_string().into());
        object.insert("kind".into(), (*resource.kind).into());
    }
    value
}

/// An object to be shown: as it is stored, or made for this answer.
#[derive(Debug)]
pub enum Shown<'a> {
    /// As it is stored.
    Stored(&'a Stored),
    /// With its own `apiVersion` and `kind`.
    Value(Value),
}
