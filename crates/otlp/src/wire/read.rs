//! Reads varints, tags and fields.

use super::{GROUP_END, GROUP_START, I32, I64, LEN, VARINT, WireError};

/// Reads a varint and advances `rest`. On an error `rest` is unchanged.
#[inline(always)]
pub fn read_varint(rest: &mut &[u8]) -> Result<u64, WireError> {
    match **rest {
        [byte, ref tail @ ..] if byte < 0x80 => {
            *rest = tail;
            Ok(u64::from(byte))
        }
        [low, high, ref tail @ ..] if high < 0x80 => {
            *rest = tail;
            Ok(u64::from(low & 0x7f) | u64::from(high) << 7)
        }
        _ => read_long_varint(rest),
    }
}

/// A varint of three bytes or more: the general case, out of line so that the short ones stay small.
#[inline(never)]
fn read_long_varint(rest: &mut &[u8]) -> Result<u64, WireError> {
    let mut value = 0u64;
    for (index, &byte) in rest.iter().take(10).enumerate() {
        // The tenth byte holds bit 63 alone.
        if index == 9 && byte > 1 {
            return Err(WireError::VarintOverflow);
        }
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            *rest = rest.get(index + 1..).unwrap_or_default();
            return Ok(value);
        }
    }
    Err(WireError::Truncated)
}

/// Reads a tag: its field number and its wire type, which may be invalid.
#[inline(always)]
pub fn read_tag(rest: &mut &[u8]) -> Result<(u32, u8), WireError> {
    let mut ahead = *rest;
    let tag = u32::try_from(read_varint(&mut ahead)?).map_err(|_| WireError::TagOverflow)?;
    *rest = ahead;
    Ok((tag >> 3, (tag & 7) as u8))
}

/// Advances `rest` behind a value of the wire type. Returns a `LEN`'s content, or the encoded bytes.
#[inline(always)]
pub fn skip_value<'a>(rest: &mut &'a [u8], wire: u8) -> Result<&'a [u8], WireError> {
    let mut ahead = *rest;
    let size = match wire {
        LEN => {
            let size = read_varint(&mut ahead)?;
            let (value, tail) =
                usize::try_from(size).ok().and_then(|size| ahead.split_at_checked(size)).ok_or(WireError::Length)?;
            *rest = tail;
            return Ok(value);
        }
        VARINT => {
            read_varint(&mut ahead)?;
            rest.len() - ahead.len()
        }
        I64 => 8,
        I32 => 4,
        other => return skip_group(rest, other),
    };
    let (value, tail) = rest.split_at_checked(size).ok_or(WireError::Truncated)?;
    *rest = tail;
    Ok(value)
}

/// Advances `rest` behind a group, whose start was read. All protobuf readers skip unknown groups, so that a
/// reader which does not could miss the fields behind one.
#[cold]
#[inline(never)]
fn skip_group<'a>(rest: &mut &'a [u8], wire: u8) -> Result<&'a [u8], WireError> {
    if wire != GROUP_START {
        return Err(WireError::WireType(wire));
    }
    let mut ahead = *rest;
    let mut depth = 1usize;
    while depth > 0 {
        match read_tag(&mut ahead)? {
            (0, _) => return Err(WireError::FieldZero),
            (_, GROUP_START) => depth += 1,
            (_, GROUP_END) => depth -= 1,
            (_, wire) => drop(skip_value(&mut ahead, wire)?),
        }
    }
    let (value, tail) = rest.split_at_checked(rest.len() - ahead.len()).ok_or(WireError::Truncated)?;
    *rest = tail;
    Ok(value)
}

/// One field of a message, borrowed from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireField<'a> {
    /// The field number, never 0.
    pub number: u32,
    /// [`VARINT`], [`I64`], [`LEN`] or [`I32`]; or that of a group, which no field of OTLP is.
    pub wire: u8,
    /// The whole field: tag, length if any, and value.
    pub raw: &'a [u8],
    /// The content of a `LEN`; of any other wire type the encoded value.
    pub value: &'a [u8],
}

impl<'a> WireField<'a> {
    /// Reads one field and advances `rest`. On an error `rest` is unchanged.
    #[inline(always)]
    pub fn read(rest: &mut &'a [u8]) -> Result<Self, WireError> {
        let start = *rest;
        let mut ahead = start;
        let (number, wire) = read_tag(&mut ahead)?;
        if number == 0 {
            return Err(WireError::FieldZero);
        }
        let value = skip_value(&mut ahead, wire)?;
        let (raw, tail) = start.split_at_checked(start.len() - ahead.len()).ok_or(WireError::Truncated)?;
        *rest = tail;
        Ok(Self { number, wire, raw, value })
    }

    /// Whether it is a length-delimited field with this number.
    #[inline]
    pub fn is_len(&self, number: u32) -> bool {
        self.number == number && self.wire == LEN
    }

    /// The number in a varint; `None` for another wire type.
    pub fn as_varint(&self) -> Option<u64> {
        let mut value = self.value;
        (self.wire == VARINT).then(|| read_varint(&mut value).ok()).flatten()
    }

    /// The number in eight bytes; `None` for another wire type.
    pub fn as_fixed64(&self) -> Option<u64> {
        (self.wire == I64).then(|| self.value.try_into().ok().map(u64::from_le_bytes)).flatten()
    }

    /// The number in four bytes; `None` for another wire type.
    pub fn as_fixed32(&self) -> Option<u32> {
        (self.wire == I32).then(|| self.value.try_into().ok().map(u32::from_le_bytes)).flatten()
    }

    /// The floating point number in eight bytes; `None` for another wire type.
    pub fn as_double(&self) -> Option<f64> {
        self.as_fixed64().map(f64::from_bits)
    }

    /// The content of a `LEN`; `None` for another wire type.
    pub fn as_len(&self) -> Option<&'a [u8]> {
        (self.wire == LEN).then_some(self.value)
    }
}

/// The fields of a message in their order.
///
/// The iterator ends at the first malformed field; [`WireFields::rest`] is then the unread part, and is empty
/// exactly when the whole message was well formed.
#[derive(Clone, Copy, Debug)]
pub struct WireFields<'a> {
    rest: &'a [u8],
}

impl<'a> WireFields<'a> {
    /// The fields of the message that these bytes are.
    #[inline]
    pub fn new(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    /// The unread part.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The last field with that number, which is the one that counts where a field is not repeated.
    pub fn last_of(self, number: u32) -> Option<WireField<'a>> {
        self.filter(|field| field.number == number).last()
    }
}

impl<'a> Iterator for WireFields<'a> {
    type Item = WireField<'a>;

    #[inline(always)]
    fn next(&mut self) -> Option<WireField<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        WireField::read(&mut self.rest).ok()
    }
}
