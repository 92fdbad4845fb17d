//! Values of attributes and bodies.

use std::borrow::Cow;
use std::marker::PhantomData;

use super::common::split_plain;
use super::{KeyValue, View};
use crate::numbers::{any_value, key_value};
use crate::wire::{Fields, I64, LEN, VARINT};

/// A value of any type, read one level deep: what is in an array or a list is read when it is asked for.
#[derive(Clone, Copy, Debug)]
pub enum AnyValue<'a> {
    /// No value, or one of a kind that is not known here.
    None,
    /// Text, not checked for UTF-8.
    String(&'a [u8]),
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A floating point number.
    Double(f64),
    /// Values in order, each to be seen by [`AnyValue::new`].
    Array(Values<'a, &'a [u8]>),
    /// Keys with values.
    KeyValueList(Values<'a, KeyValue<'a>>),
    /// Bytes.
    Bytes(&'a [u8]),
}

impl<'a> AnyValue<'a> {
    /// Reads the content of an `AnyValue` message. Of several values the last one counts; lists and maps that stand behind each
    /// other are one.
    pub fn new(content: &'a [u8]) -> Self {
        Self::read(Fields::new(content), Fields::new(&[]), 0)
    }

    /// Reads the `AnyValue` in field `number` of a message. It may be there in parts, which protobuf takes together as one.
    pub(super) fn within(message: &'a [u8], number: u32) -> Self {
        let mut holder = Fields::new(message);
        match holder.find(|field| field.is_len(number)) {
            Some(first) => Self::read(Fields::new(first.value), holder, number),
            None => AnyValue::None,
        }
    }

    /// Reads the fields of an `AnyValue`, and those of its further parts in field `number` of `holder`.
    #[inline]
    fn read(mut fields: Fields<'a>, mut holder: Fields<'a>, number: u32) -> Self {
        let mut value = AnyValue::None;
        loop {
            while let Some(field) = fields.next() {
                let behind = || Behind { value: fields, holder, number };
                value = match (field.number, field.wire) {
                    (any_value::STRING, LEN) => AnyValue::String(field.value),
                    (any_value::BOOL, VARINT) => AnyValue::Bool(field.as_varint().unwrap_or_default() != 0),
                    (any_value::INT, VARINT) => AnyValue::Int(field.as_varint().unwrap_or_default() as i64),
                    (any_value::DOUBLE, I64) => AnyValue::Double(field.as_double().unwrap_or_default()),
                    // What continues a list or a map is found when that is read.
                    (any_value::ARRAY, LEN) if matches!(value, AnyValue::Array(_)) => continue,
                    (any_value::KVLIST, LEN) if matches!(value, AnyValue::KeyValueList(_)) => continue,
                    (any_value::ARRAY, LEN) => AnyValue::Array(Values::new(field.value, behind(), any_value::ARRAY)),
                    (any_value::KVLIST, LEN) => {
                        AnyValue::KeyValueList(Values::new(field.value, behind(), any_value::KVLIST))
                    }
                    (any_value::BYTES, LEN) => AnyValue::Bytes(field.value),
                    _ => continue,
                };
            }
            match holder.find(|field| field.is_len(number)) {
                Some(part) => fields = Fields::new(part.value),
                None => return value,
            }
        }
    }

    /// The text, if it is text.
    pub fn as_text(&self) -> Option<&'a [u8]> {
        match *self {
            AnyValue::String(text) => Some(text),
            _ => None,
        }
    }

    /// The text, if it is text and UTF-8.
    pub fn as_str(&self) -> Option<&'a str> {
        self.as_text().and_then(|text| std::str::from_utf8(text).ok())
    }
}

/// The values of a list, or the pairs of a map, in order. Ends where a message stops being well formed.
#[derive(Clone, Copy, Debug)]
pub struct Values<'a, T> {
    /// Of the part that is being read.
    fields: Fields<'a>,
    behind: Behind<'a>,
    /// Which field of `AnyValue` it is.
    kind: u32,
    view: PhantomData<T>,
}

/// Where further parts of a list may be.
#[derive(Clone, Copy, Debug)]
struct Behind<'a> {
    /// In the same `AnyValue`,
    value: Fields<'a>,
    /// and in those in field `number` of the message around it.
    holder: Fields<'a>,
    number: u32,
}

impl<'a, T> Values<'a, T> {
    fn new(content: &'a [u8], behind: Behind<'a>, kind: u32) -> Self {
        Self { fields: Fields::new(content), behind, kind, view: PhantomData }
    }

    /// Goes on with the next part; false if there is none.
    #[cold]
    fn next_part(&mut self) -> bool {
        let Self { fields, behind: Behind { value, holder, number }, kind, .. } = self;
        loop {
            if let Some(part) = value.find(|field| field.is_len(*kind)) {
                *fields = Fields::new(part.value);
                return true;
            }
            match holder.find(|field| field.is_len(*number)) {
                Some(part) => *value = Fields::new(part.value),
                None => return false,
            }
        }
    }
}

impl<'a, T: View<'a>> Iterator for Values<'a, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        loop {
            if let Some(field) = self.fields.find(|field| field.is_len(any_value::VALUES)) {
                return Some(T::new(field.value));
            }
            if !self.next_part() {
                return None;
            }
        }
    }
}

impl<'a> KeyValue<'a> {
    /// The value.
    pub fn value(&self) -> AnyValue<'a> {
        match split_plain(self.as_bytes()) {
            Some((_, value)) => AnyValue::new(value),
            None => AnyValue::within(self.as_bytes(), key_value::VALUE),
        }
    }

    /// The content of the `AnyValue` message, as it was sent. One that was sent in parts is put together, which allocates.
    pub fn raw_value(&self) -> Cow<'a, [u8]> {
        match split_plain(self.as_bytes()) {
            Some((_, value)) => Cow::Borrowed(value),
            None => super::message::merged(self.as_bytes(), key_value::VALUE),
        }
    }
}
