//! Decodes JSON to protobuf.

use std::ops::Range;
use std::str::FromStr;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::MAX_MESSAGE_DEPTH;
use super::error::{JsonError, JsonErrorKind};
use super::protobuf_output::ProtobufOutput;
use super::reader::{JsonFault, JsonReader};
use super::timestamp;
use super::wire_scalar::WireScalar;
use crate::memory::MemoryMeter;
use crate::schema::{FieldKind, FieldLabel, FieldSchema, MessageSchema, SpecialMessage};

/// With or without padding, as in protobuf's JSON, and with any trailing bits.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

pub(super) fn decode(
    schema: &'static MessageSchema,
    json: &[u8],
    meter: MemoryMeter<'_>,
) -> Result<Vec<u8>, JsonError> {
    decode_first(schema, json, meter).map(|(protobuf, _)| protobuf)
}

/// Decodes the first of several documents; returns the number of bytes read.
pub(super) fn decode_first(
    schema: &'static MessageSchema,
    json: &[u8],
    meter: MemoryMeter<'_>,
) -> Result<(Vec<u8>, usize), JsonError> {
    let mut decoder = JsonDecoder { reader: JsonReader::new(json), out: ProtobufOutput::new(meter) };
    // Names and quotes make JSON at least twice as long as its protobuf, but for long strings and packed
    // numbers.
    let _ = decoder.out.make_room(json.len() / 2);
    match decoder.document(schema).and_then(|()| decoder.check_memory()) {
        Ok(()) => Ok((decoder.out.bytes, decoder.reader.bytes_read())),
        Err(JsonFault { reason, offset, field }) => {
            let before = json.get(..offset).unwrap_or(json);
            let line = memchr::memchr_iter(b'\n', before).count() + 1;
            Err(JsonError { reason, field, offset, line })
        }
    }
}

struct JsonDecoder<'a, 'm> {
    reader: JsonReader<'a>,
    out: ProtobufOutput<'m>,
}

/// The fields of a message that are in the output already.
#[derive(Default)]
struct WrittenFields {
    /// One bit for each field of the message's table.
    fields: u32,
    /// The range of the `oneof` member.
    oneof: Option<Range<usize>>,
}

impl WrittenFields {
    /// Marks a field as written; returns whether it was marked before.
    fn mark(&mut self, place: usize) -> bool {
        let bit = 1u32.checked_shl(place as u32).unwrap_or(0);
        let before = self.fields & bit != 0;
        self.fields |= bit;
        before
    }
}

impl JsonDecoder<'_, '_> {
    fn check_memory(&self) -> Result<(), JsonFault> {
        if self.out.is_exhausted() { Err(self.reader.fault(JsonErrorKind::NoMemory)) } else { Ok(()) }
    }

    /// Text behind the first value is ignored, as in the Collector.
    fn document(&mut self, schema: &'static MessageSchema) -> Result<(), JsonFault> {
        if self.reader.take_null()? {
            return Ok(());
        }
        self.message(schema, MAX_MESSAGE_DEPTH)
    }

    /// Writes the fields of an object.
    fn message(&mut self, schema: &'static MessageSchema, depth: usize) -> Result<(), JsonFault> {
        let Some(depth) = depth.checked_sub(1) else { return Err(self.reader.fault(JsonErrorKind::Depth)) };
        self.reader.expect(b'{', "an object")?;
        if self.reader.take_if(b'}')? {
            return Ok(());
        }
        let mut written = WrittenFields::default();
        loop {
            let found = schema.by_name(self.reader.string()?);
            self.reader.colon()?;
            match found {
                Some((place, field)) => {
                    self.field(place, field, &mut written, depth).map_err(|fault| fault.in_field(field))?
                }
                None => self.reader.skip()?,
            }
            self.check_memory()?;
            if !self.reader.has_next(b'}')? {
                return Ok(());
            }
        }
    }

