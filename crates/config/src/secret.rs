//! Strings that must never be shown.

use std::fmt;

/// A value that prints as `***`: a header, a token, a password, a key.
///
/// The plain text is accessible only through [`SecretString::reveal`], so that all places that handle it can be
/// found.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct SecretString(String);

impl SecretString {
    pub fn new(plain: impl Into<String>) -> Self {
        Self(plain.into())
    }

    pub fn reveal(&self) -> &str {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

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
