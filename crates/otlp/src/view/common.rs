//! Resources, scopes and attributes.

use super::message::{Repeated, bytes, uint32, view};
use super::value::AnyValue;
use crate::numbers::{key_value, resource, scope};
use crate::wire::LEN;

view! {
    /// Who sent the records: the content of a `Resource`.
    Resource
}

impl<'a> Resource<'a> {
    /// What describes the resource.
    pub fn attributes(&self) -> Attributes<'a> {
        Attributes::new(self.0, resource::ATTRIBUTES)
    }

    /// How many attributes were dropped before it was sent.
    pub fn dropped_attributes(&self) -> u32 {
        uint32(self.0, resource::DROPPED_ATTRIBUTES)
    }
}

view! {
    /// Which library made the records: the content of an `InstrumentationScope`.
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

    /// What describes the scope.
    pub fn attributes(&self) -> Attributes<'a> {
        Attributes::new(self.0, scope::ATTRIBUTES)
    }

    /// How many attributes were dropped before it was sent.
    pub fn dropped_attributes(&self) -> u32 {
        uint32(self.0, scope::DROPPED_ATTRIBUTES)
    }
}

view! {
    /// A key with its value.
    KeyValue
}

impl<'a> KeyValue<'a> {
    /// The key.
    #[inline]
    pub fn key(&self) -> &'a [u8] {
        match split_plain(self.0) {
            Some((key, _)) => key,
            None => bytes(self.0, key_value::KEY),
        }
    }
}

/// The key and the value of a pair that is written as everybody writes it: a short key, then a value, and nothing else. Keys are
/// what is looked at most, and this takes no walk.
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

/// The attributes of something, in the order in which they were sent.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    message: &'a [u8],
    number: u32,
}

impl<'a> Attributes<'a> {
    pub(super) fn new(message: &'a [u8], number: u32) -> Self {
        Self { message, number }
    }

    /// All of them. Keys should differ, but nothing made sure that they do.
    pub fn iter(&self) -> Repeated<'a, KeyValue<'a>> {
        Repeated::new(self.message, self.number)
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

impl<'a> IntoIterator for Attributes<'a> {
    type Item = KeyValue<'a>;
    type IntoIter = Repeated<'a, KeyValue<'a>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