    fn field(
        &mut self,
        place: usize,
        field: &'static FieldSchema,
        written: &mut WrittenFields,
        depth: usize,
    ) -> Result<(), JsonFault> {
        if self.reader.take_null()? {
            return Ok(());
        }
        let again = written.mark(place);
        match field.label {
            FieldLabel::Repeated => self.list(field, depth),
            // A default value is written only to undo an earlier value.
            FieldLabel::Implicit => self.single(field, again, depth),
            FieldLabel::Optional => self.single(field, true, depth),
            FieldLabel::Oneof => {
                // Only bytes behind the earlier member move, so that no byte moves twice.
                if let Some(earlier) = written.oneof.take() {
                    self.out.bytes.drain(earlier);
                }
                let start = self.out.bytes.len();
                self.single(field, true, depth)?;
                written.oneof = Some(start..self.out.bytes.len());
                Ok(())
            }
        }
    }

    fn list(&mut self, field: &'static FieldSchema, depth: usize) -> Result<(), JsonFault> {
        self.reader.expect(b'[', "a list")?;
        if self.reader.take_if(b']')? {
            return Ok(());
        }
        if !field.kind.is_packable() {
            return self.elements(|decoder| decoder.element(field, depth));
        }
        let start = self.out.open(field.number);
        self.elements(|decoder| {
            let scalar = decoder.scalar(field.kind)?;
            decoder.out.put_scalar(scalar);
            Ok(())
        })?;
        self.out.close(start);
        Ok(())
    }

    fn elements(&mut self, mut element: impl FnMut(&mut Self) -> Result<(), JsonFault>) -> Result<(), JsonFault> {
        loop {
            element(self)?;
            self.check_memory()?;
            if !self.reader.has_next(b']')? {
                return Ok(());
            }
        }
    }

    /// Writes an element of a list; `null` is an element with the default value.
    fn element(&mut self, field: &'static FieldSchema, depth: usize) -> Result<(), JsonFault> {
        if self.reader.take_null()? {
            self.out.put_bytes(field.number, &[]);
            return Ok(());
        }
        self.single(field, true, depth)
    }

    /// Writes one value of a field, a default one only if `always`.
    fn single(&mut self, field: &'static FieldSchema, always: bool, depth: usize) -> Result<(), JsonFault> {
        match field.kind {
            FieldKind::Message(schema) => {
                let start = self.out.open(field.number);
                self.message(schema, depth)?;
                self.out.close(start);
            }
            FieldKind::String => {
                let text = self.reader.string()?;
                if always || !text.is_empty() {
                    self.out.put_bytes(field.number, text);
                }
            }
            FieldKind::Bytes => self.base64(field, always)?,
            FieldKind::Special(special) => self.special(field, special, depth)?,
            FieldKind::Id(length) => self.id(field, length, always)?,
            kind => {
                let scalar = self.scalar(kind)?;
                if always || !scalar.is_default() {
                    self.out.put_tag(field.number, kind.wire_type());
                    self.out.put_scalar(scalar);
                }
            }
        }
        Ok(())
    }

    /// Writes a message with a JSON form of its own.
    fn special(&mut self, field: &'static FieldSchema, special: SpecialMessage, depth: usize) -> Result<(), JsonFault> {
        match special {
            SpecialMessage::Map(entry) => self.map(field, entry, depth),
            SpecialMessage::Wrapper(value) => {
                let start = self.out.open(field.number);
                self.single(value, false, depth)?;
                self.out.close(start);
                Ok(())
            }
            SpecialMessage::Timestamp => {
                let at = self.reader.start()?;
                let time = timestamp::parse(self.reader.string()?).ok_or_else(|| at.fault(JsonErrorKind::Timestamp))?;
                let start = self.out.open(field.number);
                self.out.put_time(time);
                self.out.close(start);
                Ok(())
            }
        }
    }

    /// Writes a map, in JSON an object: one message for each member.
    fn map(
        &mut self,
        field: &'static FieldSchema,
        entry: &'static [FieldSchema; 2],
        depth: usize,
    ) -> Result<(), JsonFault> {
        let depth = depth.checked_sub(1).ok_or_else(|| self.reader.fault(JsonErrorKind::Depth))?;
        let [key, value] = entry;
        self.reader.expect(b'{', "an object")?;
        if self.reader.take_if(b'}')? {
            return Ok(());
        }
        loop {
            let start = self.out.open(field.number);
            let name = self.reader.string()?;
            self.out.put_bytes(key.number, name);
            self.reader.colon()?;
            if !self.reader.take_null()? {
                self.single(value, false, depth)?;
            }
            self.out.close(start);
            if !self.reader.has_next(b'}')? {
                return Ok(());
            }
        }
    }

