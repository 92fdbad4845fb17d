//! Fields of records: `body.user["first.name"]`, `attributes.level`, `resource["k8s.pod.name"]`.

use std::fmt;

use crate::decode::{Cursor, DecodeReport, scalar};

/// A place in a record: its body, its attributes or its resource, or something within.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordField {
    pub root: FieldRoot,
    /// The keys from the root to the value. Empty for the root itself.
    pub keys: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldRoot {
    Body,
    Attributes,
    Resource,
}

/// Why a text is no field. Columns count from 1, in characters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem} at column {column}")]
pub struct FieldError {
    pub column: usize,
    pub problem: String,
}

/// The most keys in a field: as deep as values may be.
const MAX_KEYS: usize = 64;

impl RecordField {
    /// The whole body.
    pub const BODY: Self = Self { root: FieldRoot::Body, keys: Vec::new() };
    /// All attributes.
    pub const ATTRIBUTES: Self = Self { root: FieldRoot::Attributes, keys: Vec::new() };

    /// A key of a root.
    pub fn new(root: FieldRoot, key: impl Into<String>) -> Self {
        Self { root, keys: vec![key.into()] }
    }

    /// Parses the text of a field.
    ///
    /// # Errors
    ///
    /// If the text is not a field.
    pub fn parse(text: &str) -> Result<Self, FieldError> {
        let mut keys = split(text)?;
        let first = if keys.is_empty() { String::new() } else { keys.remove(0) };
        let root = match first.as_str() {
            "body" => FieldRoot::Body,
            "attributes" => FieldRoot::Attributes,
            "resource" => FieldRoot::Resource,
            _ => return Err(error(1, "expected `body`, `attributes` or `resource`")),
        };
        if keys.len() > MAX_KEYS {
            return Err(error(1, format!("there are more than {MAX_KEYS} keys")));
        }
        Ok(Self { root, keys })
    }

    /// Whether it is all of the body, the attributes or the resource.
    pub fn is_root(&self) -> bool {
        self.keys.is_empty()
    }
}

impl fmt::Display for RecordField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.root {
            FieldRoot::Body => "body",
            FieldRoot::Attributes => "attributes",
            FieldRoot::Resource => "resource",
        })?;
        for key in &self.keys {
            let is_plain = !key.is_empty() && !key.contains(['.', '[', ']', '"', '\'']);
            match (is_plain, key.contains('"')) {
                (true, _) => write!(f, ".{key}")?,
                (false, false) => write!(f, "[\"{key}\"]")?,
                (false, true) => write!(f, "['{key}']")?,
            }
        }
        Ok(())
    }
}

fn error(column: usize, problem: impl Into<String>) -> FieldError {
    FieldError { column, problem: problem.into() }
}

/// Splits a text into its keys: words between points, and quoted texts in brackets.
fn split(text: &str) -> Result<Vec<String>, FieldError> {
    let mut keys = Vec::new();
    let mut chars = text.chars().enumerate().map(|(index, c)| (index + 1, c)).peekable();
    while let Some((column, c)) = chars.next() {
        if c == '[' {
            keys.push(quoted_key(column, &mut chars)?);
            match chars.peek() {
                None | Some((_, '[')) => {}
                Some((_, '.')) => {
                    let (column, _) = chars.next().unwrap_or_default();
                    if chars.peek().is_none() {
                        return Err(error(column, "expected a key after the point"));
                    }
                }
                Some((column, _)) => return Err(error(*column, "expected `.` or `[` after the bracket")),
            }
            continue;
        }
        let mut key = String::from(c);
        if c == '.' {
            return Err(error(column, "expected a key before the point"));
        }
        while let Some((column, c)) = chars.next_if(|(_, c)| *c != '[') {
            if c == '.' {
                if chars.peek().is_none_or(|(_, c)| *c == '.') {
                    return Err(error(column, "expected a key after the point"));
                }
                break;
            }
            key.push(c);
        }
        keys.push(key);
    }
    Ok(keys)
}

/// The text in quotes after a bracket that was read.
fn quoted_key(opened: usize, chars: &mut impl Iterator<Item = (usize, char)>) -> Result<String, FieldError> {
    let quote = match chars.next() {
        Some((_, quote @ ('"' | '\''))) => quote,
        Some((column, _)) => return Err(error(column, "expected a text in quotes after the bracket")),
        None => return Err(error(opened, "the bracket is not closed")),
    };
    let mut key = String::new();
    loop {
        match chars.next() {
            Some((_, c)) if c == quote => break,
            Some((_, c)) => key.push(c),
            None => return Err(error(opened + 1, "the quote is not closed")),
        }
    }
    match chars.next() {
        Some((_, ']')) => Ok(key),
        Some((column, _)) => Err(error(column, "expected `]`")),
        None => Err(error(opened, "the bracket is not closed")),
    }
}

/// A field that is more than `attributes` or `resource` alone.
pub(super) fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<RecordField> {
    let field = decode_rootable(at, report)?;
    if field.is_root() && field.root != FieldRoot::Body {
        let help = format!("name one of its keys, such as {field}.key");
        report.error(at, format!("`{}` cannot be all of `{field}`", at.name()), Some(help));
        return None;
    }
    Some(field)
}

/// A field that may be all of `attributes` or `resource`.
pub(super) fn decode_rootable(at: &Cursor<'_>, report: &DecodeReport) -> Option<RecordField> {
    let text = scalar::text(at, report)?;
    match RecordField::parse(&text) {
        Ok(field) => Some(field),
        Err(error) => {
            let help = "write body, attributes.KEY, resource.KEY or attributes[\"KEY\"]";
            report.error(
                at,
                format!("`{}`: {} is not a field: {error}", at.name(), at.subject(&text)),
                Some(help.into()),
            );
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(root: FieldRoot, keys: &[&str]) -> RecordField {
        RecordField { root, keys: keys.iter().map(|key| (*key).to_owned()).collect() }
    }

    #[test]
    fn keys_are_words_between_points_or_quoted_in_brackets() {
        for (text, expected) in [
            ("body", RecordField::BODY),
            ("attributes", RecordField::ATTRIBUTES),
            ("attributes.a.b", field(FieldRoot::Attributes, &["a", "b"])),
            ("resource[\"k8s.pod.name\"]", field(FieldRoot::Resource, &["k8s.pod.name"])),
            ("body['a'][\"b'\"].c", field(FieldRoot::Body, &["a", "b'", "c"])),
            ("body.a['b.c']", field(FieldRoot::Body, &["a", "b.c"])),
        ] {
            assert_eq!(RecordField::parse(text), Ok(expected.clone()), "{text}");
            assert_eq!(RecordField::parse(&expected.to_string()), Ok(expected));
        }
    }

    #[test]
    fn error_has_the_column_of_the_problem() {
        for (text, column) in [
            ("", 1),
            ("colour", 1),
            ("body.", 5),
            ("body..a", 5),
            ("body[a]", 6),
            ("body['a", 6),
            ("body['a'", 5),
            ("body['a'b]", 9),
            ("body['a']b", 10),
            ("body['a'].", 10),
            ("body[", 5),
        ] {
            assert_eq!(RecordField::parse(text).unwrap_err().column, column, "{text}");
        }
    }
}
