//! Reads fields of messages, for all views.

use std::borrow::Cow;
use std::marker::PhantomData;

use crate::wire::{I32, I64, LEN, VARINT, WireField, WireFields};

/// Text that may not be UTF-8, for display. Allocates only when it is not.
pub fn lossy(text: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(text)
}

/// A message as a named type.
pub trait MessageView<'a>: Copy {
    /// Views the content of a message as this type. Any bytes are allowed.
    fn new(content: &'a [u8]) -> Self;

    /// The content of the message.
    fn as_bytes(&self) -> &'a [u8];
}

/// Raw bytes are a view of themselves.
impl<'a> MessageView<'a> for &'a [u8] {
    fn new(content: &'a [u8]) -> Self {
        content
    }

    fn as_bytes(&self) -> &'a [u8] {
        self
    }
}

/// Declares a view: a copyable newtype over the content of a message.
macro_rules! view {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name<'a>(&'a [u8]);

        impl<'a> $crate::view::MessageView<'a> for $name<'a> {
            fn new(content: &'a [u8]) -> Self {
                Self(content)
            }

            fn as_bytes(&self) -> &'a [u8] {
                self.0
            }
        }
    };
}
pub(super) use view;

/// The last field with that number and wire type.
pub(super) fn last(message: &[u8], number: u32, wire: u8) -> Option<WireField<'_>> {
    WireFields::new(message).filter(|field| field.number == number && field.wire == wire).last()
}

/// String or bytes, empty if absent.
pub(super) fn bytes(message: &[u8], number: u32) -> &[u8] {
    content(message, number).unwrap_or_default()
}

/// String, bytes or message, if present.
pub(super) fn content(message: &[u8], number: u32) -> Option<&[u8]> {
    last(message, number, LEN).map(|field| field.value)
}

/// A singular message. If it comes in parts they are merged, which for protobuf is concatenation.
pub(super) fn merged(message: &[u8], number: u32) -> Cow<'_, [u8]> {
    let mut parts = WireFields::new(message).filter(|field| field.is_len(number)).map(|field| field.value);
    let Some(first) = parts.next() else { return Cow::Borrowed(&[]) };
    parts.fold(Cow::Borrowed(first), |mut whole, part| {
        whole.to_mut().extend_from_slice(part);
        whole
    })
}

/// The last field `inner` with that wire type in the message in field `number`. All parts of a message are
/// searched.
pub(super) fn last_within(message: &[u8], number: u32, inner: u32, wire: u8) -> Option<WireField<'_>> {
    let parts = WireFields::new(message).filter(|field| field.is_len(number));
    parts.filter_map(|part| last(part.value, inner, wire)).last()
}

/// uint32, uint64, bool or enum.
pub(super) fn varint(message: &[u8], number: u32) -> u64 {
    last(message, number, VARINT).and_then(|field| field.as_varint()).unwrap_or_default()
}

/// uint32: protobuf truncates longer values.
pub(super) fn uint32(message: &[u8], number: u32) -> u32 {
    varint(message, number) as u32
}

/// int32 or enum: protobuf truncates longer values.
pub(super) fn int32(message: &[u8], number: u32) -> i32 {
    varint(message, number) as i32
}

/// sint32, in zigzag encoding.
pub(super) fn sint32(message: &[u8], number: u32) -> i32 {
    zigzag(uint32(message, number))
}

pub(super) fn zigzag(raw: u32) -> i32 {
    (raw >> 1) as i32 ^ -((raw & 1) as i32)
}

pub(super) fn fixed64(message: &[u8], number: u32) -> u64 {
    last(message, number, I64).and_then(|field| field.as_fixed64()).unwrap_or_default()
}

pub(super) fn fixed32(message: &[u8], number: u32) -> u32 {
    last(message, number, I32).and_then(|field| field.as_fixed32()).unwrap_or_default()
}

pub(super) fn double(message: &[u8], number: u32) -> Option<f64> {
    last(message, number, I64).and_then(|field| field.as_double())
}

/// The messages of a repeated field, in order. Ends where the message around them stops being well formed.
#[derive(Clone, Copy, Debug)]
pub struct RepeatedField<'a, T> {
    fields: WireFields<'a>,
    number: u32,
    view: PhantomData<T>,
}

impl<'a, T: MessageView<'a>> RepeatedField<'a, T> {
    pub(super) fn new(message: &'a [u8], number: u32) -> Self {
        Self { fields: WireFields::new(message), number, view: PhantomData }
    }
}

impl<'a, T: MessageView<'a>> Iterator for RepeatedField<'a, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        let number = self.number;
        self.fields.find(|field| field.is_len(number)).map(|field| T::new(field.value))
    }
}
