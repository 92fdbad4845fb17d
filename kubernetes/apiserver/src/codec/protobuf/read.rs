//! Decodes messages into values equal to their JSON.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Number, Value};

use super::{
    ProtobufDecodeError,
    message_table::{FieldCardinality, FieldDescriptor, FieldType, MessageDescriptor, MessageTable},
    well_known,
    wire::WireReader,
};
use crate::codec::json::MAX_DEPTH;

/// Decodes a message's fields into an object at this depth.
pub(super) fn fill(
    object: &mut Map<String, Value>,
    message: &MessageDescriptor,
    bytes: &[u8],
    depth: usize,
) -> Result<(), ProtobufDecodeError> {
    if depth > MAX_DEPTH {
        return Err(ProtobufDecodeError::Depth);
    }
    let mut reader = WireReader::new(bytes);
    while let Some((number, wire)) = reader.tag()? {
        match message.field(number) {
            Some(field) => read_field(object, field, &mut reader, wire, depth)?,
            None => reader.skip(wire)?,
        }
    }
    Ok(())
}

fn read_field(
    object: &mut Map<String, Value>,
    field: &FieldDescriptor,
    reader: &mut WireReader<'_>,
    wire: u64,
    depth: usize,
) -> Result<(), ProtobufDecodeError> {
    match (field.label, field.kind) {
        (FieldCardinality::One, FieldType::Message(name)) if field.inline => {
            let bytes = reader.delimited(wire, field.name)?;
            match MessageTable::get().message(name) {
                // Not deeper in JSON, but one more frame here.
                Some(message) => fill(object, message, bytes, depth + 1),
                None => Ok(()),
            }
        }
        (FieldCardinality::One, FieldType::Message(name)) => {
            let bytes = reader.delimited(wire, field.name)?;
            let before = object.remove(field.name);
            if let Some(value) = message_value(name, bytes, before, depth)? {
                let empty = field.omits_zero && value.as_object().is_some_and(Map::is_empty);
                if !empty {
                    object.insert(field.name.to_owned(), value);
                }
            }
            Ok(())
        }
        (FieldCardinality::One, kind) => {
            let (value, zero) = scalar(field.name, kind, reader, wire)?;
            if zero && !field.pointer && !field.always {
                object.remove(field.name);
            } else {
                object.insert(field.name.to_owned(), value);
            }
            Ok(())
        }
        (FieldCardinality::List, kind) => {
            read_items(list_of(object, field.name), field.name, kind, reader, wire, depth)
        }
        (FieldCardinality::Map, kind) => read_entry(object, field, kind, reader.delimited(wire, field.name)?, depth),
    }
}

/// The list of this name, created if absent.
fn list_of<'o>(object: &'o mut Map<String, Value>, name: &str) -> &'o mut Value {
    object.entry(name).or_insert_with(|| Value::Array(Vec::new()))
}

/// One item of a list, or several packed numbers.
pub(super) fn read_items(
    list: &mut Value,
    name: &str,
    kind: FieldType,
    reader: &mut WireReader<'_>,
    wire: u64,
    depth: usize,
) -> Result<(), ProtobufDecodeError> {
    let Value::Array(items) = list else { return Ok(()) };
    match kind {
        FieldType::Message(message) => {
            let bytes = reader.delimited(wire, name)?;
            let value = message_value(message, bytes, None, depth + 1)?;
            items.push(value.unwrap_or(Value::Null));
        }
        FieldType::String | FieldType::Bytes => items.push(scalar(name, kind, reader, wire)?.0),
        number if wire == 2 => {
            let mut packed = WireReader::new(reader.bytes()?);
            let wire = if number == FieldType::Double { 1 } else { 0 };
            while !packed.is_empty() {
                items.push(scalar(name, number, &mut packed, wire)?.0);
            }
        }
        number => items.push(scalar(name, number, reader, wire)?.0),
    }
    Ok(())
}

