//! Encodes values as messages like Go's generated code: fields sorted by number, everything but absent pointers
//! and empty collections, keys of maps sorted.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value};

use super::{
    message_table::{FieldCardinality, FieldDescriptor, FieldType, MessageDescriptor, MessageTable},
    well_known,
    wire::{put_bytes, put_int, put_tag, put_varint},
};

/// Appends the fields of an object. Its depth was bounded when the value was decoded.
pub(super) fn message(to: &mut Vec<u8>, message: &MessageDescriptor, object: &Map<String, Value>) {
    for field in &message.fields {
        let value = object.get(field.name).filter(|value| !value.is_null());
        match field.label {
            FieldCardinality::One => one(to, field, value, object),
            FieldCardinality::List => {
                for item in value.and_then(Value::as_array).into_iter().flatten() {
                    put_value(to, field.number, field.kind, Some(item));
                }
            }
            FieldCardinality::Map => {
                for (key, value) in value.and_then(Value::as_object).into_iter().flatten() {
                    let mut entry = Vec::new();
                    put_bytes(&mut entry, 1, key.as_bytes());
                    put_value(&mut entry, 2, field.kind, Some(value));
                    put_bytes(to, field.number, &entry);
                }
            }
        }
    }
}

fn one(to: &mut Vec<u8>, field: &FieldDescriptor, value: Option<&Value>, object: &Map<String, Value>) {
    if let (true, FieldType::Message(name)) = (field.inline, field.kind) {
        let mut bytes = Vec::new();
        if let Some(inner) = MessageTable::get().message(name) {
            message(&mut bytes, inner, object);
        }
        put_bytes(to, field.number, &bytes);
    } else if value.is_some() || !(field.pointer || field.kind == FieldType::Bytes) {
        put_value(to, field.number, field.kind, value);
    }
}

pub(super) fn put_value(to: &mut Vec<u8>, number: u32, kind: FieldType, value: Option<&Value>) {
    let FieldType::Message(name) = kind else { return scalar(to, number, kind, value) };
    let mut bytes = Vec::new();
    if !well_known::write(&mut bytes, name, value)
        && let Some(inner) = MessageTable::get().message(name)
    {
        match (value, inner.fields.first()) {
            (Some(Value::Array(items)), Some(field)) if inner.list => {
                items.iter().for_each(|item| put_value(&mut bytes, field.number, field.kind, Some(item)));
            }
            (Some(Value::Object(object)), _) => message(&mut bytes, inner, object),
            _ => message(&mut bytes, inner, &Map::new()),
        }
    }
    put_bytes(to, number, &bytes);
}

/// A scalar; a value of another type counts as zero.
pub(super) fn scalar(to: &mut Vec<u8>, number: u32, kind: FieldType, value: Option<&Value>) {
    let text = value.and_then(Value::as_str).unwrap_or_default();
    match kind {
        FieldType::String | FieldType::Message(_) => put_bytes(to, number, text.as_bytes()),
        FieldType::Bytes => put_bytes(to, number, &STANDARD.decode(text).unwrap_or_default()),
        FieldType::Int32 | FieldType::Int64 => put_int(to, number, value.and_then(Value::as_i64).unwrap_or(0)),
        FieldType::Bool => {
            put_tag(to, number, 0);
            put_varint(to, u64::from(value.and_then(Value::as_bool).unwrap_or(false)));
        }
        FieldType::Double => {
            put_tag(to, number, 1);
            to.extend_from_slice(&value.and_then(Value::as_f64).unwrap_or(0.0).to_le_bytes());
        }
    }
}
