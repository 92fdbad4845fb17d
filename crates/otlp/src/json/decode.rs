//! JSON to protobuf.

use std::ops::Range;
use std::str::FromStr;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::MAX_DEPTH;
use super::error::{Error, Reason};
use super::out::Out;
use super::put::Scalar;
use super::reader::{Fault, Reader};
use super::timestamp;
use crate::memory::Meter;
use crate::schema::{Field, Kind, Label, Message, Special};

/// With or without the padding, as protobuf's JSON has it, and with whatever is in the bits behind the last byte.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

pub(super) fn decode(schema: &'static Message, json: &[u8], meter: Meter<'_>) -> Result<Vec<u8>, Error> {
    decode_first(schema, json, meter).map(|(protobuf, _)| protobuf)
}

/// The first document of several, and how many bytes it takes.
pub(super) fn decode_first(schema: &'static Message, json: &[u8], meter: Meter<'_>) -> Result<(Vec<u8>, usize), Error> {
    let mut decoder = Decoder { reader: Reader::new(json), out: Out::new(meter) };
    // Names and quotes make JSON at least twice as long as its protobuf, but for long strings and packed numbers.
    let _ = decoder.out.make_room(json.len() / 2);
    match decoder.document(schema).and_then(|()| decoder.check_memory()) {
        Ok(()) => Ok((decoder.out.bytes, decoder.reader.taken())),
        Err(Fault { reason, offset, field }) => {
            let before = json.get(..offset).unwrap_or(json);
            let line = memchr::memchr_iter(b'\n', before).count() + 1;
            Err(Error { reason, field, offset, line })
        }
    }
}

struct Decoder<'a, 'm> {
    reader: Reader<'a>,
    out: Out<'m>,
}

/// Which fields of a message are already in the output.
#[derive(Default)]
struct Written {
    /// One bit for each place in the message's table.
    fields: u32,
    /// Where the member of the `oneof` is.
    oneof: Option<Range<usize>>,
}

impl Written {
    /// Marks a field as written; whether it was before.
    fn mark(&mut self, place: usize) -> bool {
        let bit = 1u32.checked_shl(place as u32).unwrap_or(0);
        let before = self.fields & bit != 0;
        self.fields |= bit;
        before
    }
}

impl Decoder<'_, '_> {
    fn check_memory(&self) -> Result<(), Fault> {
        if self.out.is_exhausted() { Err(self.reader.fault(Reason::NoMemory)) } else { Ok(()) }
    }

    /// What follows the first value is not looked at, as the Collector does not.
    fn document(&mut self, schema: &'static Message) -> Result<(), Fault> {
        if self.reader.null()? {
            return Ok(());
        }
        self.message(schema, MAX_DEPTH)
    }

