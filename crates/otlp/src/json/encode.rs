//! Encodes protobuf as JSON.

use super::MAX_MESSAGE_DEPTH;
use super::error::EncodeError;
use super::text;
use crate::memory::MemoryMeter;
use crate::schema::{FieldKind, FieldLabel, FieldSchema, MAX_FIELDS, MessageSchema};
use crate::wire::{self, WireError};

/// Appends the JSON of a message to `out`; the meter limits its growth.
pub(super) fn encode(
    schema: &'static MessageSchema,
    protobuf: &[u8],
    out: &mut Vec<u8>,
    meter: MemoryMeter<'_>,
) -> Result<(), EncodeError> {
    let before = out.len();
    let whole = MessageParts { first: protobuf, more: Vec::new() };
    let result = message(schema, &whole, MAX_MESSAGE_DEPTH, &mut JsonOutput { bytes: out, meter });
    result.inspect_err(|_| out.truncate(before))
}

/// Limit of a small message's text, as a multiple of its length: a number of one byte, with its tag, becomes
/// `"droppedAttributesCount":1,`.
const TEXT_PER_BYTE: usize = 16;
/// Limit of a string's text for each of its bytes: `\u0000`.
const ESCAPE_PER_BYTE: usize = 6;
/// Limit of the text of all fields that are not repeated, beside strings and messages: a name of 24 letters and
/// a number of 20 for each.
const TEXT_OF_NUMBERS: usize = 64 * MAX_FIELDS;
/// A message up to this size gets room for all of its text at once.
const SMALL_BYTES: usize = 1 << 10;

/// A text whose growth the meter limits. The caller makes room before it writes.
struct JsonOutput<'v, 'm> {
    bytes: &'v mut Vec<u8>,
    meter: MemoryMeter<'m>,
}

impl JsonOutput<'_, '_> {
    #[inline]
    fn make_room(&mut self, bytes: usize) -> Result<(), EncodeError> {
        let has_room = self.bytes.capacity() - self.bytes.len() >= bytes;
        if has_room || self.meter.make_room(self.bytes, bytes) { Ok(()) } else { Err(EncodeError::NoMemory) }
    }
}

/// The bytes of one message. A field of one message may occur several times: protobuf merges the occurrences.
struct MessageParts<'a> {
    first: &'a [u8],
    more: Vec<&'a [u8]>,
}

/// A field of a message that its table knows.
struct KnownField<'a> {
    place: usize,
    field: &'static FieldSchema,
    /// The content of a `LEN`, the encoded number otherwise.
    value: &'a [u8],
}

impl<'a> MessageParts<'a> {
    fn fields(&self, schema: &'static MessageSchema) -> impl Iterator<Item = Result<KnownField<'a>, EncodeError>> {
        let parts = std::iter::once(self.first).chain(self.more.iter().copied());
        parts.flat_map(move |part| KnownFields { schema, rest: part })
    }

    fn len(&self) -> usize {
        self.first.len() + self.more.iter().map(|part| part.len()).sum::<usize>()
    }

    /// The message in a field that occurs several times.
    fn gather(
        &self,
        schema: &'static MessageSchema,
        wanted: &FieldSchema,
        meter: &mut MemoryMeter<'_>,
    ) -> Result<MessageParts<'a>, EncodeError> {
        let mut more = Vec::new();
        for found in self.fields(schema) {
            let KnownField { field, value, .. } = found?;
            if field.number == wanted.number {
                meter.push(&mut more, value);
            } else if field.label == FieldLabel::Oneof && wanted.label == FieldLabel::Oneof {
                more.clear();
            }
        }
        meter.check().map_err(|_| EncodeError::NoMemory)?;
        Ok(MessageParts { first: &[], more })
    }
}

struct KnownFields<'a> {
    schema: &'static MessageSchema,
    rest: &'a [u8],
}

impl<'a> Iterator for KnownFields<'a> {
    type Item = Result<KnownField<'a>, EncodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.rest.is_empty() {
            match wire::WireField::read(&mut self.rest) {
                Ok(read) => {
                    let Some((place, field)) = self.schema.by_number(read.number) else { continue };
                    let found = KnownField { place, field, value: read.value };
                    return Some(check(self.schema, field, read.wire).map(|()| found));
                }
                Err(source) => {
                    self.rest = &[];
                    return Some(Err(EncodeError::Wire { message: self.schema.name, source }));
                }
            }
        }
        None
    }
}

/// The last value of each field. Of a repeated field only the presence is noted.
#[derive(Default)]
struct LastValues<'a> {
    values: [Option<&'a [u8]>; MAX_FIELDS],
    /// One bit for each field that occurs several times.
    repeated_fields: u32,
}

impl<'a> LastValues<'a> {
    fn read(schema: &'static MessageSchema, parts: &MessageParts<'a>) -> Result<LastValues<'a>, EncodeError> {
        let mut last = LastValues::default();
        for found in parts.fields(schema) {
            let KnownField { place, field, value } = found?;
            if field.label == FieldLabel::Oneof {
                last.drop_other_members(schema, place);
            }
            if let Some(slot) = last.values.get_mut(place) {
                last.repeated_fields |= u32::from(slot.replace(value).is_some()) << place;
            }
        }
        Ok(last)
    }

    fn drop_other_members(&mut self, schema: &'static MessageSchema, kept: usize) {
        let fields = schema.fields.iter().zip(&mut self.values).enumerate();
        for (place, (_, slot)) in
            fields.filter(|(place, (field, _))| *place != kept && field.label == FieldLabel::Oneof)
        {
            *slot = None;
            self.repeated_fields &= !(1 << place);
        }
    }
}

