//! Writes the values of JSON as values of OTLP, while they are read.
//!
//! *Guarantees*: one pass over the text. What is written is at most seven times as long. Of members of an object with
//! the same key the last one remains, as in the Collector. The work for a line is bounded, whatever is in it.
//!
//! *Assumes*: the text is UTF-8.

use kubewake_otlp::wire::{self, put_header, put_tag};

use super::object_keys::ObjectKeys;
use super::{JsonNumber, JsonString, MAX_DEPTH, read_number, skip_blanks};
use crate::any_value::{ARRAY, KEY, KEY_VALUE_LIST, Scalar, VALUE, put_attribute, put_field};

/// Values of a line, at most. Real lines have some dozens.
const MAX_VALUES: usize = 4096;
/// Bytes of memory that a buffer keeps between requests.
const KEPT_CAPACITY: usize = 1024;
/// Field of `ArrayValue` and of `KeyValueList`.
const VALUES: u32 = 1;

/// Buffers for one line after the other.
#[derive(Debug, Default)]
pub(crate) struct JsonScratch {
    /// Keys and texts with escapes.
    key: Vec<u8>,
    text: Vec<u8>,
    /// The members of the objects that are being read.
    keys: ObjectKeys,
    /// Values that the line may still have.
    values_left: usize,
}

/// A scalar as it is read: text with escapes is resolved when it is written.
enum Token<'a> {
    Null,
    Bool(bool),
    Number(JsonNumber),
    Text(JsonString<'a>),
    Object(&'a [u8]),
    List(&'a [u8]),
}

impl<'a> Token<'a> {
    /// Reads the value at the beginning of `text`: all of a scalar, or the bracket of an object or a list.
    #[inline]
    fn read(text: &'a [u8]) -> Option<(Self, &'a [u8])> {
        Some(match text {
            [b'"', rest @ ..] => {
                let (text, rest) = JsonString::read(rest)?;
                (Self::Text(text), rest)
            }
            [b'{', rest @ ..] => (Self::Object(rest), rest),
            [b'[', rest @ ..] => (Self::List(rest), rest),
            [b't', b'r', b'u', b'e', rest @ ..] => (Self::Bool(true), rest),
            [b'f', b'a', b'l', b's', b'e', rest @ ..] => (Self::Bool(false), rest),
            [b'n', b'u', b'l', b'l', rest @ ..] => (Self::Null, rest),
            _ => {
                let (number, _, rest) = read_number(text)?;
                (Self::Number(number), rest)
            }
        })
    }
}

impl JsonScratch {
    /// Begins a line.
    pub(crate) fn begin(&mut self) {
        self.values_left = MAX_VALUES;
        self.keys.clear();
    }

    /// Releases the memory that long lines have left.
    pub(crate) fn release_memory(&mut self) {
        for buffer in [&mut self.key, &mut self.text] {
            buffer.clear();
            buffer.shrink_to(KEPT_CAPACITY);
        }
        self.keys.release_memory();
    }

    /// Reads the members of an object behind its opening bracket, up to and with its closing one. `put` gets each key
    /// with the bytes from its value on, and returns those behind the value.
    #[inline]
    pub(crate) fn read_members<'a>(
        &mut self,
        text: &'a [u8],
        mut put: impl FnMut(&mut Self, &[u8], &'a [u8]) -> Option<&'a [u8]>,
    ) -> Option<&'a [u8]> {
        let mut rest = skip_blanks(text);
        if let [b'}', tail @ ..] = rest {
            return Some(tail);
        }
        loop {
            let [b'"', key @ ..] = rest else { return None };
            let (key, tail) = JsonString::read(key)?;
            let [b':', value @ ..] = skip_blanks(tail) else { return None };
            let value = skip_blanks(value);
            self.values_left = self.values_left.checked_sub(1)?;
            rest = if key.has_escapes {
                let mut scratch = std::mem::take(&mut self.key);
                let rest = put(self, key.resolve(&mut scratch)?, value)?;
                self.key = scratch;
                rest
            } else {
                put(self, key.raw, value)?
            };
            match skip_blanks(rest) {
                [b',', tail @ ..] => rest = skip_blanks(tail),
                [b'}', tail @ ..] => return Some(tail),
                _ => return None,
            }
        }
    }

    /// Writes a member of an object as a `KeyValue`, the field `number` of the message around it. An earlier one with
    /// the same key is removed when the object ends. Returns the bytes behind the value.
    #[inline]
    pub(crate) fn put_member<'a>(
        &mut self,
        out: &mut Vec<u8>,
        number: u32,
        key: &[u8],
        value: &'a [u8],
        depth: usize,
    ) -> Option<&'a [u8]> {
        self.keys.add(key, out)?;
        self.put_key_value(out, number, key, value, depth)
    }

    /// Writes a `KeyValue` without a look at other keys.
    #[inline]
    pub(crate) fn put_key_value<'a>(
        &mut self,
        out: &mut Vec<u8>,
        number: u32,
        key: &[u8],
        value: &'a [u8],
        depth: usize,
    ) -> Option<&'a [u8]> {
        let (token, rest) = Token::read(value)?;
        if let Some(scalar) = self.resolve(&token)? {
            put_attribute(out, number, key, scalar);
            return Some(rest);
        }
        let member = open(out, number);
        put_field(out, KEY, key);
        let rest = self.put_container(out, VALUE, &token, depth)?;
        close(out, member);
        Some(rest)
    }

    /// Writes a value as the field `number`, an `AnyValue`. Returns the bytes behind it.
    pub(crate) fn put_value<'a>(
        &mut self,
        out: &mut Vec<u8>,
        number: u32,
        value: &'a [u8],
        depth: usize,
    ) -> Option<&'a [u8]> {
        let (token, rest) = Token::read(value)?;
        let Some(scalar) = self.resolve(&token)? else { return self.put_container(out, number, &token, depth) };
        put_header(out, number, scalar.size());
        scalar.put(out);
        Some(rest)
    }

    /// A scalar's value; `Some(None)` for an object or a list, and `None` for a malformed text.
    #[inline]
    fn resolve<'b>(&'b mut self, token: &Token<'b>) -> Option<Option<Scalar<'b>>> {
        Some(Some(match token {
            Token::Null => Scalar::Null,
            Token::Bool(value) => Scalar::Bool(*value),
            Token::Number(JsonNumber::Int(value)) => Scalar::Int(*value),
            Token::Number(JsonNumber::Double(value)) => Scalar::Double(*value),
            Token::Text(text) => Scalar::Text(text.resolve(&mut self.text)?),
            Token::Object(_) | Token::List(_) => return Some(None),
        }))
    }

    /// Writes an object or a list, whose opening bracket has been read, as the field `number`, an `AnyValue`.
    fn put_container<'a>(
        &mut self,
        out: &mut Vec<u8>,
        number: u32,
        token: &Token<'a>,
        depth: usize,
    ) -> Option<&'a [u8]> {
        if depth >= MAX_DEPTH {
            return None;
        }
        let value = open(out, number);
        let rest = match token {
            Token::Object(text) => {
                let list = open(out, KEY_VALUE_LIST);
                let frame = self.keys.begin_object();
                let rest = self
                    .read_members(text, |scratch, key, value| scratch.put_member(out, VALUES, key, value, depth + 1))?;
                self.keys.end_object(frame, out);
                close(out, list);
                rest
            }
            Token::List(text) => {
                let list = open(out, ARRAY);
                let rest = self.put_elements(out, text, depth + 1)?;
                close(out, list);
                rest
            }
            _ => return None,
        };
        close(out, value);
        Some(rest)
    }

    /// Writes the elements of a list behind its opening bracket, up to and with its closing one.
    fn put_elements<'a>(&mut self, out: &mut Vec<u8>, text: &'a [u8], depth: usize) -> Option<&'a [u8]> {
        let mut rest = skip_blanks(text);
        if let [b']', tail @ ..] = rest {
            return Some(tail);
        }
        loop {
            self.values_left = self.values_left.checked_sub(1)?;
            match skip_blanks(self.put_value(out, VALUES, rest, depth)?) {
                [b',', tail @ ..] => rest = skip_blanks(tail),
                [b']', tail @ ..] => return Some(tail),
                _ => return None,
            }
        }
    }

    /// Removes the members of the outermost object that were written again.
    pub(crate) fn end_record(&mut self, out: &mut Vec<u8>) {
        self.keys.end_object(0, out);
    }
}

