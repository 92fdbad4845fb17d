//! Values of attributes and bodies.

use std::borrow::Cow;
use std::marker::PhantomData;

use super::common::split_plain;
use super::{KeyValue, MessageView};
use crate::field_numbers::{any_value, key_value};
use crate::wire::{I64, LEN, VARINT, WireFields};

/// A value of any type, read one level deep: the elements of a list or map are read on demand.
#[derive(Clone, Copy, Debug)]
pub enum AnyValue<'a> {
    /// No value, or one of an unknown type.
    None,
    /// Text, not checked for UTF-8.
    String(&'a [u8]),
    Bool(bool),
    Int(i64),
    Double(f64),
    /// Values in order, each to be viewed by [`AnyValue::new`].
    Array(ValueList<'a, &'a [u8]>),
    KeyValueList(ValueList<'a, KeyValue<'a>>),
    Bytes(&'a [u8]),
}

impl<'a> AnyValue<'a> {
    /// Reads the content of an `AnyValue` message. Of several values the last one counts; consecutive lists or
    /// maps are merged.
    pub fn new(content: &'a [u8]) -> Self {
        Self::read(WireFields::new(content), WireFields::new(&[]), 0)
    }

    /// Reads the `AnyValue` in field `number` of a message. A message that comes in parts is merged.
    pub(super) fn within(message: &'a [u8], number: u32) -> Self {
        let mut holder = WireFields::new(message);
        match holder.find(|field| field.is_len(number)) {
            Some(first) => Self::read(WireFields::new(first.value), holder, number),
            None => AnyValue::None,
        }
    }

    /// Reads the fields of an `AnyValue`, and those of its further parts in field `number` of `holder`.
    #[inline]
    fn read(mut fields: WireFields<'a>, mut holder: WireFields<'a>, number: u32) -> Self {
        let mut value = AnyValue::None;
        loop {
            while let Some(field) = fields.next() {
                let behind = || FurtherParts { value: fields, holder, number };
                value = match (field.number, field.wire) {
                    (any_value::STRING, LEN) => AnyValue::String(field.value),
                    (any_value::BOOL, VARINT) => AnyValue::Bool(field.as_varint().unwrap_or_default() != 0),
                    (any_value::INT, VARINT) => AnyValue::Int(field.as_varint().unwrap_or_default() as i64),
                    (any_value::DOUBLE, I64) => AnyValue::Double(field.as_double().unwrap_or_default()),
                    // Further parts of a list or a map are found when it is read.
                    (any_value::ARRAY, LEN) if matches!(value, AnyValue::Array(_)) => continue,
                    (any_value::KVLIST, LEN) if matches!(value, AnyValue::KeyValueList(_)) => continue,
                    (any_value::ARRAY, LEN) => AnyValue::Array(ValueList::new(field.value, behind(), any_value::ARRAY)),
                    (any_value::KVLIST, LEN) => {
                        AnyValue::KeyValueList(ValueList::new(field.value, behind(), any_value::KVLIST))
                    }
                    (any_value::BYTES, LEN) => AnyValue::Bytes(field.value),
                    _ => continue,
                };
            }
            match holder.find(|field| field.is_len(number)) {
                Some(part) => fields = WireFields::new(part.value),
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
pub struct ValueList<'a, T> {
    /// The fields of the current part.
    fields: WireFields<'a>,
    behind: FurtherParts<'a>,
    /// The field of `AnyValue` that the list is in.
    kind: u32,
    view: PhantomData<T>,
}

/// Location of further parts of a list.
#[derive(Clone, Copy, Debug)]
struct FurtherParts<'a> {
    value: WireFields<'a>,
    /// and in those in field `number` of the message around it.
    holder: WireFields<'a>,
    number: u32,
}

impl<'a, T> ValueList<'a, T> {
    fn new(content: &'a [u8], behind: FurtherParts<'a>, kind: u32) -> Self {
        Self { fields: WireFields::new(content), behind, kind, view: PhantomData }
    }

    /// Continues with the next part; false if there is none.
    #[cold]
    fn next_part(&mut self) -> bool {
        let Self { fields, behind: FurtherParts { value, holder, number }, kind, .. } = self;
        loop {
            if let Some(part) = value.find(|field| field.is_len(*kind)) {
                *fields = WireFields::new(part.value);
                return true;
            }
            match holder.find(|field| field.is_len(*number)) {
                Some(part) => *value = WireFields::new(part.value),
                None => return false,
            }
        }
    }
}

impl<'a, T: MessageView<'a>> Iterator for ValueList<'a, T> {
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
    pub fn value(&self) -> AnyValue<'a> {
        match split_plain(self.as_bytes()) {
            Some((_, value)) => AnyValue::new(value),
            None => AnyValue::within(self.as_bytes(), key_value::VALUE),
        }
    }

    /// The content of the `AnyValue` message, as it was sent. One that was sent in parts is merged, which
    /// allocates.
    pub fn raw_value(&self) -> Cow<'a, [u8]> {
        match split_plain(self.as_bytes()) {
            Some((_, value)) => Cow::Borrowed(value),
            None => super::message::merged(self.as_bytes(), key_value::VALUE),
        }
    }
}