    fn base64(&mut self, field: &'static FieldSchema, always: bool) -> Result<(), JsonFault> {
        let at = self.reader.start()?;
        let text = self.reader.string()?;
        let bytes = BASE64.decode(text).map_err(|_| at.fault(JsonErrorKind::Base64))?;
        if always || !bytes.is_empty() {
            self.out.put_bytes(field.number, &bytes);
        }
        Ok(())
    }

    fn id(&mut self, field: &'static FieldSchema, bytes: usize, always: bool) -> Result<(), JsonFault> {
        let at = self.reader.start()?;
        let text = self.reader.string()?;
        if text.is_empty() && !always {
            return Ok(());
        }
        let (pairs, odd) = text.as_chunks();
        if !odd.is_empty() || (pairs.len() != bytes && !pairs.is_empty()) {
            return Err(at.fault(JsonErrorKind::Id { bytes }));
        }
        self.out.put_header(field.number, pairs.len());
        for pair in pairs {
            self.out.push(hex(*pair).ok_or_else(|| at.fault(JsonErrorKind::Id { bytes }))?);
        }
        Ok(())
    }

    fn scalar(&mut self, kind: FieldKind) -> Result<WireScalar, JsonFault> {
        Ok(match kind {
            FieldKind::Bool => WireScalar::Varint(self.reader.bool()?.into()),
            FieldKind::Double => WireScalar::Fixed64(self.double()?.to_bits()),
            FieldKind::Fixed64 => WireScalar::Fixed64(self.integer()?),
            FieldKind::Sfixed64 => WireScalar::Fixed64(self.integer::<i64>()? as u64),
            FieldKind::Uint64 => WireScalar::Varint(self.integer()?),
            FieldKind::Int64 => WireScalar::Varint(self.integer::<i64>()? as u64),
            FieldKind::Fixed32 => WireScalar::Fixed32(self.integer()?),
            FieldKind::Uint32 => WireScalar::Varint(self.integer::<u32>()?.into()),
            FieldKind::Int32 => WireScalar::Varint(i64::from(self.integer::<i32>()?) as u64),
            FieldKind::Sint32 => {
                let value = self.integer::<i32>()?;
                WireScalar::Varint(((value << 1) ^ (value >> 31)) as u32 as u64)
            }
            FieldKind::Enum(names) => WireScalar::Varint(i64::from(self.enumeration(names)?) as u64),
            FieldKind::String | FieldKind::Bytes | FieldKind::Id(_) | FieldKind::Message(_) | FieldKind::Special(_) => {
                return Err(self.reader.fault(JsonErrorKind::Expected("a number")));
            }
        })
    }

    fn enumeration(&mut self, names: &[(&str, i32)]) -> Result<i32, JsonFault> {
        let at = self.reader.start()?;
        if self.reader.peek()? != b'"' {
            return self.integer();
        }
        let text = self.reader.string()?;
        let named = names.iter().find(|(name, _)| name.as_bytes() == text);
        named.map(|(_, value)| *value).ok_or_else(|| at.fault(JsonErrorKind::EnumName))
    }

    fn integer<T: FromStr>(&mut self) -> Result<T, JsonFault> {
        let at = self.reader.start()?;
        let text = self.number_or_string()?;
        // A sign that JSON does not allow is invalid in a string, too.
        let text = text.strip_prefix(b"+").map_or(text, |_| b"+");
        parse(text).ok_or_else(|| at.fault(JsonErrorKind::Integer))
    }

    fn double(&mut self) -> Result<f64, JsonFault> {
        let at = self.reader.start()?;
        let text = self.number_or_string()?;
        // A number of digits that overflows is out of range, not infinity.
        let spelled_out = text.iter().any(|byte| byte.eq_ignore_ascii_case(&b'i'));
        let value = parse::<f64>(text).filter(|value| spelled_out || !value.is_infinite());
        value.ok_or_else(|| at.fault(JsonErrorKind::Double))
    }

    fn number_or_string(&mut self) -> Result<&[u8], JsonFault> {
        if self.reader.peek()? == b'"' { self.reader.string() } else { self.reader.number() }
    }
}

fn parse<T: FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn hex([high, low]: [u8; 2]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    Some((digit(high)? << 4 | digit(low)?) as u8)
}
