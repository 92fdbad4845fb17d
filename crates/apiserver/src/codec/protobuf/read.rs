//! From a message to what its JSON would be.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Number, Value};

use super::{
    Error, special,
    table::{Field, Kind, Label, Message, Table},
    wire::Reader,
};
use crate::codec::json::MAX_DEPTH;

/// Reads a message's fields into an object. `depth` is that of the object.
pub(super) fn fill(
    object: &mut Map<String, Value>,
    message: &Message,
    bytes: &[u8],
    depth: usize,
) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(Error::Depth);
    }
    let mut reader = Reader::new(bytes);
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
    field: &Field,
    reader: &mut Reader<'_>,
    wire: u64,
    depth: usize,
) -> Result<(), Error> {
    match (field.label, field.kind) {
        (Label::One, Kind::Message(name)) if field.inline => {
            let bytes = reader.delimited(wire, field.name)?;
            match Table::get().message(name) {
                // Not deeper in JSON, but one more frame here.
                Some(message) => fill(object, message, bytes, depth + 1),
                None => Ok(()),
            }
        }
        (Label::One, Kind::Message(name)) => {
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
        (Label::One, kind) => {
            let (value, zero) = scalar(field.name, kind, reader, wire)?;
            if zero && !field.pointer && !field.always {
                object.remove(field.name);
            } else {
                object.insert(field.name.to_owned(), value);
            }
            Ok(())
        }
        (Label::List, kind) => read_items(list_of(object, field.name), field.name, kind, reader, wire, depth),
        (Label::Map, kind) => read_entry(object, field, kind, reader.delimited(wire, field.name)?, depth),
    }
}

/// The list at a name, made if it is not there.
fn list_of<'o>(object: &'o mut Map<String, Value>, name: &str) -> &'o mut Value {
    object.entry(name).or_insert_with(|| Value::Array(Vec::new()))
}

/// One item of a list, or several numbers in a row.
pub(super) fn read_items(
    list: &mut Value,
    name: &str,
    kind: Kind,
    reader: &mut Reader<'_>,
    wire: u64,
    depth: usize,
) -> Result<(), Error> {
    let Value::Array(items) = list else { return Ok(()) };
    match kind {
        Kind::Message(message) => {
            let bytes = reader.delimited(wire, name)?;
            let value = message_value(message, bytes, None, depth + 1)?;
            items.push(value.unwrap_or(Value::Null));
        }
        Kind::String | Kind::Bytes => items.push(scalar(name, kind, reader, wire)?.0),
        number if wire == 2 => {
            let mut packed = Reader::new(reader.bytes()?);
            let wire = if number == Kind::Double { 1 } else { 0 };
            while !packed.is_empty() {
                items.push(scalar(name, number, &mut packed, wire)?.0);
            }
        }
        number => items.push(scalar(name, number, reader, wire)?.0),
    }
    Ok(())
}

/// An entry of a map is a message of its own: the key and the value.
fn read_entry(
    object: &mut Map<String, Value>,
    field: &Field,
    kind: Kind,
    bytes: &[u8],
    depth: usize,
) -> Result<(), Error> {
    let (mut key, mut value) = (String::new(), None);
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.tag()? {
        match (number, kind) {
            (1, _) => key = text(reader.delimited(wire, field.name)?),
            (2, Kind::Message(name)) => {
                value = message_value(name, reader.delimited(wire, field.name)?, None, depth + 1)?;
            }
            (2, kind) => value = Some(scalar(field.name, kind, &mut reader, wire)?.0),
            _ => reader.skip(wire)?,
        }
    }
    let value = match (value, kind) {
        (Some(value), _) => value,
        (None, Kind::Message(name)) => message_value(name, b"", None, depth + 1)?.unwrap_or(Value::Null),
        (None, kind) => zero(kind),
    };
    let map = object.entry(field.name).or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(map) = map {
        map.insert(key, value);
    }
    Ok(())
}

/// A message as JSON; `None` for null. What is there already is filled up, as protobuf wants it.
pub(super) fn message_value(
    name: &str,
    bytes: &[u8],
    before: Option<Value>,
    depth: usize,
) -> Result<Option<Value>, Error> {
    if let Some(value) = special::read(name, bytes, depth)? {
        return Ok(Some(value).filter(|value| !value.is_null()));
    }
    let Some(message) = Table::get().message(name) else { return Ok(None) };
    if let (true, Some(field)) = (message.list, message.fields.first()) {
        let mut list = Value::Array(Vec::new());
        let mut reader = Reader::new(bytes);
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

/// A value without parts, and whether it is its type's zero.
fn scalar(name: &str, kind: Kind, reader: &mut Reader<'_>, wire: u64) -> Result<(Value, bool), Error> {
    let expected = match kind {
        Kind::String | Kind::Bytes | Kind::Message(_) => 2,
        Kind::Double => 1,
        Kind::Bool | Kind::Int32 | Kind::Int64 => 0,
    };
    if wire != expected {
        return Err(Error::Mismatch { found: wire, field: name.to_owned() });
    }
    Ok(match kind {
        Kind::String => {
            let bytes = reader.bytes()?;
            (text(bytes).into(), bytes.is_empty())
        }
        Kind::Bytes | Kind::Message(_) => {
            let bytes = reader.bytes()?;
            (STANDARD.encode(bytes).into(), bytes.is_empty())
        }
        Kind::Double => {
            let number = f64::from_bits(reader.fixed64()?);
            (Number::from_f64(number).map_or(Value::Null, Value::Number), number == 0.0)
        }
        Kind::Bool => {
            let on = reader.varint()? != 0;
            (on.into(), !on)
        }
        Kind::Int32 => {
            // Go cuts off what does not fit.
            let number = reader.varint()? as i32;
            (number.into(), number == 0)
        }
        Kind::Int64 => {
            let number = reader.varint()?.cast_signed();
            (number.into(), number == 0)
        }
    })
}

fn zero(kind: Kind) -> Value {
    match kind {
        Kind::String | Kind::Bytes => "".into(),
        Kind::Bool => false.into(),
        Kind::Int32 | Kind::Int64 | Kind::Double => 0.into(),
        Kind::Message(_) => Value::Null,
    }
}

/// Bytes that should be UTF-8.
pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
