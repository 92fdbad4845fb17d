//! Resources, scopes and attributes.

use super::message::{RepeatedField, bytes, uint32, view};
use super::value::AnyValue;
use crate::field_numbers::{key_value, resource, scope};
use crate::wire::LEN;

view! {
    /// The source of records: the content of a `Resource`.
    Resource
}

impl<'a> Resource<'a> {
    pub fn attributes(&self) -> AttributesView<'a> {
        AttributesView::new(self.0, resource::ATTRIBUTES)
    }

    /// The number of attributes that the sender dropped.
    pub fn dropped_attributes(&self) -> u32 {
        uint32(self.0, resource::DROPPED_ATTRIBUTES)
    }
}

view! {
    /// The library that made the records: the content of an `InstrumentationScope`.
    Scope
}

impl<'a> Scope<'a> {
    /// The name of the library.
    pub fn name(&self) -> &'a [u8] {
        bytes(self.0, scope::NAME)
    }

    /// The version of the library.
    pub fn version(&self) -> &'a [u8] {
        bytes(self.0, scope::VERSION)
    }

    pub fn attributes(&self) -> AttributesView<'a> {
        AttributesView::new(self.0, scope::ATTRIBUTES)
    }

    /// The number of attributes that the sender dropped.
    pub fn dropped_attributes(&self) -> u32 {
        uint32(self.0, scope::DROPPED_ATTRIBUTES)
    }
}

view! {
    /// A key with its value.
    KeyValue
}

impl<'a> KeyValue<'a> {
    #[inline]
    pub fn key(&self) -> &'a [u8] {
        match split_plain(self.0) {
            Some((key, _)) => key,
            None => bytes(self.0, key_value::KEY),
        }
    }
}

/// The key and the value of a pair in the usual encoding: a short key, then a value, and nothing else. Keys are
/// read most often, and this takes no walk.
#[inline]
pub(super) fn split_plain(pair: &[u8]) -> Option<(&[u8], &[u8])> {
    /// The tags of the two fields.
    const KEY: u8 = (key_value::KEY << 3) as u8 | LEN;
    const VALUE: u8 = (key_value::VALUE << 3) as u8 | LEN;
    let [KEY, length @ 0..0x80, rest @ ..] = pair else { return None };
    let (key, rest) = rest.split_at_checked(usize::from(*length))?;
    let (length, value) = match rest {
        [VALUE, length @ 0..0x80, value @ ..] => (usize::from(*length), value),
        [VALUE, low, high @ 1..0x80, value @ ..] => (usize::from(*low & 0x7f) | usize::from(*high) << 7, value),
        _ => return None,
    };
    (value.len() == length).then_some((key, value))
}

/// A list of attributes, in the order in which they were sent.
#[derive(Clone, Copy, Debug)]
pub struct AttributesView<'a> {
    message: &'a [u8],
    number: u32,
}

impl<'a> AttributesView<'a> {
    pub(super) fn new(message: &'a [u8], number: u32) -> Self {
        Self { message, number }
    }

    /// All attributes. Keys should be unique, but may not be.
    pub fn iter(&self) -> RepeatedField<'a, KeyValue<'a>> {
        RepeatedField::new(self.message, self.number)
    }

    /// The value of the first attribute with that key.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Option<AnyValue<'a>> {
        let key = key.as_ref();
        self.iter().find(|attribute| attribute.key() == key).map(|attribute| attribute.value())
    }

    /// The text of the first attribute with that key, if it is text.
    pub fn text(&self, key: impl AsRef<[u8]>) -> Option<&'a [u8]> {
        self.get(key).and_then(|value| value.as_text())
    }
}

impl<'a> IntoIterator for AttributesView<'a> {
    type Item = KeyValue<'a>;
    type IntoIter = RepeatedField<'a, KeyValue<'a>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
