//! Strings that must never be shown.

use std::fmt;

use crate::TextReference;

/// A value that prints as `***`: a header, a token, a password, a key.
///
/// The plain text is accessible only through [`SecretString::reveal`], so that all places that handle it can be
/// found. A document that a program writes has the secret's reference in its place. Two secrets are equal if their
/// values are.
#[derive(Clone, Default)]
pub struct SecretString {
    plain: String,
    reference: Option<TextReference>,
}

impl SecretString {
    pub fn new(plain: impl Into<String>) -> Self {
        Self { plain: plain.into(), reference: None }
    }

    /// A secret that documents refer to.
    pub fn referenced(plain: impl Into<String>, reference: TextReference) -> Self {
        Self { plain: plain.into(), reference: Some(reference) }
    }

    pub fn reveal(&self) -> &str {
        &self.plain
    }

    pub fn is_empty(&self) -> bool {
        self.plain.is_empty()
    }

    pub(crate) fn reference(&self) -> Option<&TextReference> {
        self.reference.as_ref()
    }
}

impl PartialEq for SecretString {
    fn eq(&self, other: &Self) -> bool {
        self.plain == other.plain
    }
}

impl Eq for SecretString {}

impl fmt::Debug for SecretString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for SecretString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