fn message(
    schema: &'static MessageSchema,
    parts: &MessageParts<'_>,
    depth: usize,
    out: &mut JsonOutput<'_, '_>,
) -> Result<(), EncodeError> {
    let depth = depth.checked_sub(1).ok_or(EncodeError::Depth)?;
    let size = parts.len();
    out.make_room(if size <= SMALL_BYTES { TEXT_PER_BYTE * size + 2 } else { TEXT_OF_NUMBERS })?;
    let last = LastValues::read(schema, parts)?;
    let mut separator = b'{';
    for (place, (field, value)) in schema.fields.iter().zip(last.values).enumerate() {
        let Some(value) = value else { continue };
        out.bytes.push(separator);
        separator = b',';
        name(field, out.bytes);
        match field.kind {
            _ if field.label == FieldLabel::Repeated => list(schema, field, parts, depth, out)?,
            FieldKind::Message(inner) if last.repeated_fields >> place & 1 == 1 => {
                message(inner, &parts.gather(schema, field, &mut out.meter)?, depth, out)?;
            }
            _ => single(schema, field, value, depth, out)?,
        }
    }
    if separator == b'{' {
        out.bytes.push(b'{');
    }
    out.bytes.push(b'}');
    Ok(())
}

fn name(field: &FieldSchema, out: &mut Vec<u8>) {
    out.push(b'"');
    out.extend_from_slice(field.name.as_bytes());
    out.extend_from_slice(b"\":");
}

/// Writes all values of a repeated field, wherever they are in the message.
fn list(
    schema: &'static MessageSchema,
    wanted: &'static FieldSchema,
    parts: &MessageParts<'_>,
    depth: usize,
    out: &mut JsonOutput<'_, '_>,
) -> Result<(), EncodeError> {
    out.bytes.push(b'[');
    let start = out.bytes.len();
    for found in parts.fields(schema) {
        let KnownField { field, mut value, .. } = found?;
        if field.number != wanted.number {
            continue;
        }
        // With room for a comma and the closing bracket.
        out.make_room(TEXT_PER_BYTE * value.len().min(SMALL_BYTES) + 8)?;
        if !field.kind.is_packable() {
            separate(start, out.bytes);
            single(schema, field, value, depth, out)?;
            continue;
        }
        // A single unpacked number looks like a packed one.
        while !value.is_empty() {
            out.make_room(32)?;
            separate(start, out.bytes);
            number(schema, field, &mut value, out.bytes)?;
        }
    }
    out.make_room(1)?;
    out.bytes.push(b']');
    Ok(())
}

fn separate(start: usize, out: &mut Vec<u8>) {
    if out.len() > start {
        out.push(b',');
    }
}

fn single(
    schema: &'static MessageSchema,
    field: &'static FieldSchema,
    mut value: &[u8],
    depth: usize,
    out: &mut JsonOutput<'_, '_>,
) -> Result<(), EncodeError> {
    if let FieldKind::Message(inner) = field.kind {
        message(inner, &MessageParts { first: value, more: Vec::new() }, depth, out)?;
        // Room for the following fields of the parent, which has reserved room for its own fields alone.
        return out.make_room(TEXT_OF_NUMBERS);
    }
    if value.len() > SMALL_BYTES {
        out.make_room(ESCAPE_PER_BYTE.saturating_mul(value.len()) + TEXT_OF_NUMBERS)?;
    }
    match field.kind {
        FieldKind::String => text::string(value, out.bytes),
        FieldKind::Bytes => text::base64(value, out.bytes),
        FieldKind::Id(_) => text::hex(value, out.bytes),
        // Only OpenCensus has them, which is read and never written; messages are written above.
        FieldKind::Special(_) | FieldKind::Message(_) => out.bytes.extend_from_slice(b"null"),
        _ => number(schema, field, &mut value, out.bytes)?,
    }
    Ok(())
}

/// Writes the number at the start of `rest`, and advances `rest`.
fn number(schema: &MessageSchema, field: &FieldSchema, rest: &mut &[u8], out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let bits = bits(field.kind, rest).map_err(|source| EncodeError::Wire { message: schema.name, source })?;
    match field.kind {
        FieldKind::Bool => text::bool(bits != 0, out),
        FieldKind::Double => text::double(f64::from_bits(bits), out),
        FieldKind::Fixed64 | FieldKind::Uint64 => text::quoted(bits, out),
        FieldKind::Sfixed64 | FieldKind::Int64 => text::quoted(bits as i64, out),
        FieldKind::Fixed32 | FieldKind::Uint32 => text::number(bits as u32, out),
        FieldKind::Int32 | FieldKind::Enum(_) => text::number(bits as i32, out),
        FieldKind::Sint32 => text::number((bits as u32 >> 1) as i32 ^ -((bits & 1) as i32), out),
        FieldKind::String | FieldKind::Bytes | FieldKind::Id(_) | FieldKind::Message(_) | FieldKind::Special(_) => {}
    }
    Ok(())
}

fn bits(kind: FieldKind, rest: &mut &[u8]) -> Result<u64, WireError> {
    match kind.wire_type() {
        wire::I64 => array(rest).map(u64::from_le_bytes),
        wire::I32 => array(rest).map(u32::from_le_bytes).map(u64::from),
        _ => wire::read_varint(rest),
    }
}

fn array<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], WireError> {
    let (array, tail) = rest.split_first_chunk().ok_or(WireError::Truncated)?;
    *rest = tail;
    Ok(*array)
}

fn check(schema: &MessageSchema, field: &FieldSchema, wire_type: u8) -> Result<(), EncodeError> {
    let packed = field.label == FieldLabel::Repeated && wire_type == wire::LEN;
    if packed || wire_type == field.kind.wire_type() {
        return Ok(());
    }
    Err(EncodeError::WireType { message: schema.name, field: field.name })
}
