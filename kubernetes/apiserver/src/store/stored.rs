//! A stored object: encoded JSON, with the most frequently used metadata beside it.

use std::{fmt, mem::size_of, sync::Arc, time::Instant};

use bytes::Bytes;
use serde_json::{Map, Value};

use super::{WriteError, tree::NamespacedName};
use crate::{
    api::{ObjectKey, meta::MetaAccessor},
    codec::json,
};

/// The deepest nesting that `serde_json` decodes: deeper objects are refused, so that a stored object can
/// always be decoded.
pub const MAX_NESTING_DEPTH: usize = 127;

/// The largest body. Requests are far smaller; the bound keeps lengths in files within 32 bits.
pub const MAX_OBJECT_BYTES: usize = 64 << 20;

/// The size of an `Arc` beside its content.
const ARC_OVERHEAD_BYTES: usize = 2 * size_of::<usize>();

/// One version of one object. It is immutable.
#[derive(Clone)]
pub struct Stored {
    pub key: ObjectKey,
    /// The revision of the write: `metadata.resourceVersion`.
    pub revision: u64,
    /// `metadata.uid`; empty if absent.
    pub uid: Arc<str>,
    /// `metadata.labels`, sorted by key.
    pub labels: Box<[(Arc<str>, Arc<str>)]>,
    /// JSON without `apiVersion` and `kind`, with `metadata.resourceVersion`. It is never an empty object.
    pub body: Bytes,
    pub owners: Box<[Arc<str>]>,
    pub deleting: bool,
    /// When this version became visible in this process.
    pub committed: Instant,
    /// The offset of the revision's digits in the body.
    version_at: usize,
}

/// An object to be written: encoded except for its revision, which the store assigns.
#[derive(Clone)]
pub struct EncodedObject {
    bytes: Vec<u8>,
    version_at: usize,
    uid: Arc<str>,
    labels: Box<[(Arc<str>, Arc<str>)]>,
    owners: Box<[Arc<str>]>,
    deleting: bool,
}

impl Stored {
    /// Encodes an object as it would be stored at a revision.
    pub fn from_value(key: ObjectKey, revision: u64, object: &Value) -> Result<Self, WriteError> {
        Ok(EncodedObject::from_value(object)?.into_stored(key, revision))
    }

    /// Decodes the object, without `apiVersion` and `kind`. Decoding cannot fail, since the body was encoded
    /// here.
    pub fn value(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    pub fn label(&self, key: &str) -> Option<&str> {
        let at = self.labels.binary_search_by(|(known, _)| (**known).cmp(key)).ok()?;
        self.labels.get(at).map(|(_, value)| &**value)
    }

    /// The sort key in a collection.
    pub(super) fn namespaced_name(&self) -> NamespacedName<'_> {
        NamespacedName::from_key(&self.key)
    }

    /// The memory of the object, including names although other versions share them.
    pub(super) fn memory_size(&self) -> usize {
        let label = |(key, value): &(Arc<str>, Arc<str>)| {
            size_of::<(Arc<str>, Arc<str>)>() + 2 * ARC_OVERHEAD_BYTES + key.len() + value.len()
        };
        let labels: usize = self.labels.iter().map(label).sum();
        let owners: usize = self.owners.iter().map(|uid| size_of::<Arc<str>>() + ARC_OVERHEAD_BYTES + uid.len()).sum();
        let names = self.key.namespace.len() + self.key.name.len() + self.uid.len() + 3 * ARC_OVERHEAD_BYTES;
        size_of::<Self>() + ARC_OVERHEAD_BYTES + self.body.len() + labels + owners + names
    }

    /// The body before and after the digits of the revision.
    fn split_at_revision(&self) -> Option<(&[u8], &[u8])> {
        let (head, rest) = self.body.split_at_checked(self.version_at)?;
        Some((head, rest.get(digits(self.revision)..)?))
    }
}

/// Omits the body: it may be a Secret.
impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, revision, .. } = self;
        let namespace = &key.namespace;
        let name = &key.name;
        write!(f, "Stored({} {namespace}/{name} at {revision}, {} bytes)", key.resource, self.body.len())
    }
}

/// Omits the bytes: they may be a Secret.
impl fmt::Debug for EncodedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Encoded({} bytes)", self.bytes.len())
    }
}

