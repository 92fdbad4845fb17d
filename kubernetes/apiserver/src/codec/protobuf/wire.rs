//! Protobuf's wire format.

use super::ProtobufDecodeError;

/// A message that is being decoded.
pub(super) struct WireReader<'b> {
    rest: &'b [u8],
}

impl<'b> WireReader<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The number and wire type of the next field; `None` at the end.
    pub(super) fn tag(&mut self) -> Result<Option<(u32, u64)>, ProtobufDecodeError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let number = tag >> 3;
        let wire = tag & 7;
        match u32::try_from(number) {
            _ if wire == 4 => Err(ProtobufDecodeError::EndGroup),
            Ok(number) if number > 0 && number <= i32::MAX.unsigned_abs() => Ok(Some((number, wire))),
            _ => Err(ProtobufDecodeError::Tag(i64::from(number as i32), wire)),
        }
    }

    pub(super) fn varint(&mut self) -> Result<u64, ProtobufDecodeError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.rest.split_first().ok_or(ProtobufDecodeError::End)?;
            self.rest = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(ProtobufDecodeError::Overflow)
    }

    pub(super) fn fixed64(&mut self) -> Result<u64, ProtobufDecodeError> {
        let (bytes, rest) = self.rest.split_first_chunk::<8>().ok_or(ProtobufDecodeError::End)?;
        self.rest = rest;
        Ok(u64::from_le_bytes(*bytes))
    }

    /// A delimited value.
    pub(super) fn bytes(&mut self) -> Result<&'b [u8], ProtobufDecodeError> {
        let length = self.varint()?;
        let length = i64::try_from(length)
            .ok()
            .and_then(|length| usize::try_from(length).ok())
            .ok_or(ProtobufDecodeError::Length)?;
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(ProtobufDecodeError::End)?;
        self.rest = rest;
        Ok(bytes)
    }

    /// A delimited value, if the field has that wire type.
    pub(super) fn delimited(&mut self, wire: u64, field: &str) -> Result<&'b [u8], ProtobufDecodeError> {
        if wire == 2 {
            self.bytes()
        } else {
            Err(ProtobufDecodeError::Mismatch { found: wire, field: field.to_owned() })
        }
    }

    /// Skips an unknown field.
    pub(super) fn skip(&mut self, wire: u64) -> Result<(), ProtobufDecodeError> {
        match wire {
            3 => self.skip_group(),
            wire => self.skip_one(wire),
        }
    }

    /// Groups are obsolete; they are counted and not recursed into, so that their nesting is harmless.
    fn skip_group(&mut self) -> Result<(), ProtobufDecodeError> {
        let mut depth = 1_usize;
        while depth > 0 {
            let tag = self.varint()?;
            match tag & 7 {
                3 => depth += 1,
                4 => depth -= 1,
                wire => self.skip_one(wire)?,
            }
        }
        Ok(())
    }

    fn skip_one(&mut self, wire: u64) -> Result<(), ProtobufDecodeError> {
        match wire {
            0 => self.varint().map(drop),
            1 => self.fixed64().map(drop),
            2 => self.bytes().map(drop),
            5 => {
                self.rest = self.rest.get(4..).ok_or(ProtobufDecodeError::End)?;
                Ok(())
            }
            other => Err(ProtobufDecodeError::WireType(other)),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}

pub(super) fn put_varint(to: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        to.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

pub(super) fn put_tag(to: &mut Vec<u8>, number: u32, wire: u64) {
    put_varint(to, u64::from(number) << 3 | wire);
}

pub(super) fn put_bytes(to: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    put_tag(to, number, 2);
    put_varint(to, bytes.len() as u64);
    to.extend_from_slice(bytes);
}

/// An integer. Negative ones take ten bytes.
pub(super) fn put_int(to: &mut Vec<u8>, number: u32, value: i64) {
    put_tag(to, number, 0);
    put_varint(to, value.cast_unsigned());
}
