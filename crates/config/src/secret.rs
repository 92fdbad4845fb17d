//! Text that must never be shown.

use std::fmt;

/// A value that prints as `***`: a header, a token, a password, a key.
///
/// It is readable only through [`Secret::reveal`], so that every place that handles the plain text can be found.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(String);

impl Secret {
    /// Wraps plain text.
    pub fn new(plain: impl Into<String>) -> Self {
        Self(plain.into())
    }

    /// The plain text.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