impl EncodedObject {
    /// Encodes an object. Any other value counts as an empty object.
    pub fn from_value(object: &Value) -> Result<Self, WriteError> {
        if is_deeper(object, MAX_NESTING_DEPTH) {
            return Err(WriteError::TooDeep);
        }
        let mut bytes = Vec::with_capacity(1024);
        let version_at = encode(object, &mut bytes).map_err(Arc::new)?;
        if bytes.len() > MAX_OBJECT_BYTES {
            return Err(WriteError::TooLarge(bytes.len()));
        }
        let mut labels: Vec<_> = object.labels().map(|(key, value)| (key.into(), value.into())).collect();
        labels.sort_unstable();
        let uid_of = |owner: &Value| owner.get("uid").and_then(Value::as_str).map(Arc::from);
        Ok(Self {
            bytes,
            version_at,
            uid: object.uid().into(),
            labels: labels.into(),
            owners: object.owners().iter().filter_map(uid_of).collect(),
            deleting: object.is_deleting(),
        })
    }

    /// The encoded length, without the revision.
    pub fn encoded_size(&self) -> usize {
        self.bytes.len()
    }

    /// The object of a stored version, for a new revision.
    pub(super) fn from_stored(stored: &Stored) -> Self {
        let (head, tail) = stored.split_at_revision().unwrap_or_default();
        Self {
            bytes: [head, tail].concat(),
            version_at: stored.version_at,
            uid: Arc::clone(&stored.uid),
            labels: stored.labels.clone(),
            owners: stored.owners.clone(),
            deleting: stored.deleting,
        }
    }

    /// Whether only the revision differs.
    pub(super) fn is_same_as(&self, stored: &Stored) -> bool {
        self.version_at == stored.version_at
            && stored
                .split_at_revision()
                .is_some_and(|around| self.bytes.split_at_checked(self.version_at) == Some(around))
    }

    /// Completes the object with its revision.
    pub(super) fn into_stored(self, key: ObjectKey, revision: u64) -> Stored {
        let mut body = Vec::with_capacity(self.bytes.len() + digits(revision));
        let (head, tail) = self.bytes.split_at_checked(self.version_at).unwrap_or_default();
        body.extend_from_slice(head);
        body.extend_from_slice(revision.to_string().as_bytes());
        body.extend_from_slice(tail);
        Stored {
            key,
            revision,
            uid: self.uid,
            labels: self.labels,
            body: body.into(),
            owners: self.owners,
            deleting: self.deleting,
            committed: Instant::now(),
            version_at: self.version_at,
        }
    }
}

fn digits(number: u64) -> usize {
    number.checked_ilog10().unwrap_or(0) as usize + 1
}

/// Encodes an object, and returns the offset at which the digits of its revision belong.
fn encode(object: &Value, out: &mut Vec<u8>) -> Result<usize, serde_json::Error> {
    let members = object.as_object().into_iter().flatten();
    let members = members.filter(|(name, _)| !matches!(name.as_str(), "apiVersion" | "kind" | "metadata"));
    let (before, after): (Vec<_>, Vec<_>) = members.partition(|(name, _)| name.as_str() < "metadata");
    out.push(b'{');
    for (name, value) in before {
        encode_member(name, value, out)?;
    }
    next_member(out);
    out.extend_from_slice(b"\"metadata\":");
    let version_at = encode_meta(object.get("metadata").and_then(Value::as_object), out)?;
    for (name, value) in after {
        encode_member(name, value, out)?;
    }
    out.push(b'}');
    Ok(version_at)
}

/// Encodes the metadata with an empty revision.
fn encode_meta(meta: Option<&Map<String, Value>>, out: &mut Vec<u8>) -> Result<usize, serde_json::Error> {
    const NAME: &str = "resourceVersion";
    let members = meta.into_iter().flatten().filter(|(name, _)| name.as_str() != NAME);
    let (before, after): (Vec<_>, Vec<_>) = members.partition(|(name, _)| name.as_str() < NAME);
    out.push(b'{');
    for (name, value) in before {
        encode_member(name, value, out)?;
    }
    next_member(out);
    out.extend_from_slice(b"\"resourceVersion\":\"");
    let version_at = out.len();
    out.push(b'"');
    for (name, value) in after {
        encode_member(name, value, out)?;
    }
    out.push(b'}');
    Ok(version_at)
}

fn encode_member(name: &str, value: &Value, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    next_member(out);
    serde_json::to_writer(&mut *out, name)?;
    out.push(b':');
    // Numbers as Go writes them: `1.0` is read back as `1`.
    json::write(out, value);
    Ok(())
}

fn next_member(out: &mut Vec<u8>) {
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
}

/// Whether a value nests deeper than `than`. It stops there, so that its own recursion is bounded.
fn is_deeper(value: &Value, than: usize) -> bool {
    let inside = |value| than == 0 || is_deeper(value, than - 1);
    match value {
        Value::Array(items) => than == 0 || items.iter().any(inside),
        Value::Object(members) => than == 0 || members.values().any(inside),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
