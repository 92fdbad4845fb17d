//! Protobuf's wire format.

use super::Error;

/// A message that is being read.
pub(super) struct Reader<'b> {
    rest: &'b [u8],
}

impl<'b> Reader<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The next field's number and wire type; `None` at the end.
    pub(super) fn tag(&mut self) -> Result<Option<(u32, u64)>, Error> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let (number, wire) = (tag >> 3, tag & 7);
        match u32::try_from(number) {
            _ if wire == 4 => Err(Error::EndGroup),
            Ok(number) if number > 0 && number <= i32::MAX.unsigned_abs() => Ok(Some((number, wire))),
            _ => Err(Error::Tag(i64::from(number as i32), wire)),
        }
    }

    pub(super) fn varint(&mut self) -> Result<u64, Error> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.rest.split_first().ok_or(Error::End)?;
            self.rest = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Error::Overflow)
    }

    /// Eight bytes.
    pub(super) fn fixed64(&mut self) -> Result<u64, Error> {
        let (bytes, rest) = self.rest.split_first_chunk::<8>().ok_or(Error::End)?;
        self.rest = rest;
        Ok(u64::from_le_bytes(*bytes))
    }

    /// What a length stands before.
    pub(super) fn bytes(&mut self) -> Result<&'b [u8], Error> {
        let length = self.varint()?;
        let length = i64::try_from(length).ok().and_then(|length| usize::try_from(length).ok()).ok_or(Error::Length)?;
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(Error::End)?;
        self.rest = rest;
        Ok(bytes)
    }

    /// The same, if the field's wire type says so.
    pub(super) fn delimited(&mut self, wire: u64, field: &str) -> Result<&'b [u8], Error> {
        if wire == 2 { self.bytes() } else { Err(Error::Mismatch { found: wire, field: field.to_owned() }) }
    }

    /// Steps over a field that nobody knows.
    pub(super) fn skip(&mut self, wire: u64) -> Result<(), Error> {
        match wire {
            3 => self.skip_group(),
            wire => self.skip_one(wire),
        }
    }

    /// Groups have not been in use for long; they are counted, not followed, so that they may nest as they like.
    fn skip_group(&mut self) -> Result<(), Error> {
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

    fn skip_one(&mut self, wire: u64) -> Result<(), Error> {
        match wire {
            0 => self.varint().map(drop),
            1 => self.fixed64().map(drop),
            2 => self.bytes().map(drop),
            5 => {
                self.rest = self.rest.get(4..).ok_or(Error::End)?;
                Ok(())
            }
            other => Err(Error::WireType(other)),
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

/// A whole number. Negative ones take ten bytes.
pub(super) fn put_int(to: &mut Vec<u8>, number: u32, value: i64) {
    put_tag(to, number, 0);
    put_varint(to, value.cast_unsigned());
}
