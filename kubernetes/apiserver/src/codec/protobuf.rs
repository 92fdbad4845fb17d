//! Decodes and encodes `application/vnd.kubernetes.protobuf`, for built-in kinds.
//!
//! An object is encoded as a prefix of four bytes and a `runtime.Unknown`, which contains its kind and its
//! message. A decoded value equals Go's JSON of the same object, without nulls. Every length is checked, depth
//! is bounded as in JSON, unknown fields are skipped. In a watch, each event is a frame: its length in four
//! bytes, and a `WatchEvent` without the prefix, whose object has it. Not done: kinds of other versions than
//! the stable ones, custom resources (which have no messages).

mod list;
mod message_table;
mod read;
mod well_known;
mod wire;
mod write;

#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

pub use self::list::ListMessage;
use self::{message_table::MessageTable, wire::WireReader};
use crate::api::GroupVersion;

/// The prefix of every object.
const MAGIC: &[u8] = b"k8s\0";

/// A decode error, with the message of Go's generated code or of kube-apiserver.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtobufDecodeError {
    #[error("empty data")]
    Empty,
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    Magic,
    #[error("empty body")]
    EmptyBody,
    #[error("unexpected EOF")]
    End,
    #[error("proto: integer overflow")]
    Overflow,
    #[error("proto: negative length found during unmarshaling")]
    Length,
    #[error("proto: illegal wireType {0}")]
    WireType(u64),
    #[error("proto: illegal tag {0} (wire type {1})")]
    Tag(i64, u64),
    #[error("proto: wiretype end group for non-group")]
    EndGroup,
    #[error("proto: wrong wireType = {found} for field {field}")]
    Mismatch { found: u64, field: String },
    #[error("exceeded max depth")]
    Depth,
    #[error("Time.MarshalJSON: year outside of range [0,9999]")]
    Time,
    #[error(transparent)]
    Json(#[from] super::json::JsonDecodeError),
    #[error("no kind {} is registered for version {} in scheme \"pkg/api/legacyscheme/scheme.go:30\"", crate::api::go_format::quote(.kind), crate::api::go_format::quote(.version))]
    Kind { kind: String, version: String },
}

/// The error of a body that cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtobufRefusal {
    pub error: ProtobufDecodeError,
    /// The `apiVersion` and `kind` of the object, if they could be decoded.
    pub kind: Option<(String, String)>,
}

/// Decodes an object. One without a kind is of the expected kind.
///
/// # Errors
/// If it cannot be decoded, or its kind has no message here.
pub fn decode(bytes: &[u8], gv: &GroupVersion, kind: &str) -> Result<Value, ProtobufRefusal> {
    let unknown = RuntimeUnknown::read(bytes).map_err(|error| ProtobufRefusal { error, kind: None })?;
    let version = Some(unknown.version).filter(|text| !text.is_empty()).unwrap_or_else(|| gv.to_string());
    let kind = Some(unknown.kind).filter(|text| !text.is_empty()).unwrap_or_else(|| kind.to_owned());
    let read = || {
        let unregistered = || ProtobufDecodeError::Kind { kind: kind.clone(), version: version.clone() };
        let message = MessageTable::get().kind(&version, &kind).ok_or_else(unregistered)?;
        let mut object = Map::new();
        read::fill(&mut object, message, unknown.raw, 1)?;
        Ok(object)
    };
    match read() {
        Ok(mut object) => {
            object.insert("apiVersion".into(), version.into());
            object.insert("kind".into(), kind.into());
            Ok(Value::Object(object))
        }
        Err(error) => Err(ProtobufRefusal { error, kind: Some((version, kind)) }),
    }
}

/// Whether a kind has a message here.
pub fn has_message(gv: &GroupVersion, kind: &str) -> bool {
    MessageTable::get().kind(&gv.to_string(), kind).is_some()
}

/// Encodes an object or a list with the same bytes as kube-apiserver. `None` if its kind has no message here.
///
/// The discovery documents at `/api` and `/api/v1` are the only objects without an `apiVersion`.
pub fn encode(object: &Value) -> Option<Vec<u8>> {
    let text = |name| object.get(name).and_then(Value::as_str);
    let kind = text("kind")?;
    let version = text("apiVersion").or_else(|| ["APIVersions", "APIResourceList"].contains(&kind).then_some(""))?;
    let message = MessageTable::get().kind(if version.is_empty() { "v1" } else { version }, kind)?;
    let mut raw = Vec::with_capacity(256);
    write::message(&mut raw, message, object.as_object()?);
    let mut meta = Vec::with_capacity(version.len() + kind.len() + 4);
    wire::put_bytes(&mut meta, 1, version.as_bytes());
    wire::put_bytes(&mut meta, 2, kind.as_bytes());
    let mut bytes = Vec::with_capacity(raw.len() + meta.len() + 24);
    bytes.extend_from_slice(MAGIC);
    wire::put_bytes(&mut bytes, 1, &meta);
    wire::put_bytes(&mut bytes, 2, &raw);
    wire::put_bytes(&mut bytes, 3, b"");
    wire::put_bytes(&mut bytes, 4, b"");
    Some(bytes)
}

/// Encodes a watch event as a frame. `None` if the object's kind has no message here.
pub fn encode_event(event: &str, object: &Value) -> Option<Vec<u8>> {
    let object = encode(object)?;
    let mut raw = Vec::with_capacity(object.len() + 8);
    wire::put_bytes(&mut raw, 1, &object);
    let mut message = Vec::with_capacity(raw.len() + event.len() + 16);
    wire::put_bytes(&mut message, 1, event.as_bytes());
    wire::put_bytes(&mut message, 2, &raw);
    let mut frame = u32::try_from(message.len()).ok()?.to_be_bytes().to_vec();
    frame.append(&mut message);
    Some(frame)
}

#[derive(Default)]
struct RuntimeUnknown<'b> {
    version: String,
    kind: String,
    raw: &'b [u8],
}

impl<'b> RuntimeUnknown<'b> {
    fn read(bytes: &'b [u8]) -> Result<Self, ProtobufDecodeError> {
        if bytes.is_empty() {
            return Err(ProtobufDecodeError::Empty);
        }
        let body = bytes.strip_prefix(MAGIC).ok_or(ProtobufDecodeError::Magic)?;
        if body.is_empty() {
            return Err(ProtobufDecodeError::EmptyBody);
        }
        let mut unknown = RuntimeUnknown::default();
        let mut reader = WireReader::new(body);
        while let Some((number, wire)) = reader.tag()? {
            match number {
                1 => unknown.type_meta(reader.delimited(wire, "TypeMeta")?)?,
                2 => unknown.raw = reader.delimited(wire, "Raw")?,
                _ => reader.skip(wire)?,
            }
        }
        Ok(unknown)
    }

    fn type_meta(&mut self, bytes: &'b [u8]) -> Result<(), ProtobufDecodeError> {
        let mut reader = WireReader::new(bytes);
        while let Some((number, wire)) = reader.tag()? {
            match number {
                1 => self.version = read::text(reader.delimited(wire, "APIVersion")?),
                2 => self.kind = read::text(reader.delimited(wire, "Kind")?),
                _ => reader.skip(wire)?,
            }
        }
        Ok(())
    }
}