/// An entry of a map, which is a message with the key and the value.
fn read_entry(
    object: &mut Map<String, Value>,
    field: &FieldDescriptor,
    kind: FieldType,
    bytes: &[u8],
    depth: usize,
) -> Result<(), ProtobufDecodeError> {
    let mut key = String::new();
    let mut value = None;
    let mut reader = WireReader::new(bytes);
    while let Some((number, wire)) = reader.tag()? {
        match (number, kind) {
            (1, _) => key = text(reader.delimited(wire, field.name)?),
            (2, FieldType::Message(name)) => {
                value = message_value(name, reader.delimited(wire, field.name)?, None, depth + 1)?;
            }
            (2, kind) => value = Some(scalar(field.name, kind, &mut reader, wire)?.0),
            _ => reader.skip(wire)?,
        }
    }
    let value = match (value, kind) {
        (Some(value), _) => value,
        (None, FieldType::Message(name)) => message_value(name, b"", None, depth + 1)?.unwrap_or(Value::Null),
        (None, kind) => zero(kind),
    };
    let map = object.entry(field.name).or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(map) = map {
        map.insert(key, value);
    }
    Ok(())
}

/// A message as JSON; `None` for null. An existing value is extended, as protobuf requires.
pub(super) fn message_value(
    name: &str,
    bytes: &[u8],
    before: Option<Value>,
    depth: usize,
) -> Result<Option<Value>, ProtobufDecodeError> {
    if let Some(value) = well_known::read(name, bytes, depth)? {
        return Ok(Some(value).filter(|value| !value.is_null()));
    }
    let Some(message) = MessageTable::get().message(name) else { return Ok(None) };
    if let (true, Some(field)) = (message.list, message.fields.first()) {
        let mut list = Value::Array(Vec::new());
        let mut reader = WireReader::new(bytes);
        while let Some((number, wire)) = reader.tag()? {
            if number == field.number {
                read_items(&mut list, field.name, field.kind, &mut reader, wire, depth)?;
            } else {
                reader.skip(wire)?;
            }
        }
        return Ok(Some(list));
    }
    let mut object = match before {
        Some(Value::Object(object)) => object,
        _ => Map::new(),
    };
    fill(&mut object, message, bytes, depth + 1)?;
    Ok(Some(Value::Object(object)))
}

/// A scalar, and whether it is zero.
fn scalar(
    name: &str,
    kind: FieldType,
    reader: &mut WireReader<'_>,
    wire: u64,
) -> Result<(Value, bool), ProtobufDecodeError> {
    let expected = match kind {
        FieldType::String | FieldType::Bytes | FieldType::Message(_) => 2,
        FieldType::Double => 1,
        FieldType::Bool | FieldType::Int32 | FieldType::Int64 => 0,
    };
    if wire != expected {
        return Err(ProtobufDecodeError::Mismatch { found: wire, field: name.to_owned() });
    }
    Ok(match kind {
        FieldType::String => {
            let bytes = reader.bytes()?;
            (text(bytes).into(), bytes.is_empty())
        }
        FieldType::Bytes | FieldType::Message(_) => {
            let bytes = reader.bytes()?;
            (STANDARD.encode(bytes).into(), bytes.is_empty())
        }
        FieldType::Double => {
            let number = f64::from_bits(reader.fixed64()?);
            (Number::from_f64(number).map_or(Value::Null, Value::Number), number == 0.0)
        }
        FieldType::Bool => {
            let on = reader.varint()? != 0;
            (on.into(), !on)
        }
        FieldType::Int32 => {
            // Go truncates numbers that do not fit.
            let number = reader.varint()? as i32;
            (number.into(), number == 0)
        }
        FieldType::Int64 => {
            let number = reader.varint()?.cast_signed();
            (number.into(), number == 0)
        }
    })
}

fn zero(kind: FieldType) -> Value {
    match kind {
        FieldType::String | FieldType::Bytes => "".into(),
        FieldType::Bool => false.into(),
        FieldType::Int32 | FieldType::Int64 | FieldType::Double => 0.into(),
        FieldType::Message(_) => Value::Null,
    }
}

/// Bytes that should be UTF-8.
pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