    /// Writes the fields of an object.
    fn message(&mut self, schema: &'static Message, depth: usize) -> Result<(), Fault> {
        let Some(depth) = depth.checked_sub(1) else { return Err(self.reader.fault(Reason::Depth)) };
        self.reader.expect(b'{', "an object")?;
        if self.reader.eat(b'}')? {
            return Ok(());
        }
        let mut written = Written::default();
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
            if !self.reader.more(b'}')? {
                return Ok(());
            }
        }
    }

    fn field(&mut self, place: usize, field: &'static Field, written: &mut Written, depth: usize) -> Result<(), Fault> {
        if self.reader.null()? {
            return Ok(());
        }
        let again = written.mark(place);
        match field.label {
            Label::Repeated => self.list(field, depth),
            // A default value is written only to undo an earlier value.
            Label::Implicit => self.single(field, again, depth),
            Label::Optional => self.single(field, true, depth),
            Label::Oneof => {
                // Only what was written since the earlier member moves, so that no byte moves twice.
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

    fn list(&mut self, field: &'static Field, depth: usize) -> Result<(), Fault> {
        self.reader.expect(b'[', "a list")?;
        if self.reader.eat(b']')? {
            return Ok(());
        }
        if !field.kind.packs() {
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

    fn elements(&mut self, mut element: impl FnMut(&mut Self) -> Result<(), Fault>) -> Result<(), Fault> {
        loop {
            element(self)?;
            self.check_memory()?;
            if !self.reader.more(b']')? {
                return Ok(());
            }
        }
    }

    /// An element of a list holds its place, also as `null`.
    fn element(&mut self, field: &'static Field, depth: usize) -> Result<(), Fault> {
        if self.reader.null()? {
            self.out.put_bytes(field.number, &[]);
            return Ok(());
        }
        self.single(field, true, depth)
    }

    /// Writes one value of a field, a default one only if `always`.
    fn single(&mut self, field: &'static Field, always: bool, depth: usize) -> Result<(), Fault> {
        match field.kind {
            Kind::Message(schema) => {
                let start = self.out.open(field.number);
                self.message(schema, depth)?;
                self.out.close(start);
            }
            Kind::String => {
                let text = self.reader.string()?;
                if always || !text.is_empty() {
                    self.out.put_bytes(field.number, text);
                }
            }
            Kind::Bytes => self.base64(field, always)?,
            Kind::Special(special) => self.special(field, special, depth)?,
            Kind::Id(length) => self.id(field, length, always)?,
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

    /// What protobuf's JSON writes in a way of its own.
    fn special(&mut self, field: &'static Field, special: Special, depth: usize) -> Result<(), Fault> {
        match special {
            Special::Map(entry) => self.map(field, entry, depth),
            Special::Wrapper(value) => {
                let start = self.out.open(field.number);
                self.single(value, false, depth)?;
                self.out.close(start);
                Ok(())
            }
            Special::Timestamp => {
                let at = self.reader.start()?;
                let time = timestamp::parse(self.reader.string()?).ok_or_else(|| at.fault(Reason::Timestamp))?;
                let start = self.out.open(field.number);
                self.out.put_time(time);
                self.out.close(start);
                Ok(())
            }
        }
    }

    /// An object whose names are keys: one message for each.
    fn map(&mut self, field: &'static Field, entry: &'static [Field; 2], depth: usize) -> Result<(), Fault> {
        let depth = depth.checked_sub(1).ok_or_else(|| self.reader.fault(Reason::Depth))?;
        let [key, value] = entry;
        self.reader.expect(b'{', "an object")?;
        if self.reader.eat(b'}')? {
            return Ok(());
        }
        loop {
            let start = self.out.open(field.number);
            let name = self.reader.string()?;
            self.out.put_bytes(key.number, name);
            self.reader.colon()?;
            if !self.reader.null()? {
                self.single(value, false, depth)?;
            }
            self.out.close(start);
            if !self.reader.more(b'}')? {
                return Ok(());
            }
        }
    }

    fn base64(&mut self, field: &'static Field, always: bool) -> Result<(), Fault> {
        let at = self.reader.start()?;
        let text = self.reader.string()?;
        let bytes = BASE64.decode(text).map_err(|_| at.fault(Reason::Base64))?;
        if always || !bytes.is_empty() {
            self.out.put_bytes(field.number, &bytes);
        }
        Ok(())
    }

    fn id(&mut self, field: &'static Field, bytes: usize, always: bool) -> Result<(), Fault> {
        let at = self.reader.start()?;
        let text = self.reader.string()?;
        if text.is_empty() && !always {
            return Ok(());
        }
        let (pairs, odd) = text.as_chunks();
        if !odd.is_empty() || (pairs.len() != bytes && !pairs.is_empty()) {
            return Err(at.fault(Reason::Id { bytes }));
        }
        self.out.put_header(field.number, pairs.len());
        for pair in pairs {
            self.out.push(hex(*pair).ok_or_else(|| at.fault(Reason::Id { bytes }))?);
        }
        Ok(())
    }

    fn scalar(&mut self, kind: Kind) -> Result<Scalar, Fault> {
        Ok(match kind {
            Kind::Bool => Scalar::Varint(self.reader.bool()?.into()),
            Kind::Double => Scalar::Fixed64(self.double()?.to_bits()),
            Kind::Fixed64 => Scalar::Fixed64(self.integer()?),
            Kind::Sfixed64 => Scalar::Fixed64(self.integer::<i64>()? as u64),
            Kind::Uint64 => Scalar::Varint(self.integer()?),
            Kind::Int64 => Scalar::Varint(self.integer::<i64>()? as u64),
            Kind::Fixed32 => Scalar::Fixed32(self.integer()?),
            Kind::Uint32 => Scalar::Varint(self.integer::<u32>()?.into()),
            Kind::Int32 => Scalar::Varint(i64::from(self.integer::<i32>()?) as u64),
            Kind::Sint32 => {
                let value = self.integer::<i32>()?;
                Scalar::Varint(((value << 1) ^ (value >> 31)) as u32 as u64)
            }
            Kind::Enum(names) => Scalar::Varint(i64::from(self.enumeration(names)?) as u64),
            Kind::String | Kind::Bytes | Kind::Id(_) | Kind::Message(_) | Kind::Special(_) => {
                return Err(self.reader.fault(Reason::Expected("a number")));
            }
        })
    }

    fn enumeration(&mut self, names: &[(&str, i32)]) -> Result<i32, Fault> {
        let at = self.reader.start()?;
        if self.reader.peek()? != b'"' {
            return self.integer();
        }
        let text = self.reader.string()?;
        let named = names.iter().find(|(name, _)| name.as_bytes() == text);
        named.map(|(_, value)| *value).ok_or_else(|| at.fault(Reason::EnumName))
    }

    fn integer<T: FromStr>(&mut self) -> Result<T, Fault> {
        let at = self.reader.start()?;
        let text = self.number_or_string()?;
        // A sign that JSON does not have is none in a string either.
        let text = text.strip_prefix(b"+").map_or(text, |_| b"+");
        parse(text).ok_or_else(|| at.fault(Reason::Integer))
    }

    fn double(&mut self) -> Result<f64, Fault> {
        let at = self.reader.start()?;
        let text = self.number_or_string()?;
        // Digits never mean infinity: they are out of range then.
        let spelled_out = text.iter().any(|byte| byte.eq_ignore_ascii_case(&b'i'));
        let value = parse::<f64>(text).filter(|value| spelled_out || !value.is_infinite());
        value.ok_or_else(|| at.fault(Reason::Double))
    }

    fn number_or_string(&mut self) -> Result<&[u8], Fault> {
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
