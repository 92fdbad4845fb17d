//! YAML: bytes to a value and back, as sigs.k8s.io/yaml converts to JSON and from it.
//!
//! Scalars are those of YAML 1.1 as go-yaml reads them: `yes`, `on` and `y` are booleans. Only the first document counts. Aliases
//! are written out, up to [`MAX_ALIASED`]; depth is bounded as in JSON. Not done: UTF-16, and go-yaml's words for every syntax
//! error.

mod build;
mod emit;
mod order;
mod resolve;
mod scalar;

#[cfg(test)]
mod tests;

use std::fmt;

use serde_json::Value;

pub use self::emit::encode;

/// Aliases may add this much to a document, in bytes (a node counts for a few beside its text).
pub const MAX_ALIASED: usize = 16 << 20;

/// What a text holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// The first document; of a key that is there twice, the last value.
    pub value: Value,
    /// Keys that are there more than once: `line 7: key "k" already set in map`.
    pub duplicates: Vec<String>,
}

/// What is wrong with a text, in go-yaml's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("yaml: {}{message}", Line(*.line))]
    Syntax { line: usize, message: String },
    #[error("yaml: invalid leading UTF-8 octet")]
    Utf8,
    #[error("yaml: exceeded max depth of {0}")]
    Depth(usize),
    #[error("yaml: document contains excessive aliasing")]
    Aliasing,
    #[error("yaml: anchor contains itself")]
    Recursive,
    #[error("yaml: map merge requires map or sequence of maps as the value")]
    Merge,
    #[error("yaml: cannot decode !!{found} `{text}` as a !!{wanted}")]
    Tag { found: &'static str, text: String, wanted: String },
    #[error("yaml: !!binary value contains invalid base64 data")]
    Binary,
    #[error("unsupported map key of type: {0}")]
    Key(&'static str),
    #[error("json: unsupported value: {0}")]
    Float(&'static str),
}

/// Reads the first document of a text. An empty text is null.
///
/// # Errors
/// If it is not YAML, or has no form in JSON, or is nested too deep, or holds too many aliases.
pub fn decode(input: &[u8]) -> Result<Decoded, Error> {
    let text = std::str::from_utf8(input).map_err(|_| Error::Utf8)?;
    build::read(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// The message of strict decoding, if there is something wrong.
pub fn strict_error(duplicates: &[String]) -> Option<String> {
    (!duplicates.is_empty()).then(|| format!("yaml: unmarshal errors:\n  {}", duplicates.join("\n  ")))
}

/// go-yaml does not name the first line.
struct Line(usize);

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 > 1 { write!(f, "line {}: ", self.0) } else { Ok(()) }
    }
}
