//! Decodes and encodes YAML, like sigs.k8s.io/yaml by way of JSON.
//!
//! Scalars are those of YAML 1.1 in go-yaml: `yes`, `on` and `y` are booleans. Only the first document is
//! decoded. Aliases are expanded, up to [`MAX_ALIASED_BYTES`]; depth is bounded as in JSON. Not done: UTF-16,
//! and go-yaml's messages for every syntax error.

mod build;
mod emit;
mod key_order;
mod resolve;
mod scalar;

#[cfg(test)]
mod tests;

use std::fmt;

use serde_json::Value;

pub use self::emit::encode;

/// The limit of expanded aliases in a document, in bytes (a node counts for a few beside its text).
pub const MAX_ALIASED_BYTES: usize = 16 << 20;

#[derive(Clone, Debug, PartialEq)]
pub struct DecodedYaml {
    /// The first document; the last of duplicate keys wins.
    pub value: Value,
    /// Duplicate keys: `line 7: key "k" already set in map`.
    pub duplicates: Vec<String>,
}

/// A decode error, with go-yaml's message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum YamlDecodeError {
    #[error("yaml: {}{message}", LinePrefix(*.line))]
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

/// Decodes the first document of a text. An empty text is null.
///
/// # Errors
/// If it is not YAML, has no JSON form, is nested too deep, or has too many aliases.
pub fn decode(input: &[u8]) -> Result<DecodedYaml, YamlDecodeError> {
    let text = std::str::from_utf8(input).map_err(|_| YamlDecodeError::Utf8)?;
    build::read(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// The message of strict decoding, if there are duplicates.
pub fn strict_error(duplicates: &[String]) -> Option<String> {
    (!duplicates.is_empty()).then(|| format!("yaml: unmarshal errors:\n  {}", duplicates.join("\n  ")))
}

/// go-yaml does not name the first line.
struct LinePrefix(usize);

impl fmt::Display for LinePrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 > 1 { write!(f, "line {}: ", self.0) } else { Ok(()) }
    }
}
