//! Texts of settings, and the references that documents have in their place.

use std::{fmt, ops::Deref, path::PathBuf};

/// A text of a document: its value, and the reference that stands in its place, if there is one.
///
/// Texts of a loaded document have no reference: the loader has expanded it. Two texts are equal if their values are.
#[derive(Clone, Default)]
pub struct ConfigText {
    value: String,
    reference: Option<TextReference>,
}

/// What stands in a document in the place of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextReference {
    /// The content of a file, written there by [`escape`](crate::escape): `${file:path}`. The path must not have a `$`
    /// or a `}` in it.
    File(PathBuf),
    /// The value of a variable, followed by a text: `${env:NAME}:4317`.
    Env { name: &'static str, rest: String },
}

impl ConfigText {
    /// A text that a document refers to and does not contain.
    pub fn referenced(value: impl Into<String>, reference: TextReference) -> Self {
        Self { value: value.into(), reference: Some(reference) }
    }

    pub fn as_str(&self) -> &str {
        &self.value
    }

    pub(crate) fn reference(&self) -> Option<&TextReference> {
        self.reference.as_ref()
    }
}

impl Deref for ConfigText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.value
    }
}

impl From<&str> for ConfigText {
    fn from(value: &str) -> Self {
        Self { value: value.to_owned(), reference: None }
    }
}

impl From<String> for ConfigText {
    fn from(value: String) -> Self {
        Self { value, reference: None }
    }
}

impl fmt::Debug for ConfigText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.value, f)
    }
}

impl fmt::Display for ConfigText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.value)
    }
}

impl PartialEq for ConfigText {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl Eq for ConfigText {}

impl PartialEq<str> for ConfigText {
    fn eq(&self, other: &str) -> bool {
        self.value == other
    }
}

impl PartialEq<&str> for ConfigText {
    fn eq(&self, other: &&str) -> bool {
        self.value == *other
    }
}
