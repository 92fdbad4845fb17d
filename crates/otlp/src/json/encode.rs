//! Protobuf to JSON.

use super::MAX_DEPTH;
use super::error::EncodeError;
use super::text;
use crate::memory::Meter;
use crate::schema::{Field, Kind, Label, MAX_FIELDS, Message};
use crate::wire::{self, WireError};

/// Appends the JSON of a message to `out`, which grows as the meter allows.
pub(super) fn encode(
    schema: &'static Message,
    protobuf: &[u8],
    out: &mut Vec<u8>,
    meter: Meter<'_>,
) -> Result<(), EncodeError> {
    let before = out.len();
    let whole = Parts { first: protobuf, more: Vec::new() };
    let result = message(schema, &whole, MAX_DEPTH, &mut Out { bytes: out, meter });
    result.inspect_err(|_| out.truncate(before))
}

/// The longest text of a small message, as a multiple of its length: a number of one byte, with its tag, becomes
/// `"droppedAttributesCount":1,`.
const TEXT_PER_BYTE: usize = 16;
/// The longest text of a string for each of its bytes: `\u0000`.
const ESCAPE_PER_BYTE: usize = 6;
/// What fields that are not repeated take at most in all, beside strings and messages: a name of 24 letters and a
/// number of 20 for each.
const TEXT_OF_NUMBERS: usize = 64 * MAX_FIELDS;
/// A message up to this size gets room for all of its text at once.
const SMALL_BYTES: usize = 1 << 10;

/// A text that grows as the meter allows. Whoever writes asks for room first.
struct Out<'v, 'm> {
    bytes: &'v mut Vec<u8>,
    meter: Meter<'m>,
}

impl Out<'_, '_> {
    #[inline]
    fn make_room(&mut self, bytes: usize) -> Result<(), EncodeError> {
        let has_room = self.bytes.capacity() - self.bytes.len() >= bytes;
        if has_room || self.meter.make_room(self.bytes, bytes) { Ok(()) } else { Err(EncodeError::NoMemory) }
    }
}

/// The bytes of one message. A field that holds one message may be there several times: protobuf then takes all of
/// them together as one.
struct Parts<'a> {
    first: &'a [u8],
    more: Vec<&'a [u8]>,
}

/// A field of a message that its table knows.
struct Found<'a> {
    place: usize,
    field: &'static Field,
    /// The content if it has a length, the encoded number if not.
    value: &'a [u8],
}

impl<'a> Parts<'a> {
    fn fields(&self, schema: &'static Message) -> impl Iterator<Item = Result<Found<'a>, EncodeError>> {
        let parts = std::iter::once(self.first).chain(self.more.iter().copied());
        parts.flat_map(move |part| Fields { schema, rest: part })
    }

    fn len(&self) -> usize {
        self.first.len() + self.more.iter().map(|part| part.len()).sum::<usize>()
    }

    /// The message in a field that is there several times.
    fn gather(
        &self,
        schema: &'static Message,
        wanted: &Field,
        meter: &mut Meter<'_>,
    ) -> Result<Parts<'a>, EncodeError> {
        let mut more = Vec::new();
        for found in self.fields(schema) {
            let Found { field, value, .. } = found?;
            if field.number == wanted.number {
                meter.push(&mut more, value);
            } else if field.label == Label::Oneof && wanted.label == Label::Oneof {
                more.clear();
            }
        }
        meter.check().map_err(|_| EncodeError::NoMemory)?;
        Ok(Parts { first: &[], more })
    }
}