/// Begins a field of unknown length, for which one byte of room is left: most values are short.
pub(crate) fn open(out: &mut Vec<u8>, number: u32) -> usize {
    put_tag(out, number, wire::LEN);
    out.push(0);
    out.len()
}

/// Ends a field. Its content moves up where its length needs more than the one byte of room.
#[inline]
pub(crate) fn close(out: &mut Vec<u8>, start: usize) {
    let length = out.len().saturating_sub(start);
    match start.checked_sub(1).and_then(|at| out.get_mut(at)) {
        Some(room) if length < 0x80 => *room = length as u8,
        _ => close_with_room(out, start, 1),
    }
}

/// Ends a field whose content began at `start`, behind `room` bytes for its length, at least one.
#[inline]
pub(crate) fn close_with_room(out: &mut Vec<u8>, start: usize, room: usize) {
    let end = out.len();
    let length = end.saturating_sub(start);
    let width = wire::varint_size(length as u64);
    let content = start.saturating_sub(room) + width;
    if width > room {
        out.resize(end + width - room, 0);
        out.copy_within(start..end, content);
    } else if width < room {
        out.copy_within(start..end, content);
        out.truncate(end - (room - width));
    }
    let mut rest = length as u64;
    let room = out.get_mut(content - width..content).unwrap_or_default();
    for byte in room.iter_mut() {
        *byte = rest as u8 | 0x80;
        rest >>= 7;
    }
    if let Some(last) = room.last_mut() {
        *last &= 0x7f;
    }
}