struct Fields<'a> {
    schema: &'static Message,
    rest: &'a [u8],
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Found<'a>, EncodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.rest.is_empty() {
            match wire::Field::read(&mut self.rest) {
                Ok(read) => {
                    let Some((place, field)) = self.schema.by_number(read.number) else { continue };
                    let found = Found { place, field, value: read.value };
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

/// The last value of each field. A repeated one is only noted.
#[derive(Default)]
struct Last<'a> {
    values: [Option<&'a [u8]>; MAX_FIELDS],
    /// One bit for each field that is there several times.
    again: u32,
}

impl<'a> Last<'a> {
    fn read(schema: &'static Message, parts: &Parts<'a>) -> Result<Last<'a>, EncodeError> {
        let mut last = Last::default();
        for found in parts.fields(schema) {
            let Found { place, field, value } = found?;
            if field.label == Label::Oneof {
                last.drop_other_members(schema, place);
            }
            if let Some(slot) = last.values.get_mut(place) {
                last.again |= u32::from(slot.replace(value).is_some()) << place;
            }
        }
        Ok(last)
    }

    fn drop_other_members(&mut self, schema: &'static Message, kept: usize) {
        let fields = schema.fields.iter().zip(&mut self.values).enumerate();
        for (place, (_, slot)) in fields.filter(|(place, (field, _))| *place != kept && field.label == Label::Oneof) {
            *slot = None;
            self.again &= !(1 << place);
        }
    }
}

fn message(
    schema: &'static Message,
    parts: &Parts<'_>,
    depth: usize,
    out: &mut Out<'_, '_>,
) -> Result<(), EncodeError> {
    let depth = depth.checked_sub(1).ok_or(EncodeError::Depth)?;
    let size = parts.len();
    out.make_room(if size <= SMALL_BYTES { TEXT_PER_BYTE * size + 2 } else { TEXT_OF_NUMBERS })?;
    let last = Last::read(schema, parts)?;
    let mut separator = b'{';
    for (place, (field, value)) in schema.fields.iter().zip(last.values).enumerate() {
        let Some(value) = value else { continue };
        out.bytes.push(separator);
        separator = b',';
        name(field, out.bytes);
        match field.kind {
            _ if field.label == Label::Repeated => list(schema, field, parts, depth, out)?,
            Kind::Message(inner) if last.again >> place & 1 == 1 => {
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

fn name(field: &Field, out: &mut Vec<u8>) {
    out.push(b'"');
    out.extend_from_slice(field.name.as_bytes());
    out.extend_from_slice(b"\":");
}

/// Writes all values of a repeated field, wherever in the message they are.
fn list(
    schema: &'static Message,
    wanted: &'static Field,
    parts: &Parts<'_>,
    depth: usize,
    out: &mut Out<'_, '_>,
) -> Result<(), EncodeError> {
    out.bytes.push(b'[');
    let start = out.bytes.len();
    for found in parts.fields(schema) {
        let Found { field, mut value, .. } = found?;
        if field.number != wanted.number {
            continue;
        }
        // A comma and the bracket at the end have room with whatever is between them.
        out.make_room(TEXT_PER_BYTE * value.len().min(SMALL_BYTES) + 8)?;
        if !field.kind.packs() {
            separate(start, out.bytes);
            single(schema, field, value, depth, out)?;
            continue;
        }
        // One number that is not packed looks as one that is.
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
    schema: &'static Message,
    field: &'static Field,
    mut value: &[u8],
    depth: usize,
    out: &mut Out<'_, '_>,
) -> Result<(), EncodeError> {
    if let Kind::Message(inner) = field.kind {
        message(inner, &Parts { first: value, more: Vec::new() }, depth, out)?;
        // For what follows it in the message around it, which had room for its own fields alone.
        return out.make_room(TEXT_OF_NUMBERS);
    }
    if value.len() > SMALL_BYTES {
        out.make_room(ESCAPE_PER_BYTE.saturating_mul(value.len()) + TEXT_OF_NUMBERS)?;
    }
    match field.kind {
        Kind::String => text::string(value, out.bytes),
        Kind::Bytes => text::base64(value, out.bytes),
        Kind::Id(_) => text::hex(value, out.bytes),
        // Only OpenCensus has them, which is read and never written; messages are written above.
        Kind::Special(_) | Kind::Message(_) => out.bytes.extend_from_slice(b"null"),
        _ => number(schema, field, &mut value, out.bytes)?,
    }
    Ok(())
}

/// Writes the number at the start of `rest`, and goes behind it.
fn number(schema: &Message, field: &Field, rest: &mut &[u8], out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let bits = bits(field.kind, rest).map_err(|source| EncodeError::Wire { message: schema.name, source })?;
    match field.kind {
        Kind::Bool => text::bool(bits != 0, out),
        Kind::Double => text::double(f64::from_bits(bits), out),
        Kind::Fixed64 | Kind::Uint64 => text::quoted(bits, out),
        Kind::Sfixed64 | Kind::Int64 => text::quoted(bits as i64, out),
        Kind::Fixed32 | Kind::Uint32 => text::number(bits as u32, out),
        Kind::Int32 | Kind::Enum(_) => text::number(bits as i32, out),
        Kind::Sint32 => text::number((bits as u32 >> 1) as i32 ^ -((bits & 1) as i32), out),
        Kind::String | Kind::Bytes | Kind::Id(_) | Kind::Message(_) | Kind::Special(_) => {}
    }
    Ok(())
}

fn bits(kind: Kind, rest: &mut &[u8]) -> Result<u64, WireError> {
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

fn check(schema: &Message, field: &Field, wire_type: u8) -> Result<(), EncodeError> {
    let packed = field.label == Label::Repeated && wire_type == wire::LEN;
    if packed || wire_type == field.kind.wire_type() {
        return Ok(());
    }
    Err(EncodeError::WireType { message: schema.name, field: field.name })
}
